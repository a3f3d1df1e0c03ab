"""Look-ups hold up neither the sweep nor the look-ups of another provider or account."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from publisher_service.application.recover_jobs import Question, Recovered
from publisher_service.domain.claim import Command
from publisher_service.domain.post_job import JobState, PostJob, Target
from publisher_service.engine.look_ups import LookUps
from publisher_service.engine.sweep import Sweep
from testkit.eventually import eventually

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


def questions(
    count: int, *, provider: str = "slow", account: str = "page", organization: str = "acme"
) -> list[Question]:
    job = PostJob(
        organization_id=organization,
        id="job",
        draft_id="draft",
        target=Target(social_account_id=account, channel="facebook"),
        state=JobState.UNKNOWN,
        next_action_time=NOW,
        create_time=NOW,
        update_time=NOW,
    )
    ids = [f"{provider}-{account}-{number}" for number in range(count)]
    return [Question(job=replace(job, id=each), provider=provider) for each in ids]


class Resolve:
    """Answers for the slow provider only once `may_answer` is set."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.may_answer = asyncio.Event()

    async def __call__(self, job: PostJob) -> None:
        self.asked.append(job.id)
        if job.id.startswith("slow"):
            await self.may_answer.wait()
        if job.id.startswith("broken"):
            raise RuntimeError("a defect")

    def about(self, provider: str) -> int:
        return len([each for each in self.asked if each.startswith(provider)])


async def run(look_ups: LookUps, resolve: Resolve, done: Callable[[], bool]) -> None:
    stop = asyncio.Event()
    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        group.create_task(look_ups.run(stop))
        await eventually(done)
        stop.set()
        resolve.may_answer.set()


async def test_a_provider_that_hangs_does_not_hold_up_sweeps_or_other_providers() -> None:
    resolve, submitted = Resolve(), list[Sequence[Command]]()
    look_ups = LookUps(resolve, lambda name: 8)

    async def recover() -> Recovered:
        return Recovered(due=[], questions=[*questions(20), *questions(20, provider="quick")], more=False)

    sweep = Sweep(recover, look_ups.add, submitted.append)
    for _ in range(3):
        await sweep.step()
    await run(look_ups, resolve, lambda: resolve.about("quick") == 20)
    assert len(submitted) == 3
    assert resolve.about("slow") == 8


async def test_an_account_with_many_look_ups_does_not_hold_up_another() -> None:
    resolve = Resolve()
    look_ups = LookUps(resolve, lambda name: 2)
    look_ups.add(questions(500, account="busy"))
    look_ups.add(questions(1, account="calm"))
    await run(look_ups, resolve, lambda: len(resolve.asked) == 2)
    assert resolve.asked == ["slow-busy-0", "slow-calm-0"]


async def test_an_organization_with_many_accounts_does_not_hold_up_another() -> None:
    resolve = Resolve()
    look_ups = LookUps(resolve, lambda name: 2)
    for number in range(100):
        look_ups.add(questions(1, account=f"busy{number}"))
    look_ups.add(questions(1, account="calm", organization="other"))
    await run(look_ups, resolve, lambda: len(resolve.asked) == 2)
    assert resolve.asked == ["slow-busy0-0", "slow-calm-0"]


@pytest.mark.parametrize("organization", ["acme", "other"])
async def test_no_account_fills_the_queue_of_a_provider(organization: str) -> None:
    resolve = Resolve()
    look_ups = LookUps(resolve, lambda name: 2)
    look_ups.add(questions(2000, account="busy"))
    look_ups.add(questions(1, account="calm", organization=organization))
    await run(look_ups, resolve, lambda: len(resolve.asked) == 2)
    assert resolve.asked == ["slow-busy-0", "slow-calm-0"]


async def test_a_look_up_that_cannot_be_recorded_does_not_stop_others(caplog: pytest.LogCaptureFixture) -> None:
    resolve = Resolve()
    look_ups = LookUps(resolve, lambda name: 1)
    look_ups.add(questions(2, provider="broken"))
    with caplog.at_level(logging.ERROR):
        await run(look_ups, resolve, lambda: len(resolve.asked) == 2)
    assert len([record for record in caplog.records if "cannot be recorded" in record.getMessage()]) == 2
