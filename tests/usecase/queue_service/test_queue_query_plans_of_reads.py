"""Query plans of what callers read: no read of a queue depends on how long the other queues are."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import TextClause, text

from queue_service.adapters.postgres import arrangement, circumstances, queue_views, redispatch, slots, watching
from queue_service.adapters.postgres.plans import pin_plans, pin_plans_of
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
    await analyze(queue)
    return queue


async def test_drafts_are_looked_up_one_by_one(crowded: "Queue") -> None:
    async with crowded.database.engine.connect() as connection:
        explaining = Explaining(connection, growing={"slot", "slot_target"})
        drafts = ["page-7-3", "page-8-4"]
        await slots.find_draft_slots(explaining, "acme", drafts, live_only=False, most=100)  # type: ignore[arg-type]
        explaining.check(len(drafts))


async def test_a_watch_reads_slots_of_its_account_alone(crowded: "Queue") -> None:
    page, day = ("acme", "page-7"), START + timedelta(days=1)
    async with crowded.database.engine.connect() as connection:
        explaining: Any = Explaining(connection, growing={"slot", "account_queue"})
        assert len(await watching.read_states(explaining, [page, ("acme", "page-8")])) == 2
        assert await watching.first_scheduled(explaining, page) == day
        assert await watching.live_slots_of(explaining, page, ["page-7-3", "page-8-4"]) == ["page-7-3"]
        explaining.check(6)
        del explaining.read[:]
        assert await watching.find_not_scheduled(explaining, page, day, day + timedelta(hours=10)) == {}
        explaining.check(12)


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


@pytest.mark.parametrize("crowd", [(ACCOUNTS, EACH), (1, 10_000)], ids=["many accounts", "a long queue"])
@pytest.mark.parametrize("is_calm", [False, True], ids=["statistics", "statistics from a calm"])
async def test_explaining_a_slot_reads_it_and_its_neighbours(
    queue: "Queue", crowd: tuple[int, int], *, is_calm: bool
) -> None:
    accounts, each = crowd
    pages = [f"page-{index}" for index in range(accounts)]
    if is_calm:
        await analyze(queue)
    await queue.fill_weekly(pages, START + timedelta(days=1), timedelta(hours=1), each)
    if not is_calm:
        await analyze(queue)
    async with queue.database.engine.connect() as connection:
        explaining: Any = Explaining(connection, growing={"slot", "slot_target", "account_queue"})
        await circumstances.find_circumstances(explaining, "acme", "page-0-90")
        [slot] = await slots.find_slots(explaining, [("acme", "page-0-90")])
        explaining.check(1)
        before = [slot.schedule_time - timedelta(hours=number) for number in range(1, 51)]
        assert len(await circumstances.find_filling(explaining, slot, before)) == len(before)
        day = slots.Day(account=slot.account, local_date=START.date(), start=before[23], end=before[0])
        assert await slots.count_slots(explaining, [day]) == {(slot.account, START.date()): 23}
        explaining.check(len(before))


@pytest.mark.parametrize("is_calm", [False, True], ids=["statistics", "statistics from a calm"])
async def test_a_named_slot_is_looked_up_and_cleared_ones_are_counted_by_account(
    queue: "Queue", *, is_calm: bool
) -> None:
    if is_calm:
        await analyze(queue)
    await queue.fill([f"page-{index}" for index in range(ACCOUNTS)], START, timedelta(hours=1), EACH)
    await queue.rows("update slot set state = 'CANCELED', state_reason = 'CLEARED', next_emit_at = null returning 1")
    if not is_calm:
        await analyze(queue)
    async with queue.database.engine.connect() as connection:
        await pin_plans_of(connection)
        explaining: Any = Explaining(connection, growing={"slot", "draft"})
        assert await arrangement.find_account(explaining, "acme", "page-7-3") == "page-7"
        assert (await arrangement.find_one(explaining, "acme", "page-7-3"))[0].slot_id == "page-7-3"
        explaining.check(1)
        later = START + timedelta(days=900)
        assert await arrangement.count_cleared(explaining, ("acme", "page-7"), since=later) == 0
        assert await arrangement.count_cleared(explaining, ("acme", "page-7"), since=START) == EACH
        explaining.check(EACH)


async def test_a_plan_reads_the_slots_of_its_account(crowded: "Queue") -> None:
    account = ("acme", "page-7")
    async with crowded.database.engine.connect() as connection:
        explaining: Any = Explaining(connection, growing={"slot", "draft", "account_queue"})
        await pin_plans(explaining)
        assert len(await arrangement.find_seated(explaining, account)) == EACH
        explaining.check(EACH)
        del explaining.read[:]
        assert await arrangement.find_counted(explaining, account, since=START) == ()
        names = ["page-7-1", "page-7-2", "nobody"]
        for are_drafts in (False, True):
            assert len(await arrangement.find_states(explaining, account, names, are_drafts=are_drafts)) == 2
        explaining.check(len(names))


@pytest.mark.parametrize("known", [0, 60], ids=["no slots", "slots of one account"])
async def test_counting_an_accounts_slots_reads_no_others(queue: "Queue", known: int) -> None:
    """Guards against statistics from before a backlog: all indexes look empty, and the planner takes any."""
    await queue.fill("page-0", START, timedelta(hours=1), known)
    await analyze(queue)
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


async def analyze(queue: "Queue") -> None:
    async with queue.database.statement() as connection:
        await connection.execute(text("analyze"))


async def _scans_of_slot(queue: "Queue", statement: TextClause | Statement) -> AsyncIterator[dict[str, Any]]:
    async with queue.database.read_session() as session:
        for node in await planned_on(session.connection, statement):
            if node.get("Index Name", "").startswith("slot_"):
                yield node
