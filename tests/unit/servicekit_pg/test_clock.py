"""The steady clock on a simulated database whose answers take uneven times."""

from dataclasses import dataclass
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servicekit.pg.clock import DatabaseClock, SteadyClock
from testkit.clocks import START, FrozenClock

MOMENT = timedelta(microseconds=2)
"""The rounding errors of datetime arithmetic."""


class SimulatedDatabase:
    """A database whose clock has its own rate, and whose answers take as long as the test says."""

    def __init__(self, rate: float = 0.0) -> None:
        self.machine = FrozenClock()
        self.steady = SteadyClock(self.machine)
        self._rate = 1 + rate
        self._began = self.machine.monotonic()
        self._set_by = timedelta(0)

    def now(self) -> datetime:
        return START + self._set_by + timedelta(seconds=(self.machine.monotonic() - self._began) * self._rate)

    def set(self, by: timedelta) -> None:
        self._set_by += by

    def observe(self, request: float, response: float) -> None:
        asked = self.machine.monotonic()
        self.passes(request)
        reading = self.now()
        self.passes(response)
        self.steady.learn(reading, asked=asked, answered=self.machine.monotonic())

    def passes(self, seconds: float) -> None:
        self.machine.advance(timedelta(seconds=seconds))

    @property
    def ahead(self) -> timedelta:
        """Returns by how much the steady clock is ahead of the database's."""
        return self.steady.now() - self.now()


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """A reading of the database's clock, after a pause."""

    idle: float
    request: float
    response: float


SECONDS = st.floats(0, 5, allow_nan=False)
LOOKS = st.lists(st.builds(Look, idle=SECONDS, request=SECONDS, response=SECONDS), min_size=1, max_size=30)
RATES = st.floats(-90e-6, 90e-6)


@given(LOOKS, RATES)
def test_it_is_never_ahead_of_the_database(looks: list[Look], rate: float) -> None:
    database = SimulatedDatabase(rate)
    for look in looks:
        if look is not looks[0]:
            database.passes(look.idle)
            assert database.ahead <= MOMENT
        database.observe(look.request, look.response)
        assert database.ahead <= MOMENT


@given(LOOKS, RATES)
def test_it_is_behind_by_at_most_the_way_of_the_last_answer(looks: list[Look], rate: float) -> None:
    database = SimulatedDatabase(rate)
    for look in looks:
        database.passes(look.idle)
        database.observe(look.request, look.response)
        assert -database.ahead <= timedelta(seconds=look.response * 1.001) + MOMENT


@given(LOOKS, RATES, st.floats(-10_000, 10_000))
def test_a_clock_that_is_set_is_followed_from_the_next_reading_on(looks: list[Look], rate: float, by: float) -> None:
    database = SimulatedDatabase(rate)
    for look in looks:
        database.observe(look.request, look.response)
    database.set(timedelta(seconds=by))
    database.observe(0.001, 0.002)
    assert database.ahead <= timedelta(seconds=0.0031), "within the round trip nothing shows that it was set back"
    assert -database.ahead <= timedelta(seconds=0.0021)


def test_a_clock_set_back_is_followed_despite_slow_answers() -> None:
    """No answer is fast enough to reveal that it was set back."""
    database = SimulatedDatabase()
    database.observe(0, 0.001)
    database.set(timedelta(seconds=-1.5))
    for _ in range(10):
        database.passes(2)
        database.observe(2, 0.1)
    assert database.ahead <= MOMENT


def test_a_slow_answer_does_not_replace_a_better_reading() -> None:
    database = SimulatedDatabase()
    database.observe(0, 0.001)
    database.observe(0.1, 0.9)
    assert -database.ahead < timedelta(milliseconds=2)


def test_it_cannot_be_read_before_the_first_reading() -> None:
    with pytest.raises(AssertionError, match="starter"):
        SteadyClock(FrozenClock()).now()


async def test_a_time_that_was_read_beside_something_is_observed() -> None:
    database = SimulatedDatabase()

    async def read() -> tuple[datetime, str]:
        database.passes(0.2)
        moment = database.now()
        database.passes(0.3)
        return moment, "beside"

    assert await database.steady.observe_beside(DatabaseClock(), read()) == (START + timedelta(seconds=0.2), "beside")
    assert abs(database.ahead + timedelta(seconds=0.3)) <= MOMENT
