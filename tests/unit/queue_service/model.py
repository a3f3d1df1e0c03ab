"""A model of an account's queue that looks at every time."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta

from civil.days import local_day
from civil.zones import find_zone
from queue_service.domain.allocation import Occupancy, days_of
from queue_service.domain.slot import COUNTED, LIVE, SPACING, SlotState

START = datetime(2026, 3, 26, 12, 0, tzinfo=UTC)
END = START + timedelta(days=12)
"""Twelve days around the change of clocks in most of Europe."""


@dataclass
class Model:
    """An account as its owner sees it: its slots, and all weekly times of the next days."""

    zone: str
    cap: int
    times: tuple[datetime, ...]
    slots: list[tuple[datetime, SlotState]] = field(default_factory=list)
    categories: Mapping[datetime, str] = field(default_factory=dict)
    skip_next: bool = False
    skipped: list[datetime] = field(default_factory=list)

    def category(self, time: datetime) -> str:
        return self.categories.get(time, "")

    def free(self, time: datetime) -> bool:
        near = any(state in LIVE and abs(at - time) < SPACING for at, state in self.slots)
        return (
            time not in self.skipped
            and not near
            and (not self.cap or self.counted()[local_day(time, find_zone(self.zone))] < self.cap)
        )

    def counted(self) -> Counter[date]:
        zone = find_zone(self.zone)
        return Counter(local_day(at, zone) for at, state in self.slots if state in COUNTED)

    def next_free(self, earliest: datetime, category: str, *, at_end: bool) -> datetime | None:
        """Returns the time of the next draft: of its category or, if none is free, of no category."""
        free = [time for time in self.times if time >= earliest and self.free(time)]
        lines = [[time for time in free if self.category(time) == name] for name in dict.fromkeys((category, ""))]
        in_order = [time for line in lines for time in line]
        return next(iter(in_order[1:] if at_end and self.skip_next else in_order), None)

    def take(self, time: datetime, *, at_end: bool, skipped: datetime | None) -> None:
        assert (skipped is not None) == (at_end and self.skip_next)
        if skipped:
            self.skip_next = False
            self.skipped.append(skipped)
        self.slots.append((time, SlotState.SCHEDULED))

    def occupancy(self, window: tuple[datetime, ...]) -> Occupancy:
        filled = {
            time for time in window if any(state in LIVE and abs(at - time) < SPACING for at, state in self.slots)
        }
        assert days_of(window, self.zone).keys() >= {local_day(time, find_zone(self.zone)) for time in window}
        return Occupancy(filled=filled, counted=self.counted())
