"""Slots whose posts PublishNow sends: they settle by evidence before their time, and nothing else changes them."""

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from postflow.queue.v1.queue_slot_pb2 import QueueSlot
from queue_service.domain.job import JobState
from queue_service.domain.settlement import JobReport
from servicekit.faults import Refused
from testkit.clocks import START
from tests.usecase.queue_service.rearranging import Rearranging
from tests.usecase.queue_service.steps import slots_of

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue

HOUR = timedelta(hours=1)
UNDER_WAY = [JobState.READY, JobState.SENDING, JobState.WAITING, JobState.BLOCKED, JobState.UNKNOWN]


@pytest.fixture
async def call(queue: "Queue") -> Rearranging:
    """Four slots an hour apart; the first is three hours away."""
    await queue.fill_weekly("page", START + 3 * HOUR, HOUR, 4)
    queue.now = START
    return Rearranging(queue)


async def slot_of(queue: "Queue", draft_id: str) -> QueueSlot:
    [slot] = await slots_of(queue, draft_id)
    return slot


async def report(queue: "Queue", draft_id: str, state: JobState, version: int, **changes: Any) -> JobReport:
    return queue.report_on(await slot_of(queue, draft_id), state, version, **{"publish_now": True} | changes)


async def refusal(changing: Any) -> Refused:
    with pytest.raises(Refused) as refused:
        await changing
    return refused.value


@pytest.mark.parametrize("state", UNDER_WAY)
async def test_it_is_too_late_to_remove_or_move_it(queue: "Queue", call: Rearranging, state: JobState) -> None:
    await queue.settle(await report(queue, "page-1", state, 3))
    for changing in (
        call.remove("page-1"),
        call.remove("page-1", close_gap=True),
        call.move("page-1", to_top=True),
        call.move("page-1", before_slot_id="page-0"),
    ):
        refused = await refusal(changing)
        assert (refused.reason, refused.metadata["slot_id"]) == ("TOO_LATE", "page-1")
        assert refused.metadata["post_job_id"].startswith("job-page-1")
    assert queue.publisher.asked == []
    assert await queue.states() == {f"page-{number}": "SCHEDULED" for number in range(4)}
    assert await queue.cancellations() == []


async def test_others_change_and_it_keeps_its_seat(queue: "Queue", call: Rearranging) -> None:
    await queue.settle(await report(queue, "page-1", JobState.READY, 3))
    times = await queue.times()
    for named in (("page-3", "page-1", "page-2", "page-0"), ("page-0", "page-2", "page-3")):
        await call.reorder(*named)
        assert (await call.drafts())[1] == "page-1"
    await call.shuffle(3)
    await call.move("page-3", to_top=True)
    await call.remove("page-2", close_gap=True)
    drafts = await call.drafts()
    assert drafts[1] == "page-1"
    assert sorted(drafts) == ["page-0", "page-1", "page-3"]
    assert (await slot_of(queue, "page-1")).revision == 1
    assert queue.time_of(await slot_of(queue, "page-1")) == times[1]


async def test_a_clearing_leaves_and_lists_it(queue: "Queue", call: Rearranging) -> None:
    await queue.settle(await report(queue, "page-1", JobState.WAITING, 3))
    cleared = await call.clear()
    assert (cleared.canceled_slots, [slot.id for slot in cleared.too_late_slots]) == (3, ["page-1"])
    assert (await queue.states())["page-1"] == "SCHEDULED"
    await queue.settle(await report(queue, "page-1", JobState.PUBLISHED, 4))
    assert (await queue.states())["page-1"] == "PUBLISHED"


@pytest.mark.parametrize("state", [JobState.PUBLISHED, JobState.FAILED, JobState.MISSED, JobState.NEEDS_ATTENTION])
@pytest.mark.parametrize("with_start", [False, True])
async def test_the_slot_ends_with_the_post_and_frees_its_time(
    queue: "Queue", call: Rearranging, state: JobState, with_start: bool
) -> None:
    if with_start:
        await queue.settle(await report(queue, "page-1", JobState.READY, 3))
    await queue.settle(await report(queue, "page-1", state, 4, publish_time=START))
    assert (await queue.states())["page-1"] == state
    assert await queue.rows("select 1 from slot_target where sent_now") == []
    await queue.save_draft("new", "page")
    await queue.at("new", START + 4 * HOUR)
    queue.now = START + 4 * HOUR
    await queue.hand_over.dispatch()
    assert "page-1" not in [command.draft_id for command in queue.stream.taken()]


async def test_a_line_that_takes_the_post_does_not_hide_it(queue: "Queue", call: Rearranging) -> None:
    """Covers CommandsAccepted, which does not say who has begun the run."""
    await queue.settle(await report(queue, "page-1", JobState.READY, 3))
    await queue.settle(await report(queue, "page-1", JobState.READY, 4, publish_now=None))
    assert (await refusal(call.remove("page-1"))).reason == "TOO_LATE"


async def test_a_post_that_is_sent_for_its_slot_again_can_be_removed(queue: "Queue", call: Rearranging) -> None:
    await queue.settle(await report(queue, "page-1", JobState.READY, 3))
    await queue.settle(await report(queue, "page-1", JobState.SCHEDULED, 4, publish_now=False))
    await call.remove("page-1")
    assert (await queue.states())["page-1"] == "CANCELED"


async def test_a_slot_that_was_removed_before_stays_canceled(queue: "Queue", call: Rearranging) -> None:
    await call.remove("page-1")
    for state, version in ((JobState.READY, 3), (JobState.PUBLISHED, 4), (JobState.PUBLISHED, 4)):
        await queue.settle(await report(queue, "page-1", state, version))
        assert (await queue.states())["page-1"] == "CANCELED"
    slot = await slot_of(queue, "page-1")
    assert (slot.state_reason, slot.HasField("publish_time")) == ("REMOVED", False)
    assert await queue.rows("select 1 from slot_target where job_state = 'PUBLISHED' and not sent_now")


@pytest.mark.parametrize("publish_now", [True, False], ids=["PublishNow", "RetryPostJob"])
async def test_a_removed_slot_shows_the_run_that_failed_meanwhile(
    queue: "Queue", call: Rearranging, publish_now: bool
) -> None:
    """Publisher had not heard of the removal when the run failed, and names the revision before it."""
    failed = await report(queue, "page-1", JobState.FAILED, 3, publish_now=publish_now)
    await call.remove("page-1")
    await queue.settle(failed)
    slot = await slot_of(queue, "page-1")
    assert (slot.revision, slot.state_reason, (await queue.states())["page-1"]) == (2, "REMOVED", "CANCELED")
    assert len(await queue.rows("select 1 from slot_target where job_state = 'FAILED'")) == 1


async def test_its_time_comes_while_it_is_under_way(queue: "Queue", call: Rearranging) -> None:
    await queue.settle(await report(queue, "page-0", JobState.BLOCKED, 3))
    queue.now = START + 3 * HOUR
    await queue.hand_over.dispatch()
    assert (await queue.states())["page-0"] == "DISPATCHED"
    await queue.settle(await report(queue, "page-0", JobState.PUBLISHED, 5))
    assert (await queue.states())["page-0"] == "PUBLISHED"
