"""Sequences, which order the slots of an account."""

from datetime import UTC, timedelta
from typing import TYPE_CHECKING

from sqlalchemy import text

from civil.weekly import WeeklySlot
from queue_service.domain.command import Command
from queue_service.domain.job import JobState
from testkit.clocks import START

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue

HOUR = timedelta(hours=1)


async def scheduled_and_failed(queue: "Queue", draft_id: str) -> Command:
    """Returns the command of a slot that has ended, so that the draft may get another one."""
    await queue.at(draft_id, queue.now)
    await queue.hand_over.dispatch()
    [command] = queue.stream.taken()
    await queue.settle(queue.report(command, JobState.FAILED, 3))
    return command


async def test_a_later_slot_has_the_greater_sequence_if_the_clock_steps_back(queue: "Queue") -> None:
    await queue.save_draft("d1", "page")
    first = await scheduled_and_failed(queue, "d1")
    queue.now -= HOUR
    second = await scheduled_and_failed(queue, "d1")
    assert second.slot_sequence > first.slot_sequence
    announced = [event.slot_sequence for event in await queue.announced()]
    assert announced == [first.slot_sequence, second.slot_sequence]


async def test_slots_of_one_instant_have_different_sequences(queue: "Queue") -> None:
    commands = []
    for index in range(3):
        await queue.save_draft(f"d{index}", "page")
        commands.append(await scheduled_and_failed(queue, f"d{index}"))
    assert len({command.slot_sequence for command in commands}) == 3


async def test_sequences_grow_after_a_restore_from_a_backup(queue: "Queue") -> None:
    await queue.save_draft("d1", "page")
    first = await scheduled_and_failed(queue, "d1")
    async with queue.database.transaction() as tx:
        for statement in ("delete from slot_target", "delete from slot", "update account_queue set last_sequence = 0"):
            await tx.connection.execute(text(statement))
    queue.now += timedelta(minutes=1)
    assert (await scheduled_and_failed(queue, "d1")).slot_sequence > first.slot_sequence


async def test_a_command_and_its_copies_have_the_sequence_and_the_zone(queue: "Queue") -> None:
    queue.schedule.zone = "Asia/Kolkata"
    await queue.put_schedule("page", WeeklySlot(day=1, hour=9, minute=0))
    await queue.save_draft("d1", "page")
    await queue.at("d1", START)
    await queue.hand_over.dispatch()
    queue.now += timedelta(seconds=4)
    await queue.hand_over.repeat()
    [event] = await queue.announced()
    facts = {(each.slot_sequence, each.time_zone) for each in queue.stream.taken()}
    assert facts == {(event.slot_sequence, "Asia/Kolkata")}
    assert event.not_after.ToDatetime(UTC) == START + timedelta(hours=24)


async def test_a_slot_inserted_by_an_older_release_has_a_sequence(queue: "Queue") -> None:
    await queue.fill("page", START, HOUR, 1)
    [row] = await queue.rows("select sequence > 1e15 as is_numbered from slot")
    assert row.is_numbered


async def test_every_slot_that_is_added_raises_the_arrangement(queue: "Queue") -> None:
    await queue.put_schedule("page", WeeklySlot(day=1, hour=9, minute=0))
    for draft in ("d1", "d2"):
        await queue.save_draft(draft, "page", "other")
    await queue.at("d1", START + HOUR)
    await queue.add("d2", "page")
    rows = await queue.rows("select social_account_id, arrangement from account_queue order by 1")
    assert [tuple(row) for row in rows] == [("other", 1), ("page", 2)]
