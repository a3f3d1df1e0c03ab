"""The schedule of one account: its recurring times, and how it is replaced and deleted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from hashlib import sha256
from typing import NamedTuple

from civil.weekly import WeeklySlot
from civil.windows import SendWindow
from civil.zones import Zone, tzdata_version
from schedule_service.domain.calendars.known_zone import require_known
from servicekit.faults import Conflict, InvalidField, NotFound


@dataclass(frozen=True, slots=True, kw_only=True)
class Timetable:
    """The part of a schedule that the user chooses."""

    name: str
    zone: Zone
    weekly_slots: tuple[WeeklySlot, ...]  # in the order of the week, no two alike
    categories: Mapping[WeeklySlot, str] = field(default_factory=dict)  # the weekly slots that are kept for a category
    max_posts_per_day: int  # 0: no cap
    enabled: bool
    send_window: SendWindow | None = None  # None: at any time
    min_spacing: timedelta = timedelta()

    def category_of(self, slot: WeeklySlot) -> str:
        """Returns the category for which the weekly slot is kept; empty if it is for drafts of any category."""
        return self.categories.get(slot, "")

    def slots_of(self, category_id: str | None) -> tuple[WeeklySlot, ...]:
        """Returns the weekly slots of a category or, if it is empty, of no category; None stands for all."""
        if category_id is None:
            return self.weekly_slots
        return tuple(slot for slot in self.weekly_slots if self.category_of(slot) == category_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountSchedule:
    organization_id: str
    social_account_id: str
    timetable: Timetable
    version: int  # grows with every change; the next schedule of an account continues after its deleted one
    tzdata_version: str  # the tzdata release that the times were last announced with
    create_time: datetime
    update_time: datetime
    delete_time: datetime | None = None
    slots_elsewhere: bool = False
    """True if slots of the account may be in another zone: the schedule had one before, or was deleted."""

    @property
    def etag(self) -> str:
        # The creation time distinguishes a schedule from an earlier one of the same account.
        edition = f"{self.social_account_id} {self.create_time.isoformat()} {self.version}"
        return sha256(edition.encode()).hexdigest()[:16]


class Edition(NamedTuple):
    """The inputs of an account's slot times: the same edition means the same times."""

    version: int
    tzdata_version: str
    """The tzdata release of the process that answers; the schedule may have been announced with an older one."""


def edition(schedule: AccountSchedule) -> Edition:
    return Edition(schedule.version, tzdata_version())


def created(
    organization_id: str,
    social_account_id: str,
    timetable: Timetable,
    *,
    now: datetime,
    last: AccountSchedule | None = None,
) -> AccountSchedule:
    """Creates a schedule. `last` is the deleted one that the account had before, if any."""
    return AccountSchedule(
        organization_id=organization_id,
        social_account_id=social_account_id,
        timetable=timetable,
        version=last.version + 1 if last else 1,
        tzdata_version=tzdata_version(),
        create_time=now,
        update_time=now,
        slots_elsewhere=last is not None,
    )


def replaced(schedule: AccountSchedule, timetable: Timetable, *, now: datetime) -> AccountSchedule:
    """Returns the schedule with this timetable; the same object if nothing changes."""
    if timetable == schedule.timetable:
        return schedule
    return replace(
        schedule,
        timetable=timetable,
        version=schedule.version + 1,
        tzdata_version=tzdata_version(),
        update_time=now,
        slots_elsewhere=schedule.slots_elsewhere or timetable.zone.name != schedule.timetable.zone.name,
    )


def deleted(schedule: AccountSchedule, *, now: datetime) -> AccountSchedule:
    return replace(schedule, version=schedule.version + 1, update_time=now, delete_time=now, slots_elsewhere=True)


def live(schedule: AccountSchedule | None) -> AccountSchedule | None:
    """Returns None for a deleted schedule."""
    return None if schedule is None or schedule.delete_time else schedule


def require_etag(schedule: AccountSchedule | None, etag: str, social_account_id: str) -> None:
    """Raises Conflict unless the schedule exists in the state that the etag names. An empty etag is no precondition."""
    if etag and (schedule is None or schedule.etag != etag):
        raise Conflict(
            "ETAG_MISMATCH",
            "the schedule has been changed since it was read",
            metadata={"social_account_id": social_account_id},
        )


def found(schedule: AccountSchedule | None, social_account_id: str) -> AccountSchedule:
    """Raises NotFound for None. Another organization's schedule looks like one that never existed."""
    if schedule is None:
        raise NotFound(
            "SCHEDULE_NOT_FOUND", "the account has no schedule", metadata={"social_account_id": social_account_id}
        )
    return schedule


def require_times(schedule: AccountSchedule) -> None:
    """Raises Refused if tzdata no longer has the schedule's zone, so that its times are unknown."""
    account = schedule.social_account_id
    require_known(schedule.timetable.zone, f"the schedule of account {account}", {"social_account_id": account})


def in_order_of_week(slots: Sequence[WeeklySlot], field: str) -> tuple[WeeklySlot, ...]:
    """Sorts the slots and refuses duplicates. `field` names them in the request."""
    first_places: dict[WeeklySlot, int] = {}
    for place, slot in enumerate(slots):
        if (first := first_places.setdefault(slot, place)) != place:
            raise InvalidField(f"{field}[{place}]", f"is the same as {field}[{first}]")
    return tuple(sorted(slots))
