"""The changes that a plan can be made of."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from civil.weekly import WeeklySlot
from queue_service.domain.moving import Destination
from queue_service.domain.reordering import Order
from queue_service.domain.resuming import OverduePolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedAdditions:
    """New drafts of one category, one after the other at the end."""

    count: int
    category: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedInFront:
    """New drafts of one category, one after the other at the front."""

    count: int
    category: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedSchedule:
    """Another schedule; None stands for what the account's schedule has."""

    # Each with the category for which it is kept.
    weekly_slots: Mapping[WeeklySlot, str] | None = None
    time_zone: str | None = None
    max_posts_per_day: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedClearing:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedShuffle:
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedPause:
    """A pause from now on, and a resumption at the instant `until`."""

    until: datetime
    overdue: OverduePolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedResumption:
    overdue: OverduePolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRemoval:
    slot_id: str
    close_gap: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedMove:
    slot_id: str
    destination: Destination


DecidedAtOnce: TypeAlias = (
    PlannedAdditions
    | PlannedSchedule
    | Order
    | PlannedClearing
    | PlannedShuffle
    | PlannedPause
    | PlannedResumption
    | PlannedRemoval
    | PlannedMove
)
PlannedChange: TypeAlias = DecidedAtOnce | PlannedInFront
