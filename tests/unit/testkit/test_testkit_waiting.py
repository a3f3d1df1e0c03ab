from datetime import timedelta

import pytest

from testkit.clocks import START, FrozenClock
from testkit.eventually import eventually


async def test_the_first_true_value_is_returned() -> None:
    values = iter([0, "", "there"])
    assert await eventually(lambda: next(values)) == "there"


async def test_a_coroutine_function_is_a_condition_too() -> None:
    values = iter([False, True])

    async def condition() -> bool:
        return next(values)

    assert await eventually(condition)


async def test_an_assertion_that_fails_is_tried_again() -> None:
    values = iter([1, 2, 3])

    def condition() -> bool:
        assert next(values) == 3
        return True

    assert await eventually(condition)


async def test_the_last_value_is_shown_when_the_time_is_over() -> None:
    with pytest.raises(AssertionError, match=r"not within 0\.05 s; at last it was \[\]"):
        await eventually(list[int], within=0.05)


async def test_the_last_assertion_is_shown_when_the_time_is_over() -> None:
    def condition() -> bool:
        raise AssertionError("three is missing")

    with pytest.raises(AssertionError, match="three is missing"):
        await eventually(condition, within=0.05)


async def test_other_errors_are_not_waited_out() -> None:
    with pytest.raises(ZeroDivisionError):
        await eventually(lambda: 1 / 0)


def test_a_frozen_clock_moves_only_when_told() -> None:
    clock = FrozenClock()
    assert clock.now() == clock.now() == START
    before = clock.monotonic()
    clock.advance(timedelta(minutes=1))
    assert clock.now() - START == timedelta(minutes=1)
    assert clock.monotonic() - before == 60


def test_a_jump_of_the_wall_clock_leaves_monotonic_time_alone() -> None:
    clock = FrozenClock()
    before = clock.monotonic()
    clock.jump(START - timedelta(hours=1))
    assert clock.now() == START - timedelta(hours=1)
    assert clock.monotonic() == before
