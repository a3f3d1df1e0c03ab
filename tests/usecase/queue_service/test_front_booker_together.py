"""Drafts put in front and at the end of one queue at the same time, by two processes."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

from civil.weekly import WeeklySlot
from postflow.queue.v1.queue_service_pb2 import QUEUE_PLACE_END, QUEUE_PLACE_FRONT
from queue_service.domain.policy import Policy

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue

HOURLY = [WeeklySlot(day=day, hour=hour, minute=0) for day in range(7) for hour in range(24)]
MINUTE = timedelta(minutes=1)
ACCOUNTS = ("page", "shop")
DRAFTS = [f"d{number}" for number in range(24)]


async def test_no_two_slots_come_within_a_minute_and_none_is_lost(make_queue: Callable[[Policy], "Queue"]) -> None:
    one, other = make_queue(Policy()), make_queue(Policy())
    other.schedule.slots, other.schedule.schedules = one.schedule.slots, one.schedule.schedules
    other.drafts.drafts = one.drafts.drafts
    for account in ACCOUNTS:
        await one.put_schedule(account, *HOURLY, cap=7)
    for draft in DRAFTS:
        await one.save_draft(draft, *ACCOUNTS)
    async with asyncio.TaskGroup() as group:
        for number, draft in enumerate(DRAFTS):
            place = QUEUE_PLACE_FRONT if number % 3 else QUEUE_PLACE_END
            # Each names the accounts in an order of its own.
            group.create_task((one, other)[number % 2].add(draft, *ACCOUNTS[:: 1 - number % 2 * 2], place=place))
    for account in ACCOUNTS:
        rows = await one.rows(
            "select schedule_time as at, local_date as day from slot where social_account_id = :name order by 1",
            name=account,
        )
        assert len(rows) == len(DRAFTS)
        assert all(second.at - first.at >= MINUTE for first, second in pairwise(rows))
        days = [row.day for row in rows]
        assert max(map(days.count, days)) <= 7
        [queue] = await one.rows("select arrangement from account_queue where social_account_id = :name", name=account)
        assert queue.arrangement == len(DRAFTS)
