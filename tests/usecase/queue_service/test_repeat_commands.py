"""Publisher was restored: Queue repeats the commands of all slots that are dispatched and have not ended."""

from datetime import timedelta
from typing import TYPE_CHECKING

from queue_service.application.repeat_commands import RepeatCommands
from queue_service.domain.job import JobState
from testkit.clocks import START

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue


async def test_answered_commands_too_are_repeated_with_what_is_known(queue: "Queue") -> None:
    for number, account in enumerate(("a", "b", "c")):
        await queue.save_draft(f"d-{account}", account)
        await queue.at(f"d-{account}", START + timedelta(hours=number // 2, seconds=number))
    queue.now = START
    await queue.hand_over.dispatch()
    first = queue.stream.taken()
    answered = next(each for each in first if each.draft_id == "d-a")
    await queue.settle(queue.report(answered, JobState.WAITING, version=7))
    queue.new_slots.clear()

    repeat = RepeatCommands(queue.new_slots.set)
    async with queue.database.transaction() as tx:
        await repeat(tx, [None], queue.now)
    assert queue.new_slots.is_set()
    assert await queue.hand_over.repeat()
    again = {each.draft_id: each for each in queue.stream.taken()}
    assert set(again) == {each.draft_id for each in first} == {"d-a", "d-b"}
    assert (again["d-a"].job_version, again["d-a"].job_state) == (7, "WAITING")
    assert again["d-b"].job_version == 0
    assert {each.emission for each in again.values()} == {2}
