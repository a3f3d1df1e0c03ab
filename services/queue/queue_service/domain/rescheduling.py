"""Giving the slots with slot times the times of another schedule, in their order. Only plans do this: saving a schedule
moves no slot."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice

from civil.weekly import WeeklySlot, none_is_within, occurrences
from civil.windows import SendWindow
from civil.zones import find_zone
from queue_service.domain.account import AccountQueue
from queue_service.domain.arrangement import NO_CHANGE, Arrangement, SeatedSlot, Snapshot, seated
from queue_service.domain.free_times import FreeTimes, MoreTimes, reseat
from queue_service.domain.frontier import NOTHING_KNOWN
from queue_service.domain.planned_change import PlannedSchedule
from queue_service.domain.schedule_check import usable
from queue_service.domain.seat import Seat
from queue_service.domain.slot import HORIZON, MoveReason
from queue_service.domain.slot_times import SlotTimes

_MORE = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Timetable:
    """The part of a schedule from which its slot times are computed."""

    # Each with the category for which it is kept.
    weekly_slots: Mapping[WeeklySlot, str]
    time_zone: str
    max_posts_per_day: int
    enabled: bool
    send_window: SendWindow | None = None

    def changed(self, planned: PlannedSchedule) -> "Timetable":
        slots, zone, cap = planned.weekly_slots, planned.time_zone, planned.max_posts_per_day
        return replace(
            self,
            weekly_slots=self.weekly_slots if slots is None else slots,
            time_zone=self.time_zone if zone is None else zone,
            max_posts_per_day=self.max_posts_per_day if cap is None else cap,
        )


def reschedule(snapshot: Snapshot, timetable: Timetable, *, now: datetime, notice: timedelta) -> Arrangement:
    slots = snapshot.shiftable
    if not slots:
        return NO_CHANGE
    queue = _under(snapshot.queue, timetable)
    usable(queue, {})
    moves = seated(_reseated(replace(snapshot, queue=queue), slots, timetable, now, now + notice), MoveReason.MOVED)
    return Arrangement(moves=moves)


def _under(queue: AccountQueue, timetable: Timetable) -> AccountQueue:
    """Returns the account with the schedule, of whose times nothing is known yet."""
    return replace(
        queue,
        time_zone=timetable.time_zone,
        max_posts_per_day=timetable.max_posts_per_day,
        enabled=timetable.enabled,
        frontier=NOTHING_KNOWN,
        category_frontiers={},
    )


def _reseated(
    snapshot: Snapshot, slots: Sequence[SeatedSlot], timetable: Timetable, now: datetime, earliest: datetime
) -> list[tuple[SeatedSlot, Seat]]:
    """Computes about as many slot times as are needed: a schedule may have 50,000 within the horizon."""
    version = snapshot.queue.schedule_version
    categories = {slot.category_id for slot in slots} | {""}
    for count in _growing(2 * len(snapshot.slots) + _MORE):
        read = {
            category: first_times(timetable, category, version, start=earliest, end=now + HORIZON, count=count)
            for category in categories
        }
        try:
            return reseat(slots, FreeTimes(snapshot, read), start=earliest)
        except MoreTimes:
            continue
    raise AssertionError("unreachable")


def first_times(
    timetable: Timetable, category: str, version: int, *, start: datetime, end: datetime, count: int
) -> SlotTimes:
    """Returns the first times of a category, as Schedule would."""
    slots = [slot for slot, kept_for in timetable.weekly_slots.items() if kept_for == category]
    zone = find_zone(timetable.time_zone)
    after, until, window = start - datetime.resolution, end - datetime.resolution, timetable.send_window
    found = tuple(islice(occurrences(slots, zone, after=after, until=until, within=window), count))
    is_cut_off = len(found) == count
    return SlotTimes(
        schedule_version=version,
        after=start,
        until=found[-1].instant + datetime.resolution if is_cut_off else end,
        times=tuple(each.instant for each in found),
        nominals=tuple(each.nominal for each in found),
        last=not is_cut_off,
        all_outside=not found and none_is_within(timetable.weekly_slots, window),
    )


def _growing(count: int) -> Iterator[int]:
    while True:
        yield count
        count *= 4
