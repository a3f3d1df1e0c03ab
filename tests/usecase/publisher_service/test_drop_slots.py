"""Queue cancels slots: posts lose their time, in any order of arrival."""

from itertools import permutations
from typing import Any

import pytest

from publisher_service.domain.outcome import Rejected
from testkit.eventually import eventually
from tests.usecase.publisher_service.replica import Replica, a_command, a_sent, a_slot_post, claims_in
from tests.usecase.publisher_service.rig import Rig, Start
from tests.usecase.publisher_service.test_take_slots import HOUR


async def test_a_post_whose_slot_is_canceled_has_no_time(start: Start) -> None:
    async with start() as rig:
        await rig.save_draft("d1")
        slot = await rig.schedule("d1", rig.clock.now() + HOUR)
        await rig.in_state("SCHEDULED", "d1")
        await rig.cancel("d1", slot, revision=1)
        job = await rig.in_state("PENDING", "d1")
        assert (job.schedule_time, job.not_after) == (None, None)
        await eventually(lambda: _is_unscheduled(rig))
        # A newer slot gives it another time.
        await rig.schedule("d1", rig.clock.now() + HOUR)
        await rig.in_state("SCHEDULED", "d1")


async def _is_unscheduled(rig: Rig) -> bool:
    return (await rig.kinds("d1"))[-1] == "UNSCHEDULED"


@pytest.mark.parametrize("order", list(permutations(range(3))))
async def test_a_canceled_slot_leaves_no_time_in_any_order_of_arrival(start: Start, order: tuple[int, ...]) -> None:
    async with start() as rig:
        due, slot = rig.clock.now() + HOUR, rig.new_slot()
        messages = [
            rig.scheduled("d1", slot, due),
            rig.moved("d1", slot, due + HOUR, revision=2),
            rig.canceled("d1", slot, revision=3),
        ]
        # The first arrives alone, the others together.
        await rig.announce("queue", "slot", messages[order[0]], "acme")
        await eventually(lambda: rig.rows("select 1 from post_job"))
        await rig.announce_together("queue", "slot", [messages[number] for number in order[1:]], "acme")
        job = await eventually(lambda: _at_revision(rig, 3))
        assert (job.state, job.schedule_time, job.run) == ("PENDING", None, 1)


async def _at_revision(rig: Rig, revision: int) -> Any:
    jobs = await rig.rows("select * from post_job where draft_id = 'd1'")
    return jobs[0] if jobs and jobs[0].slot_revision == revision else None


async def test_a_newer_slot_is_untouched(replica: Replica) -> None:
    (name,) = await replica.posts(1)
    await replica.claim([a_command(name)])
    before = await replica.rows("select * from post_job")
    await replica.drop(a_slot_post(name, slot="an older one"))
    assert await replica.rows("select * from post_job") == before


async def test_a_post_that_is_out_or_sent_keeps_its_slot(replica: Replica) -> None:
    names = await replica.posts(2)
    (first, _) = claims_in(await replica.claim([a_command(name) for name in names]))
    await replica.settle([a_sent(first)])
    before = await replica.rows("select * from post_job order by id")
    await replica.drop(*(a_slot_post(name, revision=2) for name in names))
    assert await replica.rows("select * from post_job order by id") == before


async def test_a_post_that_was_taken_back_stays_canceled(replica: Replica) -> None:
    (name,) = await replica.posts(1)
    await replica.take_back(a_slot_post(name))
    await replica.drop(a_slot_post(name, revision=3))
    (job,) = await replica.rows("select * from post_job")
    assert (job.state, job.state_reason, job.slot_revision) == ("CANCELED", "TAKEN_BACK", 3)


async def test_a_post_with_a_command_is_taken_back(replica: Replica) -> None:
    (name,) = await replica.posts(1, approved=False)
    await replica.claim([a_command(name)])
    assert await replica.states() == {"BLOCKED NOT_APPROVED": 1}
    await replica.drop(a_slot_post(name))
    assert await replica.states() == {"CANCELED TAKEN_BACK": 1}
    assert claims_in(await replica.claim([a_command(name)])) == []


async def test_a_failed_post_stays_failed_when_its_own_slot_goes(replica: Replica) -> None:
    (name,) = await replica.posts(1)
    (claimed,) = claims_in(await replica.claim([a_command(name)]))
    await replica.settle([a_sent(claimed, Rejected(reason="TOO_LONG", message=""))])
    await replica.drop(a_slot_post(name, revision=2))
    assert await replica.states() == {"FAILED": 1}
    await replica.drop(a_slot_post(name, slot="the next", sequence=1))
    assert await replica.states() == {"PENDING": 1}
