"""Query plans of what callers read: no read of a queue depends on how long the other queues are."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import TextClause, text

from queue_service.adapters.postgres import queue_views, redispatch, slots
from queue_service.adapters.postgres.plans import pin_plans_of
from servicekit.pg.session import Statement
from testkit.clocks import START
from testkit.plans import Explaining, planned_on

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue

ACCOUNTS, EACH = 200, 100


@pytest.fixture
async def crowded(queue: "Queue") -> "Queue":
    """Fills 200 accounts with 20,000 future slots."""
    pages = [f"page-{index}" for index in range(ACCOUNTS)]
    await queue.fill(pages, START + timedelta(days=1), timedelta(hours=1), EACH)
    async with queue.database.statement() as connection:
        await connection.execute(text("analyze"))
    return queue


async def test_drafts_are_looked_up_one_by_one(crowded: "Queue") -> None:
    async with crowded.database.engine.connect() as connection:
        explaining = Explaining(connection, growing={"slot", "slot_target"})
        drafts = ["page-7-3", "page-8-4"]
        await slots.find_draft_slots(explaining, "acme", drafts, live_only=False, most=100)  # type: ignore[arg-type]
        explaining.check(len(drafts))


async def test_redispatch_reads_what_was_dispatched(crowded: "Queue") -> None:
    waiting = [f"waiting-{index}" for index in range(5)]
    await crowded.fill(waiting, START, timedelta(hours=1), 3)
    crowded.now = START
    await crowded.hand_over.dispatch()
    async with crowded.database.engine.connect() as connection:
        await pin_plans_of(connection)
        explaining: Any = Explaining(connection, growing={"slot", "account_queue"})
        assert len(await redispatch.find_named(explaining, "acme", [f"{each}-0" for each in waiting])) == 5
        assert await redispatch.hasten_named(explaining, "acme", [f"{each}-0" for each in waiting], now=START) == 5
        assert await redispatch.hasten_unanswered(explaining, "acme", waiting[0], now=START) == 1
        assert await redispatch.find_overlooked(explaining, "acme", waiting) == []
        assert await redispatch.repair_due_times(explaining, "acme", waiting) == 0
        explaining.check(15)
        del explaining.read[:]
        # All accounts have a slot within the longest lead.
        assert await redispatch.hasten_unanswered(explaining, "acme", "", now=START) == 5
        assert await redispatch.find_overlooked(explaining, "acme", None) == []
        explaining.check(ACCOUNTS)


@pytest.mark.parametrize("known", [0, 60], ids=["no slots", "slots of one account"])
async def test_counting_an_accounts_slots_reads_no_others(queue: "Queue", known: int) -> None:
    """Guards against statistics from before a backlog: all indexes look empty, and the planner takes any."""
    await queue.fill("page-0", START, timedelta(hours=1), known)
    async with queue.database.statement() as connection:
        await connection.execute(text("analyze"))
    await queue.fill([f"page-{index}" for index in range(1, ACCOUNTS)], START, timedelta(hours=1), EACH)
    scans = [each async for each in _scans_of_slot(queue, queue_views._VIEW)]
    assert {node["Index Name"] for node in scans} == {"slot_live_time"}
    assert all("(social_account_id = " in node["Index Cond"] for node in scans)


async def test_counting_an_accounts_slots_reads_their_index_only(crowded: "Queue") -> None:
    async with crowded.database.statement() as connection:
        await connection.execute(text("vacuum analyze slot"))
    scans = [each async for each in _scans_of_slot(crowded, queue_views._VIEW)]
    [whole] = [node for node in scans if "infinity" in node["Index Cond"]]
    assert whole["Node Type"] == "Index Only Scan"


async def _scans_of_slot(queue: "Queue", statement: TextClause | Statement) -> AsyncIterator[dict[str, Any]]:
    async with queue.database.read_session() as session:
        for node in await planned_on(session.connection, statement):
            if node.get("Index Name", "").startswith("slot_"):
                yield node
