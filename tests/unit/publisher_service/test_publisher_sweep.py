"""The sweep goes on whatever the look-ups do."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from publisher_service.application.recover_jobs import Found
from publisher_service.domain.claim import Command
from publisher_service.domain.post_job import JobState, PostJob, Target
from publisher_service.entrypoints.loops import LookUps, Sweep

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


def questions(count: int) -> list[PostJob]:
    question = PostJob(
        organization_id="acme",
        id="job",
        draft_id="draft",
        target=Target(social_account_id="page", channel="facebook"),
        state=JobState.UNKNOWN,
        next_action_time=NOW,
        create_time=NOW,
        update_time=NOW,
    )
    return [replace(question, id=f"job-{number}") for number in range(count)]


class Provider:
    """Answers nobody until it may."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.may_answer = asyncio.Event()

    async def __call__(self, question: PostJob) -> None:
        self.asked.append(question.id)
        await self.may_answer.wait()


async def test_a_provider_that_hangs_does_not_hold_up_the_sweep() -> None:
    provider, handed_on = Provider(), list[Sequence[Command]]()
    look_ups = LookUps(provider)

    async def recover() -> Found:
        return Found(due=[], questions=questions(20), more=False)

    sweep = Sweep(recover, look_ups.add, handed_on.append)
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        await sweep.step()
        looking = group.create_task(look_ups.step())
        await asyncio.sleep(0)
        await sweep.step()
        await sweep.step()
        assert len(handed_on) == 3
        provider.may_answer.set()
        assert await looking
    assert len(provider.asked) == 8


async def test_every_question_is_asked_a_few_at_a_time() -> None:
    provider = Provider()
    provider.may_answer.set()
    look_ups = LookUps(provider)
    look_ups.add(questions(20))
    look_ups.add(questions(20))
    assert look_ups.some.is_set()
    assert [await look_ups.step() for _ in range(3)] == [True, True, False]
    assert sorted(provider.asked) == sorted(job.id for job in questions(20))


async def test_there_is_a_most_of_questions() -> None:
    look_ups = LookUps(Provider())
    look_ups.add(questions(5000))
    assert len(look_ups._questions) == 1000


async def test_nothing_to_ask_wakes_nobody() -> None:
    look_ups = LookUps(Provider())
    look_ups.add([])
    assert not look_ups.some.is_set()
    assert not await look_ups.step()
