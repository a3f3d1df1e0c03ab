"""A clock that moves only when a test moves it."""

from datetime import UTC, datetime, timedelta

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
"""A Monday."""


class FrozenClock:
    def __init__(self, now: datetime = START) -> None:
        self._now = now
        self._monotonic = 1_000.0

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return self._monotonic

    def advance(self, by: timedelta) -> None:
        """Lets time pass."""
        assert by >= timedelta(0), "time does not run backwards; use `jump`"
        self._now += by
        self._monotonic += by.total_seconds()

    def jump(self, to: datetime) -> None:
        """Sets the wall clock, as an operator does; monotonic time is unaffected."""
        self._now = to
