from datetime import timedelta

from testkit.clocks import START, FrozenClock


def test_a_frozen_clock_moves_only_by_advance() -> None:
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
