"""Translates schedule rules and their targets between protobuf and the domain."""

import re
from collections.abc import Callable, Mapping
from datetime import date
from typing import Any

from google.protobuf.field_mask_pb2 import FieldMask

from civil.weekly import WeeklySlot
from postflow.schedule.v1 import schedule_events_pb2, schedule_rule_pb2
from postflow.schedule.v1.schedule_service_pb2 import (
    CreateScheduleRuleResponse,
    DeleteScheduleRuleResponse,
    UpdateScheduleRuleResponse,
)
from schedule_service.domain.calendars.account_schedule import in_order_of_week
from schedule_service.domain.calendars.known_zone import UNKNOWN
from schedule_service.domain.calendars.rule_targets import LONGEST_HORIZON, RuleTarget, Span
from schedule_service.domain.calendars.schedule_rule import AssetPolicy, ScheduleRule, Terms, in_order, known_channels
from schedule_service.wire.civil_times import clock, clock_message, weekly_slot_message, weekly_slots, zone
from servicekit.faults import InvalidField
from servicekit.pg.outbox import Announcement
from servicekit.timestamps import from_micros, micros
from topology import events_subject

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def brand_id(message: schedule_rule_pb2.ScheduleRule) -> str:
    return _required(message.brand_id, "schedule_rule.brand_id")


def rule_id(message: schedule_rule_pb2.ScheduleRule) -> str:
    return _required(message.id, "schedule_rule.id")


def terms(message: schedule_rule_pb2.ScheduleRule) -> Terms:
    return Terms(**{name: read(message) for name, read in _READERS.items()})


def changes(message: schedule_rule_pb2.ScheduleRule, mask: FieldMask) -> Mapping[str, Any]:
    """Returns the terms that the mask names, by name. A term that the message leaves out gets its default."""
    if not mask.paths:
        raise InvalidField("update_mask", f"names no field; {', '.join(_READERS)} can be changed")
    for path in mask.paths:
        if path not in _READERS:
            raise InvalidField("update_mask", f"{path!r} cannot be changed; {', '.join(_READERS)} can")
    return {path: _READERS[path](message) for path in mask.paths}


def shown(rule: ScheduleRule) -> schedule_rule_pb2.ScheduleRule:
    """Returns the rule as callers see it."""
    terms = rule.terms
    return schedule_rule_pb2.ScheduleRule(
        id=rule.id,
        brand_id=rule.brand_id,
        name=terms.name,
        time_zone=terms.time_zone.name,
        weekly_slots=map(weekly_slot_message, terms.weekly_slots),
        rrule=terms.rrule,
        start_time=None if terms.start_time is None else clock_message(terms.start_time),
        start_date=_text(terms.start_date),
        end_date=_text(terms.end_date),
        excluded_dates=map(_text, terms.excluded_dates),
        channels=terms.channels,
        category_id=terms.category_id,
        asset_policy=f"ASSET_POLICY_{terms.asset_policy}",
        enabled=terms.enabled,
        etag=rule.etag,
        version=rule.version,
        create_time=rule.create_time,
        update_time=rule.update_time,
        tzdata_version=rule.tzdata_version,
    )


def create_schedule_rule_response(rule: ScheduleRule) -> CreateScheduleRuleResponse:
    return CreateScheduleRuleResponse(schedule_rule=shown(rule))


def update_schedule_rule_response(rule: ScheduleRule) -> UpdateScheduleRuleResponse:
    return UpdateScheduleRuleResponse(schedule_rule=shown(rule))


def delete_schedule_rule_response(_: None) -> DeleteScheduleRuleResponse:
    return DeleteScheduleRuleResponse()


def schedule_rule_changed(rule: ScheduleRule) -> Announcement:
    return Announcement(
        subject=events_subject("schedule", "schedule_rule"),
        organization_id=rule.organization_id,
        aggregate_id=rule.id,
        message=schedule_events_pb2.ScheduleRuleChanged(
            organization_id=rule.organization_id, schedule_rule=shown(rule), deleted=rule.delete_time is not None
        ),
    )


def target(found: RuleTarget) -> schedule_rule_pb2.RuleTarget:
    local, terms = found.local, found.rule.terms
    return schedule_rule_pb2.RuleTarget(
        key=found.key,
        schedule_rule_id=found.rule.id,
        time=found.instant,
        local_date=local.date().isoformat(),
        local_time=local.time().isoformat("minutes"),
        utc_offset_seconds=int(found.offset.total_seconds()),
        shifted=bool(found.shift),
        time_zone=terms.time_zone.name,
        channels=terms.channels,
        category_id=terms.category_id,
        asset_policy=f"ASSET_POLICY_{terms.asset_policy}",
        schedule_rule_version=found.rule.version,
    )


def skipped(rule: ScheduleRule) -> schedule_rule_pb2.SkippedRule:
    return schedule_rule_pb2.SkippedRule(schedule_rule_id=rule.id, reason=UNKNOWN, time_zone=rule.terms.time_zone.name)


def cursor(rest: Span) -> tuple[int, str, int]:
    return micros(rest.start), rest.behind, micros(rest.end)


def rest(position: tuple[str | int, ...] | None) -> Span | None:
    """Returns the span that the previous page left, which `cursor` wrote into a token."""
    if position is None:
        return None
    start, behind, end = position
    since = from_micros(int(start))
    # The tokens that we issue never reach further, and a forged one must not either.
    until = min(from_micros(int(end)), since + LONGEST_HORIZON)
    return Span(start=since, end=until, behind=str(behind))


def _required(text: str, field: str) -> str:
    if not text:
        raise InvalidField(field, "is required")
    return text


def _date(text: str, field: str) -> date:
    if not _DATE.fullmatch(text):
        raise InvalidField(field, "must be a date, YYYY-MM-DD")
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise InvalidField(field, "is not a date of the calendar") from None


def _text(date: date | None) -> str:
    return "" if date is None else date.isoformat()


def _optional_date(text: str, field: str) -> date | None:
    return _date(text, field) if text else None


def _without_categories(rule: schedule_rule_pb2.ScheduleRule) -> list[WeeklySlot]:
    """Refuses weekly slots that are kept for a category: a rule has one category for all of its times."""
    for place, slot in enumerate(rule.weekly_slots):
        if slot.category_id:
            field = f"schedule_rule.weekly_slots[{place}].category_id"
            raise InvalidField(field, "must be empty: a rule has a category of its own")
    return weekly_slots(rule.weekly_slots)


_POLICIES = {
    number: AssetPolicy(name.removeprefix("ASSET_POLICY_"))
    for name, number in schedule_rule_pb2.AssetPolicy.items()
    if number != schedule_rule_pb2.ASSET_POLICY_UNSPECIFIED
}

_READERS: Mapping[str, Callable[[schedule_rule_pb2.ScheduleRule], Any]] = {
    "name": lambda rule: rule.name,
    "time_zone": lambda rule: zone(rule.time_zone, "schedule_rule.time_zone"),
    "weekly_slots": lambda rule: in_order_of_week(_without_categories(rule), "schedule_rule.weekly_slots"),
    "rrule": lambda rule: rule.rrule,
    "start_time": lambda rule: clock(rule.start_time) if rule.HasField("start_time") else None,
    "start_date": lambda rule: _optional_date(rule.start_date, "schedule_rule.start_date"),
    "end_date": lambda rule: _optional_date(rule.end_date, "schedule_rule.end_date"),
    "excluded_dates": lambda rule: in_order(
        _date(text, f"schedule_rule.excluded_dates[{place}]") for place, text in enumerate(rule.excluded_dates)
    ),
    "channels": lambda rule: known_channels(rule.channels, "schedule_rule.channels"),
    "category_id": lambda rule: rule.category_id,
    "asset_policy": lambda rule: _POLICIES.get(rule.asset_policy, AssetPolicy.OPTIONAL),
    "enabled": lambda rule: rule.enabled if rule.HasField("enabled") else True,
}
"""Reads each term from the field of the same name."""
