"""The slot times before a slot that it did not get, each with the reason."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from civil.days import local_day
from civil.zones import Zone, find_zone, zone_names
from queue_service.domain.slot import COUNTED, QueueSlot

MOST_PASSED = 50
"""The most slot times before a slot that are explained: the latest ones."""


class PassReason(StrEnum):
    FILLED = "FILLED"
    SKIPPED = "SKIPPED"
    CAPPED = "CAPPED"
    WINDOW = "WINDOW"
    CATEGORY = "CATEGORY"
    GAP = "GAP"
    NOTICE = "NOTICE"


class OfferedTime(NamedTuple):
    """A slot time of the account's schedule, inside its send window or not, and the category that it is kept for."""

    time: datetime
    category_id: str = ""
    is_outside_window: bool = False


class Filling(NamedTuple):
    """A live slot less than a minute away from a slot time."""

    slot_id: str
    draft_id: str


class PassedTime(NamedTuple):
    time: datetime
    reason: PassReason
    # The slot that fills the time.
    slot_id: str = ""
    draft_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The slots and skips that make slot times unavailable to a slot; `counted` includes the slot itself."""

    filled: Mapping[datetime, Filling] = field(default_factory=dict)
    counted: Mapping[date, int] = field(default_factory=dict)
    skipped: Sequence[datetime] = ()
    cap: int = 0
    time_zone: str = ""

    @property
    def zone(self) -> Zone | None:
        """Returns the zone in which days are counted, if there is a cap and this process knows the zone."""
        return find_zone(self.time_zone) if self.cap and self.time_zone in zone_names() else None


def latest_before(offered: Iterable[OfferedTime], slot: QueueSlot) -> list[OfferedTime]:
    """Returns the times that are explained, of those offered in order."""
    return [each for each in offered if each.time < slot.schedule_time][-MOST_PASSED:]


def passed_times(
    slot: QueueSlot,
    offered: Sequence[OfferedTime],
    around: Surroundings,
    *,
    category_id: str,
    now: datetime,
    notice: timedelta,
) -> tuple[PassedTime, ...]:
    """Says of each slot time before the slot's why the slot does not have it; `category_id` is that of its draft."""
    lines = _lines(slot, offered, category_id)
    passed = latest_before(offered, slot)
    return tuple(
        PassedTime(each.time, reason)
        if (reason := _withheld(each, lines))
        else _judged(slot, each.time, around, earliest=now + notice)
        for each in passed
    )


def _lines(slot: QueueSlot, offered: Iterable[OfferedTime], category_id: str) -> set[str]:
    """Returns the categories whose slot times the draft could have had.

    It takes times that no category keeps only while its own category has none: so not if its slot has one of those.
    """
    own = next((each.category_id for each in offered if each.time == slot.schedule_time), "")
    return {category_id} if category_id and own == category_id else {category_id, ""}


def _withheld(offered: OfferedTime, lines: set[str]) -> PassReason | None:
    """Returns why the schedule does not give the draft the time, whether it is free or not."""
    if offered.category_id not in lines:
        return PassReason.CATEGORY
    return PassReason.WINDOW if offered.is_outside_window else None


def _judged(slot: QueueSlot, time: datetime, around: Surroundings, *, earliest: datetime) -> PassedTime:
    if filling := around.filled.get(time):
        return PassedTime(time, PassReason.FILLED, filling.slot_id, filling.draft_id)
    if time in around.skipped:
        return PassedTime(time, PassReason.SKIPPED)
    if _is_capped(slot, time, around):
        return PassedTime(time, PassReason.CAPPED)
    return PassedTime(time, PassReason.NOTICE if time < earliest else PassReason.GAP)


def _is_capped(slot: QueueSlot, time: datetime, around: Surroundings) -> bool:
    """Returns whether other slots use up the cap of the day: the slot itself may move within its day."""
    if (zone := around.zone) is None:
        return False
    day = local_day(time, zone)
    counts_itself = slot.state in COUNTED and local_day(slot.schedule_time, zone) == day
    return around.counted.get(day, 0) - counts_itself >= around.cap
