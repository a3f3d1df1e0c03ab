"""SlotMover: the new times of outdated slots, and what else the move affects."""

import logging
from datetime import UTC, datetime, time, timedelta
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import text

from civil.weekly import WeeklySlot
from queue_service.domain.job import JobState
from queue_service.domain.policy import Policy
from queue_service.domain.slot import SPACING
from servicekit.faults import Refused
from tests.usecase.queue_service.tzdata import (
    CURRENT,
    DAILY,
    DAY,
    HOUR,
    HOURLY,
    NEWER,
    NOON,
    OLD,
    announce_again,
    caught_up,
    is_behind,
    queued,
)

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue


async def test_a_slot_keeps_its_wall_clock_time(queue: "Queue") -> None:
    queue.schedule.zone = "Europe/Berlin"
    queue.now = datetime(2026, 3, 28, 12, tzinfo=UTC)
    await queue.put_schedule("page", WeeklySlot(day=0, hour=2, minute=30))
    await queue.save_draft("d1", "page")
    [slot] = await queue.add("d1")
    assert (queue.time_of(slot), slot.local_time) == (datetime(2026, 3, 29, 1, 30, tzinfo=UTC), "03:30")
    [row] = await queue.rows("select nominal_local_time, tzdata_version from slot")
    assert row == (datetime(2026, 3, 29, 2, 30), CURRENT)
    [announced] = await queue.announced()
    assert (announced.nominal_local_time, announced.time_zone) == ("2026-03-29T02:30", "Europe/Berlin")


async def test_a_chosen_time_means_an_instant(queue: "Queue") -> None:
    await queue.put_schedule("page", *DAILY)
    await queue.save_draft("d1", "page")
    await queue.at("d1", NOON)
    [row] = await queue.rows("select nominal_local_time, tzdata_version from slot")
    assert row == (None, CURRENT)
    [announced] = await queue.announced()
    assert announced.nominal_local_time == ""


async def test_dispatched_slots_and_chosen_times_stay(queue: "Queue") -> None:
    await queued(queue, "d0", "d1")
    await queue.save_draft("chosen", "page")
    await queue.at("chosen", NOON + DAY + timedelta(hours=5))
    await queue.outdate("page", HOUR)
    queue.now = NOON + HOUR - timedelta(seconds=20)
    await queue.hand_over.dispatch()
    await announce_again(queue)
    await caught_up(queue)
    rows = await queue.rows("select draft_id, state, schedule_time, revision from slot order by schedule_time")
    assert rows == [
        ("d0", "DISPATCHED", NOON + HOUR, 1),
        ("d1", "SCHEDULED", NOON + DAY, 2),
        ("chosen", "SCHEDULED", NOON + DAY + timedelta(hours=5), 1),
    ]
    assert [move.draft_id for move in await queue.moves()] == ["d1"]


async def test_a_dispatched_slot_keeps_its_time_from_others(queue: "Queue") -> None:
    await queued(queue, "d0", "d1", "d2", slots=HOURLY)
    [first, *_] = await queue.times()
    await queue.outdate("page", HOUR)
    queue.now = first + HOUR - timedelta(seconds=20)
    await queue.hand_over.dispatch()
    await announce_again(queue)
    await caught_up(queue)
    rows = await queue.rows("select draft_id, state, schedule_time from slot order by schedule_time")
    assert rows == [
        ("d0", "DISPATCHED", first + HOUR),
        ("d1", "SCHEDULED", first + HOUR + SPACING),
        ("d2", "SCHEDULED", first + 2 * HOUR),
    ]


async def test_a_taken_time_is_left_to_its_owner_and_logged(queue: "Queue", caplog: pytest.LogCaptureFixture) -> None:
    await queued(queue, "d1")
    await queue.save_draft("chosen", "page")
    await queue.outdate("page", HOUR)
    await queue.at("chosen", NOON + SPACING / 2)
    await announce_again(queue)
    with caplog.at_level(logging.WARNING, logger="queue_service"):
        await caught_up(queue)
    rows = await queue.rows("select draft_id, schedule_time, revision, tzdata_version from slot order by 2")
    assert rows == [("chosen", NOON + SPACING / 2, 1, CURRENT), ("d1", NOON + HOUR, 1, CURRENT)]
    [record] = caplog.records
    assert "page" in record.message
    assert "another slot has that time" in record.message
    assert await queue.moves() == []
    assert not await is_behind(queue)


@pytest.mark.parametrize("origin", ["QUEUE", "EXACT"])
async def test_a_slot_in_a_dropped_zone_stays_and_stops_no_other(
    queue: "Queue", caplog: pytest.LogCaptureFixture, origin: str
) -> None:
    await queued(queue, "d1", "d2")
    await queue.outdate("page", HOUR)
    async with queue.database.transaction() as tx:
        gone = """
            update slot set time_zone = 'US/Pacific-New', origin = :origin,
                nominal_local_time = case when :origin = 'QUEUE' then nominal_local_time end
            where draft_id = 'd1'
        """
        await tx.connection.execute(text(gone), {"origin": origin})
    await announce_again(queue)
    with caplog.at_level(logging.WARNING, logger="queue_service"):
        await caught_up(queue)
    rows = await queue.rows("select draft_id, schedule_time, local_time, revision from slot order by schedule_time")
    assert rows == [("d1", NOON + HOUR, time(12), 1), ("d2", NOON + DAY, time(12), 2)]
    assert not await is_behind(queue)
    assert ["no such zone" in record.message for record in caplog.records] == [True] * (origin == "QUEUE")


async def test_a_slot_whose_new_time_has_passed_goes_out_after_the_notice(queue: "Queue") -> None:
    await queued(queue, "d1")
    await queue.outdate("page", HOUR)
    queue.now = NOON + timedelta(minutes=10)
    await announce_again(queue)
    await caught_up(queue)
    [row] = await queue.rows("select schedule_time, not_after, local_time from slot")
    goes_out = queue.now + Policy().notice
    assert row == (goes_out, goes_out + timedelta(hours=24), time(12, 11))
    queue.now = goes_out - Policy().lead
    await queue.hand_over.dispatch()
    [command] = queue.stream.taken()
    assert (command.revision, command.schedule_time) == (2, goes_out)


async def test_a_moved_slot_is_handed_over_at_its_new_time_only(queue: "Queue") -> None:
    await queued(queue, "d1")
    await queue.outdate("page", -HOUR)
    await announce_again(queue)
    await caught_up(queue)
    queue.now = NOON - HOUR
    assert not await queue.hand_over.dispatch()
    assert queue.stream.taken() == []
    queue.now = NOON
    await queue.hand_over.dispatch()
    [command] = queue.stream.taken()
    assert (command.revision, command.schedule_time, command.not_after) == (2, NOON, NOON + DAY)


async def test_an_answer_about_the_old_time_is_ignored(queue: "Queue") -> None:
    await queue.put_schedule("page", *DAILY)
    await queue.save_draft("d1", "page")
    [slot] = await queue.add("d1")
    await queue.outdate("page", HOUR)
    await announce_again(queue)
    await caught_up(queue)
    await queue.settle(queue.report_on(slot, JobState.CANCELED, version=3))
    assert await queue.states() == {"d1": "SCHEDULED"}
    await queue.settle(queue.report_on(slot, JobState.CANCELED, version=4, slot_revision=2))
    assert await queue.states() == {"d1": "CANCELED"}


async def test_times_that_slots_have_left_are_free_again(queue: "Queue") -> None:
    await queued(queue, *(f"d{number}" for number in range(5)))
    await queue.outdate("page", 2 * DAY)
    await announce_again(queue)
    await queue.save_draft("next", "page")
    await queue.add("next")
    await caught_up(queue)
    assert await queue.times() == [NOON + number * DAY for number in range(6)]


async def test_slots_that_move_reset_what_searches_have_learned(queue: "Queue") -> None:
    """Lets a process search that does not have the release with which the slots move."""
    await queued(queue, *(f"d{number}" for number in range(5)))
    await queue.outdate("page", 2 * DAY)
    queue.schedule.release = NEWER
    await announce_again(queue)
    for draft in ("x", "y", "z", "next"):
        await queue.save_draft(draft, "page")
    taken = [queue.time_of((await queue.add(draft))[0]) for draft in ("x", "y", "z")]
    assert taken == [NOON, NOON + DAY, NOON + 7 * DAY]
    queue.schedule.release = NEWER
    assert await queue.catching_up(NEWER)()
    [slot] = await queue.add("next")
    assert queue.time_of(slot) == NOON + 5 * DAY


async def test_outdated_slots_move_before_another_is_added(queue: "Queue") -> None:
    """Learns the new data from Schedule's answer: noon is not free, though no slot stands there yet."""
    await queued(queue, "d1")
    await queue.outdate("page", HOUR)
    await queue.save_draft("d2", "page")
    queue.now += timedelta(seconds=1)
    [slot] = await queue.add("d2")
    assert queue.time_of(slot) == NOON + DAY
    rows = await queue.rows("select draft_id, schedule_time, revision from slot order by schedule_time")
    assert rows == [("d1", NOON, 2), ("d2", NOON + DAY, 1)]
    assert [move.draft_id for move in await queue.moves()] == ["d1"]
    assert not await is_behind(queue)


async def test_outdated_slots_move_before_a_chosen_time_is_given(queue: "Queue") -> None:
    """Moves slots first: noon looks free until the slot that means noon has moved."""
    await queued(queue, "d1")
    await queue.outdate("page", HOUR)
    await announce_again(queue)
    await queue.save_draft("chosen", "page")
    with pytest.raises(Refused) as refusal:
        await queue.at("chosen", NOON)
    assert refusal.value.reason == "SLOT_TAKEN"
    await caught_up(queue)
    assert await queue.times() == [NOON]
    [slot] = await queue.at("chosen", NOON + HOUR)
    assert queue.time_of(slot) == NOON + HOUR


async def test_a_slot_given_with_outdated_time_zone_data_is_corrected(queue: "Queue") -> None:
    """Takes an answer of a Schedule process that is still of the release before."""
    await queue.put_schedule("page", *DAILY)
    await queue.save_draft("d1", "page")
    queue.schedule.release, queue.schedule.shift = OLD, HOUR
    [slot] = await queue.add("d1")
    assert queue.time_of(slot) == NOON + HOUR
    assert await is_behind(queue)
    await caught_up(queue)
    assert await queue.times() == [NOON]
    [row] = await queue.rows("select tzdata_version from account_queue")
    assert row.tzdata_version == CURRENT


async def test_a_slot_from_newer_data_is_checked_by_a_process_that_has_them(
    queue: "Queue",
) -> None:
    await queue.put_schedule("page", *DAILY)
    await queue.save_draft("d1", "page")
    queue.schedule.release = NEWER
    await queue.add("d1")
    [row] = await queue.rows("select schedule_time, tzdata_version from slot")
    assert row == (NOON, CURRENT)
    assert not await queue.catch_up()
    assert await is_behind(queue)
    assert await queue.catching_up(NEWER)()
    [row] = await queue.rows("select schedule_time, tzdata_version, revision from slot")
    assert row == (NOON, NEWER, 1)
    assert await queue.moves() == []
