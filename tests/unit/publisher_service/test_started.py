"""Slow posts are announced as started, few of them at a time."""

from datetime import timedelta

import pytest

from publisher_service.engine.held_command import HeldCommand
from publisher_service.engine.lane import ProviderLane
from publisher_service.engine.started import Started
from tests.unit.publisher_service.engine_parts import a_claimed, a_held
from tests.unit.publisher_service.post_jobs import command


def opened(count: int, *, at: float) -> list[HeldCommand]:
    held = [a_held(command(f"slot-{index}")) for index in range(count)]
    for each in held:
        each.claimed, each.claim_started = a_claimed(each.command), at
    return held


async def a_lane(seconds: float = 0.0) -> ProviderLane:
    """Returns the lane of a provider whose requests have taken so long."""
    lane = ProviderLane("sandbox", senders=1, lease=timedelta(seconds=15))
    now = 0.0

    async def send(_: HeldCommand) -> bool:
        nonlocal now
        now += seconds
        return True

    for _ in range(50):
        lane.enter(a_held(command("slot")))
    lane.end()
    await lane.run(send, lambda: now)
    return lane


def announced(started: Started, held: list[HeldCommand], *, settled: int = 0, now: float) -> list[HeldCommand]:
    chosen = started.choose(held, settled=settled, now=now)
    for each in chosen:
        each.is_announced = True
    return chosen


async def test_a_post_is_announced_once_after_a_second() -> None:
    started, held = Started({"sandbox": await a_lane()}), opened(2, at=10)
    held[1].claim_started = 10.5
    assert announced(started, held, now=11.0) == []
    assert announced(started, held, now=11.1) == held[:1]
    assert announced(started, held, now=11.2) == []
    assert announced(started, held, now=11.6) == held[1:]


async def test_a_post_of_a_slow_provider_is_announced_if_it_is_slow_for_it() -> None:
    lane = await a_lane(2.0)
    assert 1.99 < lane.seconds < 2.01
    started, held = Started({"sandbox": lane}), opened(1, at=10)
    assert announced(started, held, now=15.9) == []
    assert announced(started, held, now=16.1) == held


async def test_few_starts_are_announced_when_everything_is_slow() -> None:
    started, count = Started({"sandbox": await a_lane()}), 0
    for second in range(1000):
        count += len(announced(started, opened(64, at=second), settled=32 * second, now=second + 2))
    assert count == pytest.approx(25 + 640 + 100, abs=5)


async def test_the_longest_open_posts_are_announced_first() -> None:
    started = Started({"sandbox": await a_lane()})
    held = [*opened(30, at=10), *opened(5, at=5)]
    assert announced(started, held, now=12) == [*held[30:], *held[:20]]
    assert announced(started, held, now=22) == held[20:21]


async def test_rare_slow_posts_are_all_announced() -> None:
    started = Started({"sandbox": await a_lane()})
    for minute in range(100):
        [held] = opened(1, at=60 * minute)
        assert announced(started, [held], settled=minute, now=60 * minute + 2) == [held]
