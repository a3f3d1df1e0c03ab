"""Answers of providers are recorded in batches, and the stream gets its replies afterwards."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

import pytest

from publisher_service.application.send_post import Sent
from publisher_service.domain.outcome import Accepted
from publisher_service.domain.post_job import JobState, PostJob, Reason
from publisher_service.engine.held_command import HeldCommand
from publisher_service.engine.lane import ProviderLane
from publisher_service.engine.settling import Settling
from publisher_service.engine.wake_up import WakeUp
from servicekit.pg.clock import SteadyClock
from testkit.clocks import FrozenClock
from testkit.eventually import eventually
from tests.unit.publisher_service.engine_parts import RecordingDelivery, a_claimed, a_held
from tests.unit.publisher_service.post_jobs import NOW, command, sending

PUBLISHED = replace(sending(JobState.PUBLISHED), next_action_time=None)
RETRIED = replace(sending(JobState.WAITING), state_reason=Reason.RETRY, next_action_time=NOW + timedelta(seconds=30))


class SettlePosts:
    """Fails as often as `failures` says, then returns `job` for each post of a batch."""

    def __init__(self, job: PostJob, *, failures: Sequence[Exception] = ()) -> None:
        self.job = job
        self.failures = list(failures)
        self.batches: list[int] = []

    async def __call__(self, batch: Sequence[Sent]) -> list[PostJob]:
        if self.failures:
            raise self.failures.pop()
        self.batches.append(len(batch))
        return [self.job for _ in batch]


def a_settling(settle: SettlePosts) -> Settling:
    clock = FrozenClock(NOW)
    steady = SteadyClock(clock)
    steady.learn(clock.now(), asked=clock.monotonic(), answered=clock.monotonic())
    lane = ProviderLane("sandbox", senders=1, lease=timedelta(seconds=15))
    return Settling(cast(Any, settle), steady=steady, lanes={"sandbox": lane}, wake_up=WakeUp())


async def settled(settling: Settling, count: int) -> list[list[object]]:
    """Settles so many answers, and returns the replies to each command."""
    deliveries = [RecordingDelivery() for _ in range(count)]
    for delivery in deliveries:
        held = a_held(command("slot-1"), delivery)
        settling.open(held)
        sent = Sent(claimed=a_claimed(held.command), outcome=Accepted(external_id="x", external_url=""), time=NOW)
        settling.add(held, sent)
    settling.end()
    async with asyncio.timeout(10):
        await settling.run()
    return [delivery.replies for delivery in deliveries]


async def test_a_batch_is_recorded_together_and_then_acknowledged() -> None:
    settle = SettlePosts(PUBLISHED)
    assert await settled(a_settling(settle), 300) == [["ack"]] * 300
    assert settle.batches == [250, 50]


async def test_the_command_of_a_short_wait_returns_to_the_stream() -> None:
    assert await settled(a_settling(SettlePosts(RETRIED)), 1) == [[timedelta(seconds=30)]]


async def test_an_answer_is_recorded_once_the_database_is_back() -> None:
    settle = SettlePosts(PUBLISHED, failures=[ConnectionResetError()])
    assert await settled(a_settling(settle), 2) == [["ack"]] * 2
    assert settle.batches == [2]


async def test_an_end_without_answers_needs_no_database() -> None:
    settle = SettlePosts(PUBLISHED, failures=[ConnectionResetError()])
    settling = a_settling(settle)
    async with asyncio.TaskGroup() as group:
        group.create_task(settling.run())
        await asyncio.sleep(0)
        settling.end()
    assert len(settle.failures) == 1
    assert settle.batches == []


async def test_an_unexpected_error_is_not_repeated() -> None:
    with pytest.raises(RuntimeError):
        await settled(a_settling(SettlePosts(PUBLISHED, failures=[RuntimeError("a defect")])), 1)


async def test_commands_are_open_until_they_are_settled() -> None:
    settling = a_settling(SettlePosts(PUBLISHED))
    held = a_held(command("slot-1"))
    settling.open(held)
    assert list(settling.opened) == [held]
    assert settling.settled == 0
    await settled(settling, 2)
    assert settling.settled == 2


async def test_answers_of_a_load_are_recorded_together() -> None:
    settle = SettlePosts(PUBLISHED)
    settling = a_settling(settle)
    all_held = [a_held(command("slot-1")) for _ in range(300)]
    for held in all_held:
        settling.open(held)

    def answer(some: Sequence[HeldCommand]) -> None:
        for held in some:
            outcome = Accepted(external_id="x", external_url="")
            settling.add(held, Sent(claimed=a_claimed(held.command), outcome=outcome, time=NOW))

    async with asyncio.TaskGroup() as group:
        group.create_task(settling.run())
        answer(all_held[:1])
        await asyncio.sleep(0)
        answer(all_held[1:250])
        await eventually(lambda: settling.settled > 0)
        answer(all_held[250:])
        settling.end()
    assert settle.batches == [250, 50]
