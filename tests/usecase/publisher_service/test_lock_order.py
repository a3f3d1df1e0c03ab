"""All use cases at once on the same rows: their locks never form a cycle."""

import asyncio
import random

from tests.usecase.publisher_service.replica import Replica, a_command, a_draft, a_sent, claims_in


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
