"""Arranger: what an arrangement writes, announces and wakes, and what it leaves alone."""

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import text

from civil.weekly import WeeklySlot
from queue_service.application.arranger import Arranged
from queue_service.domain.arrangement import Arrangement, Snapshot
from queue_service.domain.command import REPEAT_DELAYS
from queue_service.domain.frontier import Frontier
from queue_service.domain.job import JobState
from queue_service.domain.removing import clear, remove
from queue_service.domain.reordering import Order, reorder
from queue_service.domain.shifting import shuffle
from queue_service.domain.slot import SlotOrigin, SlotState
from servicekit.faults import Conflict
from testkit.clocks import START

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue

HOUR = timedelta(hours=1)
PAGE = ("acme", "page")
PUBLISHED = "update slot set state = 'PUBLISHED', publish_time = schedule_time, next_emit_at = null"
Decision = Callable[[Snapshot], Arrangement]


async def arrange(queue: "Queue", decide: Decision, *, etag: str = "") -> Arranged:
    async with queue.database.transaction() as tx:
        snapshot = await queue.arranger.lock(tx, PAGE, etag=etag, now=queue.now)
        return await queue.arranger.apply(tx, snapshot, decide(snapshot), queue.now)


def backwards(snapshot: Snapshot) -> Arrangement:
    order = tuple(slot.slot_id for slot in reversed(snapshot.scheduled))
    return reorder(snapshot, Order(slot_ids=order), {})


def nothing(_snapshot: Snapshot) -> Arrangement:
    return Arrangement()


@pytest.fixture
async def filled(queue: "Queue") -> "Queue":
    """Gives an account four weekly slots, and one whose time the caller chose between the second and the third."""
    await queue.fill_weekly("page", START + 24 * HOUR, HOUR, 4)
    queue.now = START
    await queue.save_draft("chosen", "page")
    await queue.at("chosen", START + 25.5 * HOUR)
    return queue


async def test_the_snapshot_has_live_slots_in_order(filled: "Queue") -> None:
    await filled.rows("update slot set state = 'DISPATCHED' where id = 'page-0' returning 1")
    await filled.rows(f"{PUBLISHED} where id = 'page-3' returning 1")
    async with filled.database.transaction() as tx:
        snapshot = await filled.arranger.lock(tx, PAGE, now=START)
    assert [slot.draft_id for slot in snapshot.slots] == ["page-0", "page-1", "chosen", "page-2"]
    assert [slot.state for slot in snapshot.slots] == [SlotState.DISPATCHED] + 3 * [SlotState.SCHEDULED]
    assert [slot.seat.origin for slot in snapshot.slots][1:3] == [SlotOrigin.QUEUE, SlotOrigin.EXACT]
    assert snapshot.slots[1].seat.nominal == (START + 25 * HOUR).replace(tzinfo=None)
    assert snapshot.queue.arrangement == 1


async def test_moved_slots_have_everything_of_their_seats(filled: "Queue") -> None:
    filled.now = START + HOUR
    arranged = await arrange(filled, backwards)
    assert arranged.queue.etag == "2"
    rows = await filled.rows("""
        select draft_id, schedule_time, origin, revision, move_reason, not_after - schedule_time, next_emit_at -
            schedule_time, local_time, nominal_local_time is null, update_time from slot order by schedule_time
    """)
    day, second, now = timedelta(days=1), REPEAT_DELAYS[0], START + HOUR
    assert [row[:5] for row in rows] == [
        ("page-3", START + 24 * HOUR, "QUEUE", 2, "REORDERED"),
        ("page-2", START + 25 * HOUR, "QUEUE", 2, "REORDERED"),
        ("chosen", START + 25.5 * HOUR, "EXACT", 1, ""),
        ("page-1", START + 26 * HOUR, "QUEUE", 2, "REORDERED"),
        ("page-0", START + 27 * HOUR, "QUEUE", 2, "REORDERED"),
    ]
    assert {row[5:7] for row in rows} == {(day, second)}
    assert [row[7] == row[1].time() for row in rows if row[2] == "QUEUE"] == [True] * 4
    assert [(row[8], row[9] == now) for row in rows] == [(row[2] == "EXACT", row[2] == "QUEUE") for row in rows]


async def test_moves_are_announced_with_their_reason(filled: "Queue") -> None:
    await arrange(filled, backwards)
    [first, *_] = sorted(await filled.moves(), key=lambda move: move.schedule_time.seconds)
    assert (first.slot_id, first.revision, first.draft_id, first.reason) == ("page-3", 2, "page-3", 2)
    assert first.previous_schedule_time.ToDatetime() == (START + 27 * HOUR).replace(tzinfo=None)
    assert first.not_after.ToDatetime() == (START + 48 * HOUR).replace(tzinfo=None)
    assert (first.time_zone, first.nominal_local_time[-5:]) == ("UTC", f"{START:%H:%M}")
    assert [target.channel for target in first.targets] == ["facebook"]
    assert len(await filled.moves()) == 4


async def test_the_late_policy_decides_how_late_a_moved_slot_may_be(filled: "Queue") -> None:
    await filled.rows("update account_queue set late_action = 'MISS', late_grace = '3 minutes' returning 1")
    await arrange(filled, backwards)
    moved = "select distinct not_after - schedule_time as grace from slot where revision > 1"
    assert [row.grace for row in await filled.rows(moved)] == [timedelta(minutes=3)]


async def test_canceled_slots_say_why_and_are_announced(filled: "Queue") -> None:
    arranged = await arrange(filled, clear)
    assert len(arranged.canceled) == 5
    rows = await filled.rows("select distinct state, state_reason, revision, next_emit_at from slot")
    assert rows == [("CANCELED", "CLEARED", 2, None)]
    canceled = await filled.cancellations()
    assert {(each.revision, each.reason, each.targets[0].channel) for each in canceled} == {(2, 2, "facebook")}
    assert sorted(each.draft_id for each in canceled) == ["chosen", "page-0", "page-1", "page-2", "page-3"]
    [account] = await filled.rows("select next_due_time, arrangement from account_queue")
    assert account == (None, 2)


async def test_without_a_change_the_etag_stays(filled: "Queue") -> None:
    arranged = await arrange(filled, nothing)
    assert arranged.queue.etag == "1"
    assert await filled.moves() == []


async def test_another_etag_is_refused(filled: "Queue") -> None:
    await arrange(filled, backwards, etag="1")
    with pytest.raises(Conflict) as refused:
        await arrange(filled, backwards, etag="1")
    assert (refused.value.reason, refused.value.metadata["etag"]) == ("ETAG_MISMATCH", "2")


async def test_a_permutation_leaves_the_frontier_alone(filled: "Queue") -> None:
    full = await _fill_frontier(filled)
    await arrange(filled, lambda snapshot: shuffle(snapshot, 3))
    assert await _frontier(filled) == full


async def test_a_freed_time_reopens_the_frontier(filled: "Queue") -> None:
    await _fill_frontier(filled)
    await arrange(filled, lambda snapshot: remove(snapshot, snapshot.slots[0], closing=False, earliest=START))
    assert (await _frontier(filled)).next_open(START) == START + 24 * HOUR - timedelta(minutes=1)


async def test_a_draft_gets_the_time_that_closing_a_gap_frees(filled: "Queue") -> None:
    hourly = [WeeklySlot(day=day, hour=hour, minute=START.minute) for day in range(7) for hour in range(24)]
    await filled.put_schedule("page", *hourly)
    for number in range(30):
        await filled.save_draft(f"d{number}", "page")
    for number in range(24):
        await filled.add(f"d{number}")
    await arrange(filled, lambda snapshot: remove(snapshot, snapshot.shiftable[5], closing=True, earliest=START))
    times = await filled.rows("select schedule_time from slot where state = 'SCHEDULED' order by 1")
    [last] = [slot.schedule_time for slot in await filled.add("d25")]
    assert last.ToDatetime() > times[-1].schedule_time.replace(tzinfo=None)
    assert filled.schedule.asked == 25


async def test_the_next_due_time_follows_the_slots(filled: "Queue") -> None:
    await arrange(filled, lambda snapshot: remove(snapshot, snapshot.slots[0], closing=False, earliest=START))
    [account] = await filled.rows("select next_due_time from account_queue")
    assert account.next_due_time == START + 25 * HOUR


async def test_a_moved_slot_is_dispatched_at_its_new_time(filled: "Queue") -> None:
    await arrange(filled, backwards)
    filled.now = START + 24 * HOUR
    await filled.hand_over.dispatch()
    [command] = filled.stream.taken()
    assert (command.draft_id, command.revision, command.schedule_time) == ("page-3", 2, START + 24 * HOUR)
    await filled.settle(filled.report(command, JobState.PUBLISHED))
    assert (await filled.states())["page-3"] == "PUBLISHED"


async def test_dispatch_is_woken_when_a_slot_is_due_soon(filled: "Queue") -> None:
    filled.new_slots.clear()
    await arrange(filled, backwards)
    assert not filled.new_slots.is_set()
    filled.now = START + 24 * HOUR - timedelta(seconds=20)
    await arrange(filled, backwards)
    assert filled.new_slots.is_set()


async def test_a_slot_settled_meanwhile_keeps_its_outcome(filled: "Queue") -> None:
    """Reports settle slots without the account's lock, so an arrangement writes to SCHEDULED slots only."""
    async with filled.database.transaction() as tx:
        snapshot = await filled.arranger.lock(tx, PAGE, now=START)
        await tx.connection.execute(text(f"{PUBLISHED} where id = 'page-0'"))
        arranged = await filled.arranger.apply(tx, snapshot, clear(snapshot), START)
    assert "page-0" not in {slot.id for slot in arranged.canceled}
    assert (await filled.states())["page-0"] == "PUBLISHED"


async def test_seats_of_older_time_zone_data_are_checked_again(filled: "Queue") -> None:
    await filled.rows(
        "update account_queue set tzdata_version = '2999a', time_zone = 'UTC', schedule_version = 1 returning 1"
    )
    await arrange(filled, backwards)
    [account] = await filled.rows("select slots_behind from account_queue")
    assert account.slots_behind


async def _fill_frontier(queue: "Queue") -> Frontier:
    full = Frontier().passed(START + 28 * HOUR)
    names = {"from": full.search_from, "full_from": full.full_from, "until": full.full_until}
    await queue.rows(
        "update account_queue set search_from = :from, full_from = :full_from, full_until = :until returning 1", **names
    )
    return full


async def _frontier(queue: "Queue") -> Frontier:
    [row] = await queue.rows("select search_from, full_from, full_until from account_queue")
    return Frontier(search_from=row.search_from, full_from=row.full_from, full_until=row.full_until)
