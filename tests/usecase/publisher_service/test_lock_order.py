"""All use cases at once on the same rows: their locks never form a cycle."""

import asyncio
import random

from publisher_service.domain.outcome import AuthRefused, NotBegun, Outcome
from publisher_service.domain.post_job import Reason
from tests.usecase.publisher_service.disconnecting import disconnect
from tests.usecase.publisher_service.replica import Replica, a_command, a_draft, a_sent, a_slot_post, claims_in

UNSENT = NotBegun(reason=Reason.ACCOUNT_ON_HOLD, message="")


async def test_concurrent_use_cases_end_without_a_deadlock(replica: Replica, another: Replica) -> None:
    names = await replica.posts(40)

    async def churn(mine: Replica, version: int) -> None:
        order = random.sample(names, len(names))
        await mine.save(*(a_draft(name, f"page-{name}", version=version) for name in order))
        for name in order[:10]:
            await mine.withdraw("acme", name, 1)
        answers = await mine.claim([a_command(name) for name in order])
        await mine.settle([a_sent(each) for each in claims_in(answers)])
        await mine.recover()

    async with asyncio.TaskGroup() as group:
        for version in range(2, 10):
            group.create_task(churn(replica if version % 2 else another, version))
    assert await replica.rows("select 1 from account_gate where open_job_id is not null") == []
    assert set(await replica.states()) <= {"PUBLISHED", "PENDING", "READY"}


async def test_refused_and_disconnected_accounts_end_without_a_deadlock(replica: Replica, another: Replica) -> None:
    names = await replica.posts(30)

    async def publish(mine: Replica) -> None:
        answers = await mine.claim([a_command(name) for name in random.sample(names, len(names))])
        outcomes: list[Outcome | None] = [AuthRefused(message=""), UNSENT, None]
        await mine.settle([a_sent(each, random.choice(outcomes)) for each in claims_in(answers)])
        while await mine.relabel():
            pass

    async def leave(mine: Replica) -> None:
        for name in random.sample(names, 12):
            await disconnect(mine, f"page-{name}")

    async with asyncio.TaskGroup() as group:
        for number in range(12):
            group.create_task((leave if number % 3 else publish)((replica, another)[number % 2]))
    (counted,) = await replica.rows("select deadlocks from pg_stat_database where datname = current_database()")
    assert counted.deadlocks == 0
    assert await replica.rows("select 1 from account_gate where open_job_id is not null") == []


async def test_holds_and_take_backs_end_without_a_deadlock(replica: Replica, another: Replica) -> None:
    """Two posts an account, so that lines are woken, emptied and relabeled meanwhile."""
    for account in range(10):
        await replica.posts(2 * account + 2, account=f"page-{account}")
    drafts = {f"d{number}": f"page-{number // 2}" for number in range(20)}
    await replica.save(*(a_draft(name, account, version=2) for name, account in drafts.items()))

    async def stop(mine: Replica) -> None:
        for account in random.sample(sorted(set(drafts.values())), 6):
            await mine.hold(account, hold=f"of-{account}")
            await mine.relabel()
            await mine.release(f"of-{account}")
        some = random.sample(sorted(drafts), 8)
        await mine.take_back(*(a_slot_post(name, drafts[name]) for name in some))
        await mine.drop(*(a_slot_post(name, drafts[name]) for name in reversed(some)))

    async def publish(mine: Replica) -> None:
        order = random.sample(sorted(drafts), len(drafts))
        claimed = claims_in(await mine.claim([a_command(name, drafts[name]) for name in order]))
        await mine.settle([a_sent(each, random.choice([None, UNSENT])) for each in claimed])
        await mine.settle([a_sent(each) for each in await mine.next_in_line()])
        await mine.save(*(a_draft(name, drafts[name], version=random.randint(3, 9)) for name in order))
        await mine.recover()

    async with asyncio.TaskGroup() as group:
        for number in range(12):
            group.create_task((stop if number % 3 else publish)((replica, another)[number % 2]))
    (counted,) = await replica.rows("select deadlocks from pg_stat_database where datname = current_database()")
    assert counted.deadlocks == 0
    assert await replica.rows("select 1 from account_gate where held or open_job_id is not null") == []
