"""Accounts that are disabled or not connected: dispatch passes over them, and what is too late ends MISSED."""

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import text

from queue_service.adapters.postgres import dispatch, held_up
from queue_service.adapters.postgres.plans import pin_plans
from queue_service.application.follow_accounts import follow_accounts
from queue_service.application.hand_over import EXPIRED
from queue_service.domain.account import BEFORE_ALL, Connection
from queue_service.domain.job import JobState
from queue_service.domain.late_policy import LateAction, LatePolicy
from servicekit import failpoints
from testkit.clocks import START
from testkit.plans import planned_on
from tests.usecase.queue_service.pausing import FEED, Pausing
from tests.usecase.queue_service.plans import reads
from tests.usecase.queue_service.test_queue_query_plans import STATEMENTS

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
DAY = 24 * HOUR
HELD_UP = 10_000


async def connect(queue: "Queue", version: int, *, connected: bool = True, account: str = "page") -> None:
    announced = Connection(organization_id="acme", social_account_id=account, version=version, is_connected=connected)
    await queue.apply(follow_accounts, announced)


async def due(queue: "Queue", *, disabled: bool = False) -> None:
    """Leaves a slot of d1 that is due on an account that cannot post."""
    await queue.put_schedule("page")
    await queue.save_draft("d1", FEED)
    await queue.at("d1", START)
    if disabled:
        await queue.put_schedule("page", version=2, enabled=False)
    else:
        await connect(queue, 1, connected=False)


async def sent(queue: "Queue") -> list[str]:
    while await queue.hand_over.dispatch():
        pass
    return [command.draft_id for command in queue.stream.taken()]


@pytest.mark.parametrize("disabled", [True, False], ids=["disabled", "not connected"])
async def test_what_is_too_late_is_handed_over_to_be_missed(queue: "Queue", disabled: bool) -> None:
    await due(queue, disabled=disabled)
    queue.now = START + DAY
    await queue.hand_over.miss_held_up()
    assert (await sent(queue), await queue.states()) == ([], {"d1": "SCHEDULED"})
    queue.now += MINUTE
    await queue.hand_over.miss_held_up()
    [command] = queue.stream.taken()
    assert command.not_after == START + DAY
    assert await queue.states() == {"d1": "DISPATCHED"}
    await queue.settle(queue.report(command, JobState.MISSED, 2))
    assert await queue.states() == {"d1": "MISSED"}
    assert await queue.rows("select 1 from account_queue where next_due_time is not null") == []


async def test_the_late_policy_says_when_it_is_too_late(queue: "Queue") -> None:
    await due(queue)
    await Pausing(queue).update(late_policy=LatePolicy(grace=10 * MINUTE, action=LateAction.MISS))
    queue.now = START + 11 * MINUTE
    await queue.hand_over.miss_held_up()
    assert await queue.states() == {"d1": "DISPATCHED"}


async def test_slots_of_a_paused_account_wait(queue: "Queue") -> None:
    await due(queue)
    await Pausing(queue).pause()
    queue.now = START + 30 * DAY
    await queue.hand_over.miss_held_up()
    assert (queue.stream.taken(), await queue.states()) == ([], {"d1": "SCHEDULED"})


async def test_later_slots_wait_for_their_own_latest_times(queue: "Queue") -> None:
    await due(queue)
    await queue.fill("page", START + HOUR, HOUR, 3)
    queue.now = START + DAY + MINUTE
    await queue.hand_over.miss_held_up()
    assert [command.draft_id for command in queue.stream.taken()] == ["d1"]
    [row] = await queue.rows("select next_due_time, due_time from account_queue")
    assert tuple(row) == (START + HOUR, None)


@pytest.mark.parametrize("disabled", [True, False], ids=["disabled", "not connected"])
async def test_slots_go_out_late_once_the_account_can_post_again(queue: "Queue", disabled: bool) -> None:
    await due(queue, disabled=disabled)
    queue.now = START + 5 * HOUR
    assert await sent(queue) == []
    if disabled:
        await queue.put_schedule("page", version=3)
    else:
        await connect(queue, 2)
    assert await sent(queue) == ["d1"]


async def test_a_deleted_schedule_holds_nothing_up(queue: "Queue") -> None:
    await due(queue, disabled=True)
    await queue.delete_schedule("page", version=3)
    assert await sent(queue) == ["d1"]


async def test_an_account_that_can_post_again_meanwhile_is_left_to_dispatch(queue: "Queue") -> None:
    await due(queue)
    queue.now = START + DAY + MINUTE
    async with queue.database.transaction() as tx:
        accounts, _ = await held_up.find_expired(tx, BEFORE_ALL, before=queue.now, limit=9)
        await tx.connection.execute(text("update account_queue set is_connected = true"))
        assert accounts
        assert await held_up.claim_expired(tx, accounts, before=queue.now, now=queue.now, limit=9) == []


async def test_more_than_a_batch_is_handed_over_in_one_go_by_two_replicas(queue: "Queue") -> None:
    accounts = [f"page-{number}" for number in range(30)]
    await queue.fill(accounts, START, MINUTE, 40)
    async with queue.database.transaction() as tx:
        await tx.connection.execute(text("update account_queue set is_connected = false"))
    queue.now = START + 2 * DAY
    async with asyncio.TaskGroup() as group:
        for _ in range(2):
            group.create_task(queue.handing_over().miss_held_up())
    await queue.hand_over.miss_held_up()
    drafts = [command.draft_id for command in queue.stream.taken()]
    assert (len(drafts), len(set(drafts))) == (1200, 1200)


async def test_commands_that_died_with_their_process_are_repeated(queue: "Queue") -> None:
    await due(queue)
    queue.now = START + DAY + MINUTE
    failpoints.install(f"{EXPIRED}=raise", "development")
    with pytest.raises(failpoints.FailpointHit):
        await queue.hand_over.miss_held_up()
    failpoints.install("", "development")
    assert queue.stream.taken() == []
    queue.now += timedelta(seconds=5)
    await queue.handing_over().repeat()
    assert [command.draft_id for command in queue.stream.taken()] == ["d1"]


async def test_a_full_stream_gets_no_more(queue: "Queue") -> None:
    await due(queue)
    queue.now = START + DAY + MINUTE
    queue.stream.limit = 0
    await queue.hand_over.miss_held_up()
    assert await queue.states() == {"d1": "SCHEDULED"}
    queue.stream.limit, queue.stream.filled = 9, frozenset({"acme"})
    await queue.hand_over.miss_held_up()
    assert await queue.states() == {"d1": "SCHEDULED"}


async def test_accounts_that_are_held_up_cost_dispatch_nothing(queue: "Queue") -> None:
    """10,000 such accounts have due slots; one of another kind each is disabled, disconnected or paused."""
    await queue.fill([f"held-{number}" for number in range(HELD_UP)], START, HOUR, 1)
    async with queue.database.transaction() as tx:
        reasons = """
            update account_queue set is_connected = right(social_account_id, 1) <> '1',
                schedule_version = 1, time_zone = 'UTC', enabled = right(social_account_id, 1) in ('1', '2'),
                pause_time = case when right(social_account_id, 1) = '2' then next_due_time end
        """
        await tx.connection.execute(text(reasons))
    await queue.fill("page", START, HOUR, 1)
    async with queue.database.statement() as connection:
        await connection.execute(text("vacuum analyze"))
    for statement in ("next due", "due accounts"):
        scans = await reads(queue, *STATEMENTS[statement])
        assert max(rows for _, _, rows in scans) <= 1, (statement, scans)
    async with queue.database.transaction() as tx:
        plan = await planned_on(tx.connection, dispatch._LOCK_DUE)
    assert {node["Index Name"] for node in plan if "Index Name" in node} == {"account_queue_due", "account_queue_pkey"}
    assert await sent(queue) == ["page-0"]


async def test_the_sweep_finds_its_rows_by_indexes(queue: "Queue") -> None:
    await queue.fill([f"page-{number}" for number in range(1000)], START, HOUR, 3)
    async with queue.database.statement() as connection:
        await connection.execute(text("analyze"))
    for statement in (held_up._FIND, held_up._LOCK, held_up._EXPIRE, held_up._ADVANCE):
        async with queue.database.transaction() as tx:
            await pin_plans(tx)
            plan = await planned_on(tx.connection, statement)
        scans = [node for node in plan if node.get("Relation Name")]
        kinds = {node["Node Type"] for node in scans if "Scan" in node["Node Type"]}
        assert kinds <= {"Index Scan", "Index Only Scan"}, (statement.text, scans)
