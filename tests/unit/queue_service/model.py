"""A model of an account's queue that looks at every time."""

from collections import Counter
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

    def free(self, time: datetime) -> bool:
        near = any(state in LIVE and abs(at - time) < SPACING for at, state in self.slots)
        return not near and (not self.cap or self.counted()[local_day(time, find_zone(self.zone))] < self.cap)

    def counted(self) -> Counter[date]:
        zone = find_zone(self.zone)
        return Counter(local_day(at, zone) for at, state in self.slots if state in COUNTED)

    def first_free(self, earliest: datetime) -> datetime | None:
        return next((time for time in self.times if time >= earliest and self.free(time)), None)

    def occupancy(self, window: tuple[datetime, ...]) -> Occupancy:
        filled = {
            time for time in window if any(state in LIVE and abs(at - time) < SPACING for at, state in self.slots)
        }
        assert days_of(window, self.zone).keys() >= {local_day(time, find_zone(self.zone)) for time in window}
        return Occupancy(filled=filled, counted=self.counted())
