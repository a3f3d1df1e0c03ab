"""Queue's copy of which accounts are connected."""

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from queue_service.application.follow_accounts import follow_accounts
from queue_service.domain.account import Connection
from servicekit.faults import Refused
from testkit.clocks import START

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue

ROW = "select 1 from account_queue where"
LATER = START + timedelta(hours=1)


def connection(account: str, version: int, *, connected: bool = True) -> Connection:
    return Connection(organization_id="acme", social_account_id=account, version=version, is_connected=connected)


async def test_the_newest_announcement_holds_in_any_order(queue: "Queue") -> None:
    await queue.apply(follow_accounts, connection("page", 2, connected=False), connection("page", 3))
    await queue.apply(follow_accounts, connection("page", 2, connected=False), connection("page", 1))
    await queue.save_draft("d1", "page")
    await queue.at("d1", LATER)
    assert queue.accounts.asked == []


async def test_an_account_id_of_another_organization_is_another_account(queue: "Queue") -> None:
    other = Connection(organization_id="umbrella", social_account_id="page", version=9, is_connected=True)
    await queue.apply(follow_accounts, other)
    queue.accounts.missing = {"page"}
    await queue.save_draft("d1", "page")
    with pytest.raises(Refused):
        await queue.at("d1", LATER)


async def test_dispatch_passes_over_an_account_while_it_is_not_connected(queue: "Queue") -> None:
    await queue.save_draft("d1", "page")
    await queue.at("d1", LATER)
    await queue.apply(follow_accounts, connection("page", 2, connected=False))
    queue.now = LATER
    assert not await queue.hand_over.dispatch()
    assert await queue.rows("select 1 from account_queue where due_time is not null") == []
    await queue.apply(follow_accounts, connection("page", 1))
    assert not await queue.hand_over.dispatch()
    await queue.apply(follow_accounts, connection("page", 3))
    assert await queue.hand_over.dispatch()
    assert await queue.states() == {"d1": "DISPATCHED"}


async def test_a_queue_begins_as_its_account_was_announced(queue: "Queue") -> None:
    await queue.apply(follow_accounts, connection("page", 1, connected=False), connection("other", 1))
    await queue.put_schedule("page")
    await queue.save_draft("d1", "other", "third")
    await queue.at("d1", LATER, "other", "third")
    found = {row.social_account_id: row.is_connected for row in await queue.rows("select * from account_queue")}
    assert found == {"page": False, "other": True, "third": True}


async def test_another_organization_keeps_dispatching(queue: "Queue") -> None:
    await queue.fill("page", START, timedelta(hours=1), 1, organization_id="umbrella")
    await queue.apply(follow_accounts, connection("page", 2, connected=False))
    assert await queue.hand_over.dispatch()


async def test_announcements_lock_queues_in_their_order(queue: "Queue") -> None:
    """A writer that has the first account locked is waited for, and no other account is locked meanwhile."""
    await queue.fill(["a", "b"], LATER, timedelta(hours=1), 1)
    async with asyncio.TaskGroup() as group, queue.database.transaction() as tx:
        await tx.connection.exec_driver_sql(f"{ROW} social_account_id = 'a' for update")
        gone = (connection("b", 2, connected=False), connection("a", 2, connected=False))
        group.create_task(queue.apply(follow_accounts, *gone))
        await queue.until_waiting()
        await tx.connection.exec_driver_sql(f"{ROW} social_account_id = 'b' for update nowait")
    assert await queue.rows("select 1 from account_queue where is_connected") == []
