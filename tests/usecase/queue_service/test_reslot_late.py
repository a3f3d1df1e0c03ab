"""Late slots of queues whose policy is RESLOT: they move to free slot times, and are not dispatched before."""

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import text

from civil.weekly import WeeklySlot
from postflow.queue.v1.queue_events_pb2 import SLOT_MOVE_REASON_LATE
from queue_service.adapters.postgres import late
from queue_service.application.reslot_late import MOVED, PATIENCE, ReslotLate
from queue_service.application.times_on_demand import TimesOnDemand
from queue_service.domain.job import JobState
from queue_service.domain.late_policy import LateAction, LatePolicy
from queue_service.domain.policy import Policy
from servicekit import failpoints
from servicekit.faults import Unavailable
from testkit.clocks import START
from testkit.plans import planned_on
from tests.usecase.queue_service.pausing import FEED, Pausing

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
DAILY = [WeeklySlot(day=day, hour=12, minute=0) for day in range(7)]
NOON = START.replace(hour=12)
RESLOT = LatePolicy(grace=10 * MINUTE, action=LateAction.RESLOT)
DOWN = Unavailable("UNAVAILABLE", "schedule is down")


def reslotting(queue: "Queue") -> ReslotLate:
    return ReslotLate(
        database=queue.database,
        clock=queue.clock,
        policy=queue.policy,
        arranger=queue.arranger,
        times=TimesOnDemand(queue.read_times),
    )


@pytest.fixture
def reslot_late(queue: "Queue") -> ReslotLate:
    return reslotting(queue)


async def fall_behind(queue: "Queue") -> None:
    """Leaves two late slots, one within the grace, and one in the future, as after an hour without Queue."""
    await queue.put_schedule("page", *DAILY)
    await Pausing(queue).update(late_policy=RESLOT)
    for draft, after in (("d1", 0), ("d2", 20), ("d3", 55), ("d4", 120)):
        await queue.save_draft(draft, FEED)
        await queue.at(draft, START + after * MINUTE)
    queue.now = START + HOUR


async def times(queue: "Queue") -> dict[str, timedelta]:
    rows = await queue.rows("select draft_id, schedule_time from slot where is_live")
    return {row.draft_id: row.schedule_time - START for row in rows}


async def dispatched(queue: "Queue") -> list[str]:
    while await queue.hand_over.dispatch():
        pass
    return [command.draft_id for command in queue.stream.taken()]


async def test_late_slots_move_to_the_next_free_times(queue: "Queue", reslot_late: ReslotLate) -> None:
    await fall_behind(queue)
    assert await dispatched(queue) == []
    await reslot_late()
    noon = NOON - START
    expected = {"d1": noon, "d2": noon + timedelta(days=1), "d3": 55 * MINUTE, "d4": 2 * HOUR}
    assert await times(queue) == expected
    moves = await queue.moves()
    assert [(moved.draft_id, moved.reason) for moved in moves] == [
        ("d1", SLOT_MOVE_REASON_LATE),
        ("d2", SLOT_MOVE_REASON_LATE),
    ]
    rows = await queue.rows("select not_after - schedule_time as limit from slot")
    assert {row.limit for row in rows} == {timedelta(hours=24)}
    assert await dispatched(queue) == ["d3"]
    queue.now = START + 2 * HOUR
    assert await dispatched(queue) == ["d4"]
    queue.now = NOON
    assert await dispatched(queue) == ["d1"]


async def test_slots_within_the_grace_are_dispatched(queue: "Queue", reslot_late: ReslotLate) -> None:
    await fall_behind(queue)
    queue.now = START + 10 * MINUTE
    await reslot_late()
    assert (await queue.moves(), await dispatched(queue)) == ([], ["d1"])


async def test_late_slots_behind_unanswered_ones_move(queue: "Queue", reslot_late: ReslotLate) -> None:
    """An account that has as many unanswered slots as it may is due later than its first slot."""
    await queue.put_schedule("page", *DAILY)
    await Pausing(queue).update(late_policy=RESLOT)
    await queue.fill("page", START, MINUTE, 3)
    queue.policy = Policy(open_slots=1)
    queue.hand_over = queue.handing_over()
    queue.now = START + 2 * MINUTE
    assert await dispatched(queue) == ["page-0"]
    queue.now = START + HOUR
    await dispatched(queue)
    await reslot_late()
    assert [moved.draft_id for moved in await queue.moves()] == ["page-1", "page-2"]


async def test_slots_that_have_ended_unsent_do_not_hold_up_an_account(queue: "Queue", reslot_late: ReslotLate) -> None:
    """The account is then said to be due at the time of a slot that is gone."""
    await fall_behind(queue)
    async with queue.database.transaction() as tx:
        gone = "update slot set state = 'CANCELED', next_emit_at = null where draft_id in ('d1', 'd2')"
        await tx.connection.execute(text(gone))
    await reslot_late()
    assert await dispatched(queue) == ["d3"]


async def test_accounts_that_are_held_up_wait(queue: "Queue", reslot_late: ReslotLate) -> None:
    await fall_behind(queue)
    await Pausing(queue).pause()
    await reslot_late()
    assert await queue.moves() == []
    await queue.put_schedule("page", *DAILY, version=2, enabled=False)
    await reslot_late()
    assert await queue.moves() == []


async def test_a_schedule_that_turns_out_to_be_disabled_moves_nothing(queue: "Queue", reslot_late: ReslotLate) -> None:
    await fall_behind(queue)
    await queue.put_schedule("page", *DAILY, version=2, enabled=False, announce=False)
    await reslot_late()
    assert (await queue.moves(), await dispatched(queue)) == ([], [])


async def test_without_a_schedule_late_slots_go_out_at_the_pace(queue: "Queue", reslot_late: ReslotLate) -> None:
    await fall_behind(queue)
    await queue.delete_schedule("page", version=2)
    await reslot_late()
    assert [await times(queue)] == [{"d1": HOUR, "d2": HOUR + 5 * MINUTE, "d3": 55 * MINUTE, "d4": 2 * HOUR}]


async def test_a_late_slot_with_a_short_grace_moves_once_and_goes_out(queue: "Queue") -> None:
    """Each look takes longer than the grace: a slot that is to go out at once is late again before it is dispatched."""
    await Pausing(queue).update(late_policy=LatePolicy(grace=timedelta(seconds=1), action=LateAction.RESLOT))
    await queue.save_draft("d1", FEED)
    await queue.at("d1", START)
    queue.now = START + MINUTE
    queue.clock.tick = timedelta(seconds=2)
    async with asyncio.timeout(10):
        await reslotting(queue)()
    queue.clock.tick = timedelta(0)
    queue.now += Policy().lead
    assert (await dispatched(queue), len(await queue.moves())) == (["d1"], 1)


async def test_late_slots_wait_for_schedule_but_not_forever(queue: "Queue", reslot_late: ReslotLate) -> None:
    await fall_behind(queue)
    queue.schedule.fault = DOWN
    await reslot_late()
    assert (await queue.moves(), await dispatched(queue)) == ([], [])
    queue.now += PATIENCE
    await reslot_late()
    assert (await times(queue))["d1"] == queue.now - START
    assert "d1" in await dispatched(queue)


async def test_schedule_is_not_asked_for_every_account_while_it_is_down(
    queue: "Queue", reslot_late: ReslotLate
) -> None:
    accounts = [f"page-{number}" for number in range(10)]
    await queue.fill(accounts, START, HOUR, 1)
    for account in accounts:
        await Pausing(queue).update(account, late_policy=RESLOT)
    queue.now = START + HOUR
    queue.schedule.fault = DOWN
    await reslot_late()
    assert queue.schedule.asked == 3
    queue.schedule.fault = None
    await reslot_late()
    assert len(await queue.moves()) == 10


async def test_a_long_queue_moves_in_one_go(queue: "Queue", reslot_late: ReslotLate) -> None:
    await queue.put_schedule("page", *DAILY)
    await Pausing(queue).update(late_policy=RESLOT)
    await queue.fill("page", START, MINUTE, 1200)
    queue.now = START + timedelta(days=1)
    await reslot_late()
    moved = await times(queue)
    late = [time for time in moved.values() if time <= timedelta(days=1) - 10 * MINUTE]
    assert (len(moved), len(set(moved.values())), late) == (1200, 1200, [])


async def test_two_replicas_move_each_slot_once(queue: "Queue") -> None:
    await fall_behind(queue)
    async with asyncio.TaskGroup() as group:
        for _ in range(2):
            group.create_task(reslotting(queue)())
    assert [moved.revision for moved in await queue.moves()] == [2, 2]


async def test_a_kill_between_two_accounts_leaves_the_second_to_the_next_step(queue: "Queue") -> None:
    await fall_behind(queue)
    await queue.fill("other", START, HOUR, 1)
    await Pausing(queue).update("other", late_policy=RESLOT)
    failpoints.install(f"{MOVED}=raise", "development")
    with pytest.raises(failpoints.FailpointHit):
        await reslotting(queue)()
    failpoints.install("", "development")
    first = len(await queue.moves())
    assert 0 < first < 3
    await reslotting(queue)()
    assert len(await queue.moves()) == 3


async def test_slots_past_the_grace_of_a_queue_that_misses_them_end_missed(queue: "Queue") -> None:
    miss = LatePolicy(grace=10 * MINUTE, action=LateAction.MISS)
    await queue.save_draft("d1", FEED)
    await queue.at("d1", START)
    await Pausing(queue).update(late_policy=miss)
    queue.now = START + HOUR
    await queue.hand_over.dispatch()
    [command] = queue.stream.taken()
    # Publisher ends what comes after its latest time.
    assert command.not_after == START + 10 * MINUTE
    await queue.settle(queue.report(command, JobState.MISSED, 2))
    assert await queue.states() == {"d1": "MISSED"}


async def test_an_hour_late_slots_are_published_by_default(queue: "Queue", reslot_late: ReslotLate) -> None:
    await queue.save_draft("d1", FEED)
    await queue.at("d1", START)
    queue.now = START + 23 * HOUR
    await reslot_late()
    await queue.hand_over.dispatch()
    [command] = queue.stream.taken()
    assert (command.schedule_time, command.not_after) == (START, START + 24 * HOUR)


@pytest.mark.parametrize("known", [0, 1000])
async def test_looking_for_late_slots_costs_nothing_without_any(queue: "Queue", known: int) -> None:
    """Due accounts with other policies, and accounts in time, are not read."""
    await queue.fill([f"due-{number}" for number in range(known)], START, HOUR, 1)
    await queue.fill([f"page-{number}" for number in range(1000)], START + 3 * HOUR, HOUR, 1)
    async with queue.database.transaction() as tx:
        in_time = "update account_queue set late_action = 'RESLOT' where social_account_id like 'page-%'"
        await tx.connection.execute(text(in_time))
    async with queue.database.statement() as connection:
        await connection.execute(text("analyze"))
    async with queue.database.transaction() as tx:
        plan = await planned_on(tx.connection, late._FIND)
    [scan] = [node for node in plan if "Scan" in node["Node Type"]]
    assert (scan["Node Type"], scan["Index Name"]) == ("Index Scan", "account_queue_late")
    assert "due_time <" in scan["Index Cond"]
