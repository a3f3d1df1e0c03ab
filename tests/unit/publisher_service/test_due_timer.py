"""The local timer releases work at its instant, in order."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest

from publisher_service.engine.due_timer import DueTimer
from servicekit.pg.clock import SteadyClock
from testkit.clocks import START, FrozenClock
from testkit.database_clocks import FrozenDatabaseClock

SOON = START + timedelta(milliseconds=100)


class Bell:
    """A timer of the loop that rings only when the test rings it."""

    def __init__(self) -> None:
        self.delays: list[float] = []
        self.ring: Callable[[], None] = lambda: None
        self.canceled = 0

    def call_later(self, delay: float, callback: Callable[[], None]) -> "Bell":
        self.delays.append(round(delay, 6))
        self.ring = callback
        return self

    def cancel(self) -> None:
        self.canceled += 1


@contextmanager
def a_timer() -> Iterator[tuple[DueTimer[str], Bell, FrozenClock, list[list[str]]]]:
    clock, bell, due = FrozenClock(), Bell(), list[list[str]]()
    timer: DueTimer[str] = DueTimer(_observed(clock), due.append, call_later=bell.call_later)
    yield timer, bell, clock, due


def _observed(clock: FrozenClock) -> SteadyClock:
    """Returns a clock that has just read a database whose time equals the machine's."""
    steady = SteadyClock(clock)
    steady.learn(clock.now(), asked=clock.monotonic(), answered=clock.monotonic())
    return steady


def test_due_work_is_released_in_order_and_together() -> None:
    with a_timer() as (timer, bell, clock, due):
        timer.hold(SOON + timedelta(milliseconds=2), "third")
        timer.hold(SOON, "first")
        timer.hold(SOON, "second")
        timer.hold(SOON + timedelta(seconds=1), "later")
        clock.advance(timedelta(milliseconds=102))
        bell.ring()
        assert due == [["first", "second", "third"]]
        assert len(timer) == 1
        assert bell.delays[-1] == pytest.approx(0.998, abs=0.001)


def test_the_timer_waits_for_the_earliest_instant() -> None:
    with a_timer() as (timer, bell, _clock, _due):
        timer.hold(START + timedelta(seconds=5), "far")
        timer.hold(START + timedelta(seconds=1), "near")
        timer.hold(START + timedelta(seconds=3), "between")
        assert bell.delays == [5.0, 1.0]
        assert bell.canceled == 1


def test_an_early_ring_waits_for_the_rest_of_the_time() -> None:
    with a_timer() as (timer, bell, clock, due):
        timer.hold(SOON, "work")
        clock.advance(timedelta(milliseconds=98))
        bell.ring()
        assert due == []
        assert bell.delays == pytest.approx([0.1, 0.002], abs=0.0001)
        clock.advance(timedelta(milliseconds=2))
        bell.ring()
        assert due == [["work"]]


async def test_the_database_clock_decides_not_the_machines() -> None:
    """The machine's clock is set back by an hour; the reading of the database's clock goes on."""
    with a_timer() as (timer, bell, clock, due):
        session: Any = None
        await timer._clock.observe(FrozenDatabaseClock(START), session)
        timer.hold(SOON, "work")
        clock.jump(START - timedelta(hours=1))
        clock.advance(timedelta(milliseconds=100))
        bell.ring()
        assert due == [["work"]]


def test_overdue_work_is_released_at_once() -> None:
    with a_timer() as (timer, bell, _clock, due):
        timer.hold(START - timedelta(hours=1), "late")
        assert bell.delays == [0.0]
        bell.ring()
        assert due == [["late"]]


def test_release_all_returns_everything_and_stops_the_timer() -> None:
    with a_timer() as (timer, bell, _clock, due):
        timer.hold(SOON, "one")
        timer.hold(START + timedelta(days=1), "two")
        assert sorted(timer.release_all()) == ["one", "two"]
        assert (len(timer), bell.canceled) == (0, 1)
        bell.ring()
        assert due == []
        assert timer.release_all() == []


async def test_the_timer_rings_on_the_running_loop() -> None:
    rung: asyncio.Future[list[Any]] = asyncio.get_running_loop().create_future()
    clock = FrozenClock()
    timer: DueTimer[str] = DueTimer(_observed(clock), rung.set_result)
    timer.hold(clock.now(), "work")
    async with asyncio.timeout(5):
        assert await rung == ["work"]
