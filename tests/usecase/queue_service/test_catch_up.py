"""CatchUp moves slots to where newly announced time zone data put them."""

import asyncio
from datetime import UTC, time, timedelta
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import text

from postflow.queue.v1.queue_events_pb2 import SLOT_MOVE_REASON_ZONE_DATA
from queue_service.domain.job import JobState
from queue_service.domain.late_policy import LateAction, LatePolicy
from queue_service.domain.policy import Policy
from testkit.clocks import START
from tests.usecase.queue_service.pausing import Pausing
from tests.usecase.queue_service.tzdata import (
    CURRENT,
    DAILY,
    DAY,
    HOUR,
    HOURLY,
    NEWER,
    NOON,
    announce_again,
    caught_up,
    is_behind,
    queued,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.usecase.queue_service.conftest import Queue, Statements

FIRST_OF_EACH = "select social_account_id, min(schedule_time) as at from slot group by social_account_id"


@pytest.mark.parametrize("shift", [HOUR, -HOUR])
async def test_slots_move_when_new_time_zone_data_are_announced(queue: "Queue", shift: timedelta) -> None:
    await queued(queue, "d0", "d1", "d2")
    await queue.outdate("page", shift)
    before = {row.id: row.schedule_time for row in await queue.rows("select id, schedule_time from slot")}
    await announce_again(queue)
    await caught_up(queue)

    rows = await queue.rows("select * from slot order by schedule_time")
    assert [row.schedule_time for row in rows] == [NOON, NOON + DAY, NOON + 2 * DAY]
    for row in rows:
        assert (row.revision, row.tzdata_version, row.local_time) == (2, CURRENT, time(12))
        assert row.local_date == row.schedule_time.date()
        assert row.not_after == row.schedule_time + timedelta(hours=24)
        assert row.update_time == queue.now
    moves = await queue.moves()
    assert {each.slot_id: each.previous_schedule_time.ToDatetime(UTC) for each in moves} == before
    for row, move in zip(rows, sorted(moves, key=lambda each: each.schedule_time.ToDatetime()), strict=True):
        assert (move.organization_id, move.slot_id, move.revision) == ("acme", row.id, 2)
        assert (move.draft_id, move.social_account_id) == (row.draft_id, "page")
        assert [(each.channel, each.social_account_id) for each in move.targets] == [("facebook", "page")]
        assert move.schedule_time.ToDatetime(UTC) == row.schedule_time
        assert (move.time_zone, move.nominal_local_time) == ("UTC", f"{row.schedule_time:%Y-%m-%dT%H:%M}")
        assert move.reason == SLOT_MOVE_REASON_ZONE_DATA
    [account] = await queue.rows("select * from account_queue")
    assert (account.next_due_time, account.slots_behind, account.tzdata_version) == (NOON, False, CURRENT)
    assert not await queue.catch_up()


@pytest.mark.parametrize("shift", [HOUR, -HOUR, 3 * HOUR])
async def test_five_hundred_slots_move_in_as_many_statements_as_two(
    queue: "Queue", statements: "Statements", shift: timedelta
) -> None:
    await queue.put_schedule("page", *HOURLY)
    first = NOON + DAY
    costs = []
    for count in (2, 500):
        await queue.fill_weekly("page", first, HOUR, count)
        await queue.outdate("page", shift)
        await announce_again(queue)
        statements.clear()
        assert await queue.catch_up()
        costs.append(len(statements.texts))
        assert await queue.times() == [first + number * HOUR for number in range(count)]
        assert len(await queue.moves()) == count
        async with queue.database.transaction() as tx:
            await tx.connection.execute(text("truncate slot, slot_target, outbox"))
    assert costs[0] == costs[1]


@pytest.mark.parametrize("shift", [HOUR, -HOUR])
async def test_more_slots_than_one_statement_takes_move_as_well(queue: "Queue", shift: timedelta) -> None:
    await queue.put_schedule("page", *HOURLY)
    await queue.fill_weekly("page", NOON + DAY, HOUR, 1100)
    await queue.outdate("page", shift)
    await announce_again(queue)
    await caught_up(queue)
    assert await queue.times() == [NOON + DAY + number * HOUR for number in range(1100)]
    moves = await queue.moves()
    assert len(moves) == len({move.slot_id for move in moves}) == 1100


async def test_many_accounts_catch_up_a_few_at_a_time(queue: "Queue") -> None:
    accounts = [f"page-{number:02}" for number in range(25)]
    for account in accounts:
        await queue.put_schedule(account, *HOURLY)
    await queue.fill_weekly(accounts, NOON, HOUR, 3)
    for account in accounts:
        await queue.outdate(account, HOUR)
        await announce_again(queue, account)
    steps = [await queue.catch_up() for _ in range(4)]
    assert steps == [True, True, True, False]
    assert await queue.times() == sorted([NOON, NOON + HOUR, NOON + 2 * HOUR] * 25)


async def test_time_zone_data_that_move_nothing_are_recorded_only(queue: "Queue") -> None:
    await queued(queue, "d1", "d2")
    await queue.outdate("page", timedelta(0))
    queue.now += timedelta(minutes=1)
    await announce_again(queue)
    await caught_up(queue)
    for row in await queue.rows("select revision, tzdata_version, update_time from slot"):
        assert row == (1, CURRENT, START)
    assert await queue.moves() == []


async def test_slots_of_the_release_before_mean_their_local_time(queue: "Queue") -> None:
    await queued(queue, "d1")
    async with queue.database.transaction() as tx:
        await tx.connection.execute(
            text("""
                update slot set nominal_local_time = null, tzdata_version = null,
                    schedule_time = schedule_time + interval '1 hour', not_after = not_after + interval '1 hour'
            """)
        )
        await tx.connection.execute(text("update account_queue set tzdata_version = ''"))
    await announce_again(queue)
    await caught_up(queue)
    [row] = await queue.rows("select schedule_time, nominal_local_time, revision from slot")
    assert row == (NOON, NOON.replace(tzinfo=None), 2)


async def test_newer_time_zone_data_wait_for_a_process_that_has_them(queue: "Queue") -> None:
    for account in ("page", "other"):
        await queue.put_schedule(account, *DAILY)
        await queue.fill_weekly(account, NOON, DAY, 2)
        await queue.outdate(account, HOUR)
    await queue.put_schedule("page", *DAILY, version=2, announce=False)
    await queue.announce_schedule("page", tzdata_version=NEWER, max_posts_per_day=1)
    await announce_again(queue, "other")
    await caught_up(queue)
    first_times = {row.social_account_id: row.at for row in await queue.rows(FIRST_OF_EACH)}
    assert first_times == {"page": NOON + HOUR, "other": NOON}
    assert await is_behind(queue)
    [known] = await queue.rows("select * from account_queue where social_account_id = 'page'")
    assert (known.schedule_version, known.max_posts_per_day) == (2, 1)  # nothing else has to wait
    await queue.save_draft("d1", "page")
    await queue.add("d1")

    assert await queue.catching_up(NEWER)()
    first_times = {row.social_account_id: row.at for row in await queue.rows(FIRST_OF_EACH)}
    assert first_times == {"page": NOON, "other": NOON}
    assert not await is_behind(queue)


async def test_two_processes_move_each_slot_once(make_queue: "Callable[[Policy], Queue]") -> None:
    one, other = make_queue(Policy()), make_queue(Policy())
    accounts = [f"page-{number:02}" for number in range(30)]
    for account in accounts:
        await one.put_schedule(account, *HOURLY)
    await one.fill_weekly(accounts, NOON, HOUR, 20)
    for account in accounts:
        await one.outdate(account, HOUR)
        await announce_again(one, account)
        await one.save_draft(f"new-{account}", account)
    other.schedule = one.schedule
    async with asyncio.TaskGroup() as group:
        for queue in (one, other):
            group.create_task(caught_up(queue))
            group.create_task(caught_up(queue))
        for account in accounts:
            group.create_task(one.add(f"new-{account}"))
    moves = await one.moves()
    assert len(moves) == len({move.slot_id for move in moves}) == 600
    assert {move.revision for move in moves} == {2}
    expected = [NOON + number * HOUR for number in range(20)]
    for account in accounts:
        rows = await one.rows(
            "select schedule_time from slot where social_account_id = :account and draft_id not like 'new%' order by 1",
            account=account,
        )
        assert [row.schedule_time for row in rows] == expected


async def test_moving_dispatching_and_settling_at_once_do_not_deadlock(
    make_queue: "Callable[[Policy], Queue]",
) -> None:
    queue = make_queue(Policy(per_account=1))
    accounts = [f"page-{number}" for number in range(6)]
    for account in accounts:
        await queue.put_schedule(account, *HOURLY)
    await queue.fill_weekly(accounts, NOON, timedelta(minutes=5), 40)
    queue.now = NOON + HOUR

    async def hand_over() -> None:
        for _ in range(20):
            await queue.hand_over.dispatch()
            taken = queue.stream.taken()
            states = (JobState.FAILED, JobState.PUBLISHED, JobState.CANCELED)
            await queue.settle(*(queue.report(each, states[n % 3]) for n, each in enumerate(taken)))

    async def announce() -> None:
        for number in range(10):
            for account in accounts:
                await queue.announce_schedule(account, version=number + 2, tzdata_version=f"{2030 + number}a")
            await queue.catching_up("2999a")()

    async with asyncio.TaskGroup() as group:
        group.create_task(hand_over())
        group.create_task(announce())
        group.create_task(hand_over())
    queue.catch_up = queue.catching_up("2999a")
    await caught_up(queue)
    for account in accounts:
        assert not await is_behind(queue, account)
    waiting = await queue.rows(
        "select social_account_id, min(schedule_time) as at from slot where state = 'SCHEDULED' group by 1"
    )
    due = await queue.rows("select social_account_id, next_due_time from account_queue")
    known = {row.social_account_id: row.next_due_time for row in due}
    for row in waiting:
        assert known[row.social_account_id] is not None
        assert known[row.social_account_id] <= row.at


@pytest.mark.parametrize("shift", [HOUR, -HOUR])
async def test_a_moved_slot_may_be_as_late_as_its_queue_allows(queue: "Queue", shift: timedelta) -> None:
    await queued(queue, "d0", "d1")
    await Pausing(queue).update(late_policy=LatePolicy(grace=timedelta(minutes=3), action=LateAction.MISS))
    await queue.outdate("page", shift)
    await announce_again(queue)
    await caught_up(queue)
    rows = await queue.rows("select schedule_time, not_after, revision from slot order by 1")
    assert [(row.schedule_time, row.revision) for row in rows] == [(NOON, 2), (NOON + DAY, 2)]
    assert {row.not_after - row.schedule_time for row in rows} == {timedelta(minutes=3)}
    queue.now = NOON - Policy().lead
    await queue.hand_over.dispatch()
    [command] = queue.stream.taken()
    assert (command.schedule_time, command.not_after) == (NOON, NOON + timedelta(minutes=3))
