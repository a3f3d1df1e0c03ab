"""Checks of slot times that were read before their account was locked."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from itertools import chain
from typing import TypeAlias

from civil.zones import tzdata_version, zone_names
from queue_service.domain.account import AccountKey, AccountQueue, AnnouncedSchedule
from queue_service.domain.openings import Lack
from queue_service.domain.slot import HORIZON
from queue_service.domain.slot_times import SlotTimes
from servicekit.faults import Fault, Refused, Unavailable

ReadTimes: TypeAlias = Mapping[str, SlotTimes] | Fault
"""The slot times of an account by category, those without one under the empty string; or why they were not read."""


class ReadAgain(Unavailable):
    """Makes a call read again: it needs more times, `at_least` so many, or what it has read has changed."""

    def __init__(self, *, needs_more: bool, at_least: int = 0) -> None:
        super().__init__("SCHEDULE_CHANGING", "read again")
        self.needs_more = needs_more
        self.at_least = at_least


def usable(queue: AccountQueue, read: ReadTimes) -> Mapping[str, SlotTimes]:
    """Returns the times if they are those of the locked account's schedule, and raises why there are none."""
    if isinstance(read, Fault):
        raise read
    for times in read.values():
        if times.schedule_version > queue.schedule_version:
            # The cap is unknown: Schedule runs the previous release, which announces the cap by events only.
            raise changing()
        if times.schedule_version < queue.schedule_version:
            raise ReadAgain(needs_more=False)
    if not queue.enabled:
        account = queue.social_account_id
        raise refused("SCHEDULE_DISABLED", f"the schedule of account {account} is disabled", account)
    if queue.time_zone not in zone_names():
        raise _zone_unknown(queue)
    if read and all(times.all_outside for times in read.values()):
        account = queue.social_account_id
        raise refused("HORIZON_EXHAUSTED", f"no weekly slot of account {account} lies inside its send window", account)
    return read


def current_times(
    queues: Mapping[AccountKey, AccountQueue],
    readings: Iterable[Mapping[AccountKey, ReadTimes]],
    earliest: datetime,
) -> dict[AccountKey, dict[str, SlotTimes]]:
    """Returns the usable slot times of the accounts by category: of several pages the one that leads furthest."""
    found: dict[AccountKey, dict[str, SlotTimes]] = {}
    for account, read in chain.from_iterable(reading.items() for reading in readings):
        queue = queues[account]
        try:
            pages = usable(queue, read)
        except Fault:
            continue
        best = found.setdefault(account, {})
        for category, page in pages.items():
            start = queue.frontier_of(category).next_open(earliest)
            best[category] = max(best.get(category, page), page, key=lambda each: (each.after <= start, each.until))
    return found


def shortage(lacks: Mapping[str, Lack]) -> Fault:
    """Returns why accounts have no times for a draft, or that more has to be read."""
    for account, lack in lacks.items():
        if lack is Lack.NONE:
            text = f"account {account} has no free slot within {HORIZON.days} days"
            return refused("HORIZON_EXHAUSTED", text, account)
    return ReadAgain(needs_more=all(lack is Lack.MORE for lack in lacks.values()))


def newer_schedules(
    queues: Mapping[AccountKey, AccountQueue], readings: Iterable[Mapping[AccountKey, ReadTimes]]
) -> list[AnnouncedSchedule]:
    """Returns schedules that Queue does not know yet, the newest of each account."""
    found: dict[AccountKey, AnnouncedSchedule] = {}
    for account, schedule in _schedules(readings):
        if queues[account].learns_from(schedule):
            found[account] = max(found.get(account, schedule), schedule, key=_age)
    return list(found.values())


def changing() -> Unavailable:
    return Unavailable(
        "SCHEDULE_CHANGING", "the schedule of an account is changing; try again", retry_after=timedelta(seconds=1)
    )


def refused(reason: str, message: str, social_account_id: str) -> Refused:
    return Refused(reason, message, metadata={"social_account_id": social_account_id})


def _schedules(
    readings: Iterable[Mapping[AccountKey, ReadTimes]],
) -> Iterable[tuple[AccountKey, AnnouncedSchedule]]:
    for reading in readings:
        for account, read in reading.items():
            if not isinstance(read, Fault):
                yield from ((account, times.schedule) for times in read.values() if times.schedule)


def _age(schedule: AnnouncedSchedule) -> tuple[int, str]:
    return schedule.version, schedule.tzdata_version


def _zone_unknown(queue: AccountQueue) -> Refused:
    """Refuses like Schedule, which does so once it has this tzdata release, too."""
    account, zone, release = queue.social_account_id, queue.time_zone, tzdata_version()
    return Refused(
        "UNKNOWN_TIME_ZONE",
        f"the schedule of account {account} is in {zone!r}, which tzdata {release} does not have; choose another "
        "time_zone",
        metadata={"social_account_id": account, "time_zone": zone, "tzdata_version": release},
    )
