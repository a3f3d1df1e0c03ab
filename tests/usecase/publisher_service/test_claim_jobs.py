"""Claims by several replicas at once: each post is claimed once, and an account has one open attempt."""

import asyncio
import random
from collections.abc import Sequence

from publisher_service.application.claim_jobs import Retry
from publisher_service.domain.claim import Claimed, Command
from tests.usecase.publisher_service.replica import Replica, a_command, a_draft, a_sent, claims_in


async def test_two_replicas_with_the_same_commands_claim_each_post_once(replica: Replica, another: Replica) -> None:
    names = await replica.posts(500)
    claimed: list[str] = []

    async def work(mine: Replica, order: Sequence[str]) -> None:
        left = list(order)
        while left:
            batch, left = left[:50], left[50:]
            answers = await mine.claim([a_command(name) for name in batch])
            claimed.extend(answer.job.draft_id for answer in answers if isinstance(answer, Claimed))

    async with asyncio.TaskGroup() as group:
        group.create_task(work(replica, names))
        group.create_task(work(another, names[::-1]))
    assert sorted(claimed) == sorted(names)
    attempts = await replica.rows("select post_job_id, state, fence from attempt")
    assert len(attempts) == 500
    assert {(row.state, row.fence) for row in attempts} == {("SENDING", 1)}
    assert await replica.states() == {"SENDING": 500}


async def test_one_account_never_has_two_open_attempts(replica: Replica, another: Replica) -> None:
    names = await replica.posts(60, account="page")
    open_now: set[str] = set()
    sent: list[str] = []

    async def send(mine: Replica, claimed: Claimed) -> None:
        open_now.add(claimed.job.draft_id)
        assert open_now == {claimed.job.draft_id}
        await asyncio.sleep(0)
        open_now.discard(claimed.job.draft_id)
        sent.append(claimed.job.draft_id)
        await mine.settle([a_sent(claimed)])

    async def work(mine: Replica, commands: Sequence[Command]) -> None:
        left = list(commands)
        while len(sent) < len(names):
            batch, left = left[:7], left[7:]
            answers = await mine.claim(batch) if batch else []
            left += [command for command, answer in zip(batch, answers, strict=True) if isinstance(answer, Retry)]
            for claimed in [*claims_in(answers), *await mine.next_in_line()]:
                await send(mine, claimed)

    async def wake(mine: Replica) -> None:
        while len(sent) < len(names):
            await mine.wake_stranded()

    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        group.create_task(wake(another))
        for part, mine in enumerate((replica, replica, another, another)):
            group.create_task(work(mine, [a_command(name, "page") for name in names[part::4]]))
    assert sorted(sent) == sorted(names)
    assert await replica.states() == {"PUBLISHED": 60}
    assert await replica.rows("select 1 from account_gate where open_job_id is not null") == []
    numbers = [row.number for row in await replica.rows("select number from attempt")]
    assert numbers == [1] * 60


async def test_an_approval_during_the_claim_is_not_overlooked(replica: Replica, another: Replica) -> None:
    """Nothing would wake a job that was refused although its approval had just arrived."""
    names = await replica.posts(600, approved=False)

    async def approve(some: Sequence[str]) -> None:
        await asyncio.sleep(random.uniform(0, 0.01))
        await another.save(*(a_draft(name, f"page-{name}", version=2) for name in some))

    for start in range(0, 600, 40):
        round_of = names[start : start + 40]
        async with asyncio.TaskGroup() as group:
            for part in range(0, 40, 10):
                group.create_task(approve(round_of[part : part + 10]))
            await asyncio.sleep(random.uniform(0, 0.01))
            group.create_task(replica.claim([a_command(name) for name in round_of]))
    states = await replica.states()
    assert states["BLOCKED NOT_APPROVED"] == 0, states
    assert states["READY"] + states["SENDING"] + states["PENDING"] == 600


async def test_a_connection_during_the_claim_is_not_overlooked(replica: Replica, another: Replica) -> None:
    names = await replica.posts(200, connected=False)

    async def connect(some: Sequence[str]) -> None:
        for name in some:
            await another.connect(f"page-{name}")

    for start in range(0, 200, 20):
        round_of = names[start : start + 20]
        async with asyncio.TaskGroup() as group:
            for part in range(0, 20, 5):
                group.create_task(connect(round_of[part : part + 5]))
            for part in range(0, 20, 4):
                await asyncio.sleep(random.uniform(0, 0.01))
                group.create_task(replica.claim([a_command(name) for name in round_of[part : part + 4]]))
    while await replica.next_in_line():
        pass
    states = await replica.states()
    # A job that a claim found locked is claimed by its next command.
    assert states["SENDING"] + states["PENDING"] == 200, states
