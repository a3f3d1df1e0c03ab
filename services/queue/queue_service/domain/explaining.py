"""Explaining a slot: why it has its time, why not an earlier one, and what keeps it from going out."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from queue_service.domain.circumstances import Circumstances
from queue_service.domain.obstacles import Obstacle, obstacles
from queue_service.domain.passed_times import PassedTime
from queue_service.domain.slot import QueueSlot, SlotOrigin
from queue_service.domain.summary import summary

_BY_ORIGIN = {SlotOrigin.QUEUE: "NEXT_FREE", SlotOrigin.EXACT: "CHOSEN", SlotOrigin.DRAFT: "DRAFT_TIME"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    slot: QueueSlot
    time_reason: str
    passed_times: tuple[PassedTime, ...]
    obstacles: tuple[Obstacle, ...]
    summary: str


def explain(
    slot: QueueSlot, known: Circumstances, passed: Sequence[PassedTime] | None, *, now: datetime
) -> Explanation:
    """Explains the slot; `passed` is None if the slot times before it could not be read."""
    time_reason = known.move_reason or _BY_ORIGIN[slot.origin]
    found = obstacles(slot, known, now=now)
    return Explanation(
        slot=slot,
        time_reason=time_reason,
        passed_times=tuple(passed or ()),
        obstacles=found,
        summary=summary(slot, known, time_reason=time_reason, passed=passed, obstacles=found, now=now),
    )
