"""The rules of a brand: when, where and about what it wants to post."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time
from enum import StrEnum
from functools import lru_cache
from hashlib import sha256
from typing import Any

from channels import UnknownChannel, normalise
from civil.days import local_day
from civil.recurrence import InvalidRecurrence, Recurrence, occurs, parse_recurrence
from civil.weekly import WeeklySlot
from civil.zones import Zone, tzdata_version
from schedule_service.domain.calendars.known_zone import require_known
from servicekit.faults import Conflict, InvalidField, LimitReached, NotFound

MOST_RULES = 500
"""The limit of one brand: every page of its targets expands each of them."""

_TIME_PARTS = frozenset({"BYHOUR", "BYMINUTE"})


class AssetPolicy(StrEnum):
    OPTIONAL = "OPTIONAL"
    REQUIRED = "REQUIRED"
    NONE = "NONE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The part of a rule that the user chooses; the fields have the names of the proto."""

    name: str
    time_zone: Zone
    weekly_slots: tuple[WeeklySlot, ...]  # in the order of the week, no two alike; empty: `rrule` gives the times
    rrule: str
    start_time: time | None
    start_date: date | None  # never None with `rrule`
    end_date: date | None
    excluded_dates: tuple[date, ...]  # in order, each once
    channels: tuple[str, ...]
    category_id: str
    asset_policy: AssetPolicy
    enabled: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleRule:
    organization_id: str
    id: str
    brand_id: str
    terms: Terms
    version: int  # grows with every change, the deletion included
    create_time: datetime
    update_time: datetime
    tzdata_version: str  # the tzdata release that the rule was last announced with
    delete_time: datetime | None = None

    @property
    def etag(self) -> str:
        edition = f"{self.id} {self.create_time.isoformat()} {self.version}"
        return sha256(edition.encode()).hexdigest()[:16]


def created(organization_id: str, rule_id: str, brand_id: str, terms: Terms, *, now: datetime) -> ScheduleRule:
    return ScheduleRule(
        organization_id=organization_id,
        id=rule_id,
        brand_id=brand_id,
        terms=checked(terms, made_on=local_day(now, terms.time_zone)),
        version=1,
        create_time=now,
        update_time=now,
        tzdata_version=tzdata_version(),
    )


def changed(rule: ScheduleRule, changes: Mapping[str, Any], *, now: datetime) -> ScheduleRule:
    """Returns the rule with these terms changed; the same object if nothing changes."""
    wanted = replace(rule.terms, **changes)
    if not wanted.rrule and "start_time" not in changes:
        wanted = replace(wanted, start_time=None)  # It was only valid with the rrule.
    require_known(wanted.time_zone, f"schedule rule {rule.id}", {"schedule_rule_id": rule.id})
    terms = checked(wanted, made_on=local_day(rule.create_time, wanted.time_zone))
    if terms == rule.terms:
        return rule
    return replace(rule, terms=terms, version=rule.version + 1, update_time=now, tzdata_version=tzdata_version())


def deleted(rule: ScheduleRule, *, now: datetime) -> ScheduleRule:
    return replace(rule, version=rule.version + 1, update_time=now, delete_time=now)


def found(rule: ScheduleRule | None, rule_id: str) -> ScheduleRule:
    """Raises NotFound for None. A deleted rule and another organization's look like one that never existed."""
    if rule is None:
        raise NotFound(
            "SCHEDULE_RULE_NOT_FOUND", "there is no such schedule rule", metadata={"schedule_rule_id": rule_id}
        )
    return rule


def require_etag(rule: ScheduleRule, etag: str) -> None:
    """Raises Conflict if the rule is not in the state that the etag names. An empty etag is no precondition."""
    if etag and etag != rule.etag:
        raise Conflict(
            "ETAG_MISMATCH",
            "the schedule rule has been changed since it was read",
            metadata={"schedule_rule_id": rule.id},
        )


def require_room(brand_id: str, rules: int) -> None:
    """Raises LimitReached if the brand would have too many rules; `rules` includes the new one."""
    if rules > MOST_RULES:
        raise LimitReached(
            "RULES_PER_BRAND",
            f"a brand may have at most {MOST_RULES} schedule rules",
            metadata={"brand_id": brand_id, "limit": str(MOST_RULES)},
        )


def checked(terms: Terms, *, made_on: date) -> Terms:
    """Returns the terms as stored: with one kind of recurrence, and an rrule in canonical form with a start date."""
    if not terms.channels:
        raise InvalidField("schedule_rule.channels", "is required")
    if not terms.weekly_slots and not terms.rrule:
        raise InvalidField("schedule_rule.weekly_slots", "is required, unless there is an rrule")
    if terms.weekly_slots and terms.rrule:
        raise InvalidField("schedule_rule.rrule", "a rule has weekly_slots or an rrule, not both")
    if terms.start_time is not None and not terms.rrule:
        raise InvalidField("schedule_rule.start_time", "is valid only with an rrule; weekly_slots name their own times")
    if terms.rrule and terms.start_date is None:
        terms = replace(terms, start_date=made_on)
    if terms.start_date and terms.end_date and terms.end_date < terms.start_date:
        raise InvalidField("schedule_rule.end_date", f"is before the start_date, {terms.start_date.isoformat()}")
    return replace(terms, rrule=_checked_recurrence(terms).text) if terms.rrule else terms


def recurrence(terms: Terms) -> Recurrence:
    """Parses the rrule, which the terms must have."""
    assert terms.start_date is not None, "an rrule counts from its start date"
    return _parsed(terms.rrule, datetime.combine(terms.start_date, terms.start_time or time()))


@lru_cache(maxsize=4096)
def _parsed(rrule: str, start: datetime) -> Recurrence:
    # Cached, because parsing an rrule with COUNT has to count its occurrences.
    return parse_recurrence(rrule, start=start)


def _checked_recurrence(terms: Terms) -> Recurrence:
    try:
        parsed = recurrence(terms)
    except InvalidRecurrence as invalid:
        raise InvalidField("schedule_rule.rrule", str(invalid)) from invalid
    if terms.start_time is None and not _parts(parsed) >= _TIME_PARTS:
        raise InvalidField("schedule_rule.start_time", "is required: the rrule does not name both BYHOUR and BYMINUTE")
    if not occurs(parsed):
        raise InvalidField("schedule_rule.rrule", "does not occur within the five years after its start")
    return parsed


def _parts(recurrence: Recurrence) -> set[str]:
    return {part.partition("=")[0] for part in recurrence.text.split(";")}


def known_channels(names: Sequence[str], field: str) -> tuple[str, ...]:
    """Returns the canonical names in the given order, each once; `field` names them in the request."""
    return tuple(dict.fromkeys(_known_channel(name, f"{field}[{place}]") for place, name in enumerate(names)))


def _known_channel(name: str, field: str) -> str:
    try:
        return normalise(name)
    except UnknownChannel as unknown:
        raise InvalidField(field, str(unknown), reason="UNKNOWN_CHANNEL") from None


def in_order(dates: Iterable[date]) -> tuple[date, ...]:
    """Returns the dates in order, each once."""
    return tuple(sorted(set(dates)))
