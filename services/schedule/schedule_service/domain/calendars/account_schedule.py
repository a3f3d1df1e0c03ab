"""When posts of one account may go out: its recurring times, and the rules by which they are replaced and go away."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
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
    """What the user decides."""

    name: str
    zone: Zone
    weekly_slots: tuple[WeeklySlot, ...]  # in the order of the week, no two alike
    max_posts_per_day: int  # 0: no cap
    enabled: bool
    send_window: SendWindow | None = None  # None: at any time
    min_spacing: timedelta = timedelta()


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountSchedule:
    organization_id: str
    social_account_id: str
    timetable: Timetable
    version: int  # grows with every change, also from a deleted schedule to the next one of the account
    tzdata_version: str  # of the times as they were announced last
    create_time: datetime
    update_time: datetime
    delete_time: datetime | None = None
    slots_elsewhere: bool = False
    """Queue's slots of the account may follow another zone: the schedule had one, or was deleted, at some time."""

    @property
    def etag(self) -> str:
        # The creation time tells a schedule from one of the same account that was there before it.
        edition = f"{self.social_account_id} {self.create_time.isoformat()} {self.version}"
        return sha256(edition.encode()).hexdigest()[:16]


class Edition(NamedTuple):
    """What the times of an account's slots rest on: with the same edition they are the same."""

    version: int
    tzdata_version: str
    """Of the process that tells them; the schedule may have been announced with an older one."""


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
    """`last` is the deleted one that the account had before, if any."""
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
    """The schedule with this timetable; itself when it has it already."""
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
    """A deleted schedule counts as none."""
    return None if schedule is None or schedule.delete_time else schedule


def require_etag(schedule: AccountSchedule | None, etag: str, social_account_id: str) -> None:
    """An empty etag is no precondition; with one the schedule must exist, and be in the state that it names."""
    if etag and (schedule is None or schedule.etag != etag):
        raise Conflict(
            "ETAG_MISMATCH",
            "the schedule has been changed since it was read",
            metadata={"social_account_id": social_account_id},
        )


def found(schedule: AccountSchedule | None, social_account_id: str) -> AccountSchedule:
    """Another organization's schedule and one that never was look the same."""
    if schedule is None:
        raise NotFound(
            "SCHEDULE_NOT_FOUND", "the account has no schedule", metadata={"social_account_id": social_account_id}
        )
    return schedule


def require_times(schedule: AccountSchedule) -> None:
    """Of a zone that is no more nobody can tell them."""
    account = schedule.social_account_id
    require_known(schedule.timetable.zone, f"the schedule of account {account}", {"social_account_id": account})


def in_order_of_week(slots: Sequence[WeeklySlot], field: str) -> tuple[WeeklySlot, ...]:
    """`field` is where the caller wrote them."""
    first_places: dict[WeeklySlot, int] = {}
    for place, slot in enumerate(slots):
        if (first := first_places.setdefault(slot, place)) != place:
            raise InvalidField(f"{field}[{place}]", f"is the same as {field}[{first}]")
    return tuple(sorted(slots))
