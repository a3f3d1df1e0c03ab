"""Finding out about connections that were not heard of, by asking Publisher and by comparing."""

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import text

from queue_service.adapters.postgres import connections
from queue_service.application.follow_accounts import follow_accounts
from queue_service.application.repair_connections import RepairConnections
from queue_service.domain.account import Connection
from servicekit.faults import Unavailable
from testkit.clocks import START
from testkit.plans import planned
from tests.usecase.queue_service.pausing import Pausing

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue

HOUR = timedelta(hours=1)


@pytest.fixture
def repair(queue: "Queue") -> RepairConnections:
    return RepairConnections(database=queue.database, clock=queue.clock, accounts=queue.accounts)


async def disconnect(queue: "Queue", *accounts: str, version: int = 2) -> None:
    gone = [
        Connection(organization_id="acme", social_account_id=each, version=version, is_connected=False)
        for each in accounts
    ]
    await queue.apply(follow_accounts, *gone)


async def held_up(queue: "Queue") -> set[str]:
    rows = await queue.rows("select social_account_id from account_queue where not is_connected")
    return {row.social_account_id for row in rows}


async def test_an_account_whose_connection_was_not_heard_of_is_dispatched(
    queue: "Queue", repair: RepairConnections
) -> None:
    await queue.fill("page", START, HOUR, 1)
    await disconnect(queue, "page")
    assert not await queue.hand_over.dispatch()
    await repair()
    assert await queue.hand_over.dispatch()
    [row] = await queue.rows("select version, is_connected from social_account")
    assert tuple(row) == (9, True)


async def test_an_older_answer_changes_nothing(queue: "Queue", repair: RepairConnections) -> None:
    """The account was disconnected after Publisher had answered."""
    await queue.fill("page", START, HOUR, 1)
    await disconnect(queue, "page", version=10)
    await repair()
    assert await held_up(queue) == {"page"}


async def test_only_accounts_with_slots_that_are_due_are_asked_about(queue: "Queue", repair: RepairConnections) -> None:
    await queue.fill(["soon", "paused", "missing", "still"], START + timedelta(minutes=5), HOUR, 1)
    await queue.fill(["later"], START + HOUR, HOUR, 1)
    await queue.put_schedule("empty")
    await disconnect(queue, "soon", "paused", "missing", "still", "later", "empty")
    await Pausing(queue).pause("paused")
    queue.accounts.missing, queue.accounts.disconnected = {"missing"}, {"still"}
    await repair()
    assert sorted(queue.accounts.asked) == ["missing", "soon", "still"]
    assert await held_up(queue) == {"paused", "missing", "still", "later", "empty"}


async def test_many_accounts_are_asked_about_in_turn(queue: "Queue", repair: RepairConnections) -> None:
    accounts = [f"page-{number:03}" for number in range(120)]
    await queue.fill(accounts, START, HOUR, 1)
    await disconnect(queue, *accounts)
    queue.accounts.disconnected = set(accounts)
    for _ in range(3):
        await repair()
    assert sorted(queue.accounts.asked) == accounts
    await repair()
    assert len(queue.accounts.asked) == 170


async def test_while_publisher_is_down_accounts_stay_as_they_are(queue: "Queue", repair: RepairConnections) -> None:
    await queue.fill("page", START, HOUR, 1)
    await disconnect(queue, "page")
    queue.accounts.fault = Unavailable("UNAVAILABLE", "no")
    await repair()
    assert await held_up(queue) == {"page"}


async def test_what_the_previous_release_has_stored_reaches_the_queues(
    queue: "Queue", repair: RepairConnections
) -> None:
    accounts = [f"page-{number:04}" for number in range(1500)]
    await queue.fill(accounts, START + HOUR, HOUR, 1)
    async with queue.database.transaction() as tx:
        gone = "insert into social_account select 'acme', id, 1, false from unnest(cast(:ids as text[])) as id"
        await tx.connection.execute(text(gone), {"ids": accounts[::100]})
    await repair()
    assert await held_up(queue) == set(accounts[::100])
    async with queue.database.transaction() as tx:
        await tx.connection.execute(text("update social_account set is_connected = true"))
    await repair()
    assert await held_up(queue) == set()


async def test_the_statements_find_their_rows_by_indexes(queue: "Queue") -> None:
    await queue.fill([f"page-{number}" for number in range(1000)], START, HOUR, 1)
    async with queue.database.statement() as connection:
        await connection.execute(text("analyze"))
    [scan] = [node for node in await planned(queue.database, connections._DISCONNECTED) if "Scan" in node["Node Type"]]
    assert scan["Index Name"] == "account_queue_held_up"
    compared = await planned(queue.database, connections._OUTDATED)
    names = {node["Index Name"] for node in compared if "Index Name" in node}
    assert names == {"account_queue_pkey", "social_account_pkey"}
