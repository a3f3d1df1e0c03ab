"""The times of accounts at which a new slot would be too near to a live one."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime

from queue_service.domain.account import AccountKey
from queue_service.domain.slot import SPACING, BlockingSlot, QueueSlot


class TakenTimes:
    """Live slots near the times that several calls want. A call that gets its times blocks those after it."""

    def __init__(self, near: Mapping[tuple[AccountKey, datetime], BlockingSlot]) -> None:
        """`near` has the earliest live slot for each (account, time) that is taken."""
        self._near = near
        self._added = defaultdict[AccountKey, list[BlockingSlot]](list)

    def blocking(self, account: AccountKey, time: datetime) -> BlockingSlot | None:
        """Returns the earliest slot less than a minute away from one of the times that were looked up."""
        blocking = [slot for slot in self._added[account] if abs(slot.schedule_time - time) < SPACING]
        if near := self._near.get((account, time)):
            blocking.append(near)
        return min(blocking, key=lambda slot: slot.schedule_time, default=None)

    def add(self, slots: Iterable[QueueSlot]) -> None:
        for slot in slots:
            self._added[slot.account].append(slot.as_blocking())
