"""Withdrawals against claims and settlements: after the answer no older text starts."""

import asyncio
import random
from collections import Counter
from collections.abc import Sequence

from publisher_service.domain.claim import Claimed
from publisher_service.domain.withdrawal import Withdrawal
from tests.usecase.publisher_service.replica import Replica, a_command, a_sent, claims_in


async def test_no_older_text_starts_after_a_withdrawal_was_answered(replica: Replica, another: Replica) -> None:
    names = await replica.posts(200)
    late: set[str] = set()

    async def withdraw(name: str) -> None:
        await asyncio.sleep(random.uniform(0, 0.02))
        if (await another.withdraw("acme", name, 2)).in_flight:
            late.add(name)

    for start in range(0, 200, 20):
        round_of = names[start : start + 20]
        async with asyncio.TaskGroup() as group:
            for name in round_of:
                group.create_task(withdraw(name))
            for half in (round_of[:10], round_of[10:]):
                await asyncio.sleep(random.uniform(0, 0.02))
                group.create_task(replica.claim([a_command(name) for name in half]))
        again = await replica.claim([a_command(name) for name in round_of])
        assert not any(isinstance(answer, Claimed) for answer in again)

    started = {row.draft_id for row in await replica.rows("select draft_id from post_job where state = 'SENDING'")}
    assert started == late
    assert len(await replica.rows("select 1 from attempt")) == len(late)
    assert await replica.states() == {"SENDING": len(late), "BLOCKED WITHDRAWN": 200 - len(late)}


async def test_a_withdrawal_reports_every_post_that_is_out(replica: Replica, another: Replica) -> None:
    """Two replicas send and settle while texts are withdrawn; the attempts confirm each answer for good."""
    names = await replica.posts(300)
    answers: dict[str, Withdrawal] = {}

    async def withdraw(mine: Replica, name: str, pause: float = 0.0) -> None:
        await asyncio.sleep(random.uniform(0, pause))
        answers[name] = await mine.withdraw("acme", name, 2)

    async def publish(mine: Replica, some: Sequence[str]) -> None:
        claimed = claims_in(await mine.claim([a_command(name) for name in some]))
        await withdraw(mine, some[1])
        await asyncio.sleep(random.uniform(0, 0.02))
        await mine.settle([a_sent(each) for each in claimed])

    for start in range(0, 300, 30):
        first, *others, last = round_of = names[start : start + 30]
        halves = round_of[:15], round_of[15:]
        await withdraw(replica, first)
        async with asyncio.TaskGroup() as group:
            for place, name in enumerate(others):
                if name not in {half[1] for half in halves}:
                    group.create_task(withdraw(another if place % 2 else replica, name, 0.08))
            for mine, half in zip((replica, another), halves, strict=True):
                group.create_task(publish(mine, half))
        await withdraw(replica, last)
        assert not claims_in(await replica.claim([a_command(name) for name in round_of]))

    jobs = {row.draft_id: row for row in await replica.rows("select * from post_job")}
    for name, answer in answers.items():
        out = jobs[name].state == "PUBLISHED"
        assert out == bool(answer.published or answer.in_flight), (name, answer)
        assert (jobs[name].withdrawn_below == 0) == bool(answer.published)
    kinds = Counter(
        "published" if each.published else "late" if each.in_flight else "in time" for each in answers.values()
    )
    assert len(kinds) == 3, kinds
