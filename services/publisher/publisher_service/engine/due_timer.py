"""Holds items until their instant: a heap, and one timer of the event loop for its head."""

import asyncio
import heapq
import itertools
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Generic, Protocol, TypeVar

from servicekit.pg.clock import SteadyClock

T = TypeVar("T")

# The loop's timer may ring a little early by the wall clock. What is left beyond this is waited for again.
_TOLERANCE = timedelta(microseconds=500)


class Alarm(Protocol):
    def cancel(self) -> None: ...


CallLater = Callable[[float, Callable[[], None]], Alarm]


class DueTimer(Generic[T]):
    """Calls `due` with the items whose instant has come; `call_later` defaults to that of the running loop."""

    def __init__(
        self, clock: SteadyClock, due: Callable[[list[T]], None], *, call_later: CallLater | None = None
    ) -> None:
        self._clock = clock
        self._due = due
        self._call_later = call_later or _on_the_running_loop
        self._heap: list[tuple[datetime, int, T]] = []
        self._order = itertools.count()
        self._alarm: Alarm | None = None
        self._armed: datetime | None = None

    def __len__(self) -> int:
        return len(self._heap)

    def hold(self, until: datetime, item: T) -> None:
        heapq.heappush(self._heap, (until, next(self._order), item))
        if self._armed is None or until < self._armed:
            self._arm()

    def release_all(self) -> list[T]:
        """Returns everything that is held, due or not: for the end of the process."""
        held = [item for _, _, item in self._heap]
        self._heap.clear()
        self._disarm()
        return held

    def _arm(self) -> None:
        self._disarm()
        if self._heap:
            self._armed = self._heap[0][0]
            delay = max((self._armed - self._clock.now()).total_seconds(), 0.0)
            self._alarm = self._call_later(delay, self._ring)

    def _disarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = self._armed = None

    def _ring(self) -> None:
        now = self._clock.now() + _TOLERANCE
        due: list[T] = []
        while self._heap and self._heap[0][0] <= now:
            due.append(heapq.heappop(self._heap)[2])
        self._alarm = self._armed = None
        self._arm()
        if due:
            self._due(due)


def _on_the_running_loop(delay: float, ring: Callable[[], None]) -> Alarm:
    return asyncio.get_running_loop().call_later(delay, ring)
