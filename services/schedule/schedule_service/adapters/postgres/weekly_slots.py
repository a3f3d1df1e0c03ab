"""Weekly slots as database columns: minutes since Sunday 00:00, local."""

from collections.abc import Iterable
from functools import cache

from civil.weekly import WeeklySlot

_MINUTES_OF_DAY = 24 * 60


def minutes(slots: Iterable[WeeklySlot]) -> list[int]:
    return [slot.day * _MINUTES_OF_DAY + slot.hour * 60 + slot.minute for slot in slots]


def slots(minutes: Iterable[int]) -> tuple[WeeklySlot, ...]:
    return tuple(map(_slot, minutes))


@cache
def _slot(minute: int) -> WeeklySlot:
    # Cached: a week has only 10,080 minutes, but a page of large schedules has 100,000 slots, and constructing each of
    # them would block every other call.
    return WeeklySlot(day=minute // _MINUTES_OF_DAY, hour=minute // 60 % 24, minute=minute % 60)
