"""RemoveFromQueue: slots that wait, and slots that Publisher has already."""

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from postflow.queue.v1.queue_events_pb2 import SLOT_CANCEL_REASON_REMOVED
from postflow.queue.v1.queue_slot_pb2 import QUEUE_SLOT_STATE_CANCELED
from queue_service.application.take_back import ASKED, INTENDED
from queue_service.domain.job import JobState
from queue_service.domain.policy import Policy
from servicekit import failpoints
from servicekit.faults import Conflict, Fault, NotFound, Unavailable
from testkit.clocks import START
from tests.usecase.queue_service.rearranging import Rearranging

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.usecase.queue_service.conftest import Queue

HOUR = timedelta(hours=1)
FEED, STORY = ("page", "facebook", ""), ("page", "instagram_feed", "42")


@pytest.fixture
async def queue(make_queue: "Callable[[Policy], Queue]") -> "Queue":
    """Slots go out early, so that a dispatched one leaves a gap that others can get."""
    queue = make_queue(Policy(lead=2 * HOUR))
    await queue.fill_weekly("page", START + 3 * HOUR, HOUR, 4)
    queue.now = START
    return queue


@pytest.fixture
def call(queue: "Queue") -> Rearranging:
    return Rearranging(queue)


@pytest.fixture(autouse=True)
def no_failpoints() -> Iterator[None]:
    yield
    failpoints.install("", "test")


async def dispatch_first(queue: "Queue") -> None:
    queue.now = START + HOUR
    await queue.hand_over.dispatch()
    assert (await queue.states())["page-0"] == "DISPATCHED"


async def refusal(call: Rearranging, slot_id: str, **fields: str) -> Fault:
    with pytest.raises(Fault) as refused:
        await call.remove(slot_id, **fields)  # type: ignore[arg-type]
    return refused.value


async def test_a_scheduled_slot_is_canceled_and_frees_its_time(queue: "Queue", call: Rearranging) -> None:
    answer = await call.remove("page-1", etag="0")
    assert (answer.queue_slot.id, answer.queue_slot.state) == ("page-1", QUEUE_SLOT_STATE_CANCELED)
    assert (answer.etag, list(answer.moved_slots)) == ("1", [])
    [canceled] = await queue.cancellations()
    assert (canceled.reason, canceled.slot_id) == (SLOT_CANCEL_REASON_REMOVED, "page-1")
    assert queue.publisher.asked == []
    await queue.save_draft("new", "page")
    await queue.at("new", START + 4 * HOUR)


async def test_the_later_slots_close_the_gap(queue: "Queue", call: Rearranging) -> None:
    answer = await call.remove("page-1", close_gap=True)
    assert [slot.id for slot in answer.moved_slots] == ["page-2", "page-3"]
    assert [queue.time_of(slot) for slot in answer.moved_slots] == [START + 4 * HOUR, START + 5 * HOUR]
    assert answer.etag == await call.etag() == "1"


async def test_a_dispatched_slot_is_taken_back_and_canceled(queue: "Queue", call: Rearranging) -> None:
    await dispatch_first(queue)
    answer = await call.remove("page-0", etag="0")
    assert answer.queue_slot.state == QUEUE_SLOT_STATE_CANCELED
    assert answer.queue_slot.state_reason == "REMOVED"
    assert answer.etag == await call.etag() == "1"
    [[post]] = queue.publisher.asked
    assert (post.slot_id, post.slot_revision) == ("page-0", 1)
    [canceled] = await queue.cancellations()
    assert (canceled.reason, canceled.slot_id) == (SLOT_CANCEL_REASON_REMOVED, "page-0")
    queue.stream.taken()
    queue.now += HOUR
    await queue.hand_over.dispatch()
    assert "page-0" not in [command.draft_id for command in queue.stream.taken()]


async def test_the_gap_of_a_dispatched_slot_is_closed(queue: "Queue", call: Rearranging) -> None:
    await dispatch_first(queue)
    answer = await call.remove("page-0", close_gap=True, etag="0")
    assert [queue.time_of(slot) for slot in answer.moved_slots] == [START + n * HOUR for n in (3, 4, 5)]
    assert await call.drafts() == ["page-1", "page-2", "page-3"]
    assert answer.etag == await call.etag() == "2"


async def test_no_gap_is_left_when_another_slot_got_the_time(queue: "Queue", call: Rearranging) -> None:
    """Covers a draft that is put there after Publisher gave the slot back, and before the call has come to its end."""
    await dispatch_first(queue)
    failpoints.install(f"{ASKED}=raise", "test")
    with pytest.raises(failpoints.FailpointHit):
        await call.remove("page-0", close_gap=True, etag="0", request_id="r1")
    failpoints.install("", "test")
    queue.now += timedelta(seconds=11)
    await queue.complete_take_backs()
    await queue.save_draft("new", "page")
    await queue.at("new", START + 3 * HOUR)
    answer = await call.remove("page-0", close_gap=True, etag="0", request_id="r1")
    assert (answer.queue_slot.state, list(answer.moved_slots)) == (QUEUE_SLOT_STATE_CANCELED, [])
    assert await call.drafts() == ["new", "page-1", "page-2", "page-3"]


@pytest.mark.parametrize("place", [INTENDED, ASKED])
@pytest.mark.parametrize("completed", [False, True])
async def test_a_call_that_died_is_completed_by_its_repeat(
    queue: "Queue", call: Rearranging, place: str, *, completed: bool
) -> None:
    """The repeat has the etag of before; the loop may have canceled the slot meanwhile."""
    await dispatch_first(queue)
    failpoints.install(f"{place}=raise", "test")
    with pytest.raises(failpoints.FailpointHit):
        await call.remove("page-0", close_gap=True, etag="0", request_id="r1")
    failpoints.install("", "test")
    assert (await queue.states())["page-0"] == "DISPATCHED"
    if completed:
        queue.now += timedelta(seconds=11)
        await queue.complete_take_backs()
    answer = await call.remove("page-0", close_gap=True, etag="0", request_id="r1")
    assert answer.queue_slot.state == QUEUE_SLOT_STATE_CANCELED
    assert [slot.id for slot in answer.moved_slots] == ["page-1", "page-2", "page-3"]
    assert await call.remove("page-0", close_gap=True, etag="0", request_id="r1") == answer
    assert len(await queue.cancellations()) == 1


@pytest.mark.parametrize("place", [INTENDED, ASKED])
async def test_a_call_that_died_is_completed_without_a_repeat(queue: "Queue", call: Rearranging, place: str) -> None:
    await dispatch_first(queue)
    failpoints.install(f"{place}=raise", "test")
    with pytest.raises(failpoints.FailpointHit):
        await call.remove("page-0")
    failpoints.install("", "test")
    queue.now += timedelta(seconds=11)
    await queue.complete_take_backs()
    [canceled] = await queue.cancellations()
    assert (canceled.slot_id, canceled.reason) == ("page-0", SLOT_CANCEL_REASON_REMOVED)


async def test_without_publisher_the_removal_stands_and_is_completed_later(queue: "Queue", call: Rearranging) -> None:
    await dispatch_first(queue)
    queue.publisher.cancel_fault = Unavailable("TAKE_BACK_PENDING", "no")
    pending = await refusal(call, "page-0", etag="0")
    assert (pending.code, pending.reason) == ("UNAVAILABLE", "TAKE_BACK_PENDING")
    assert (await refusal(call, "page-0", etag="0")).reason == "TAKE_BACK_PENDING"
    assert await call.etag() == "1"
    queue.publisher.cancel_fault = None
    queue.now += timedelta(seconds=11)
    await queue.complete_take_backs()
    answer = await call.remove("page-0", etag="0")
    assert (answer.queue_slot.state, answer.etag) == (QUEUE_SLOT_STATE_CANCELED, "1")


@pytest.mark.parametrize("state", [JobState.SENDING, JobState.UNKNOWN])
async def test_a_post_that_has_started_is_named(queue: "Queue", call: Rearranging, state: JobState) -> None:
    await dispatch_first(queue)
    queue.publisher.states["page-0", "facebook", ""] = state
    for _ in range(2):
        refused = await refusal(call, "page-0", etag="0", request_id="r1")
        assert (refused.code, refused.reason) == ("FAILED_PRECONDITION", "TOO_LATE")
        assert refused.metadata == {"slot_id": "page-0", "post_job_id": "job-page-0-facebook-"}
    [row] = await queue.rows("select state, taking_back from slot where id = 'page-0'")
    assert tuple(row) == ("DISPATCHED", "")


async def test_what_publisher_gave_back_of_a_slot_stays_back(queue: "Queue", call: Rearranging) -> None:
    """One of two posts is being sent: the call is too late, and the other one is not sent any more."""
    await queue.save_draft("two", FEED, STORY)
    [slot] = await queue.at("two", START + 2.5 * HOUR)
    await dispatch_first(queue)
    queue.publisher.states["two", "facebook", ""] = JobState.SENDING
    refused = await refusal(call, slot.id)
    assert (refused.reason, refused.metadata["post_job_id"]) == ("TOO_LATE", "job-two-facebook-")
    [command] = [each for each in queue.stream.taken() if (each.draft_id, each.channel) == ("two", "facebook")]
    await queue.settle(queue.report(command, JobState.PUBLISHED, 30))
    assert (await queue.states())["two"] == "PARTIALLY_PUBLISHED"


async def test_removing_a_canceled_slot_again_changes_nothing(queue: "Queue", call: Rearranging) -> None:
    first = await call.remove("page-0", etag="0")
    again = await call.remove("page-0", close_gap=True, etag="0")
    assert again == first
    assert len(await queue.cancellations()) == 1


@pytest.mark.parametrize("end", [JobState.PUBLISHED, JobState.FAILED, JobState.NEEDS_ATTENTION])
async def test_a_slot_that_has_ended_otherwise_is_refused(queue: "Queue", call: Rearranging, end: JobState) -> None:
    await dispatch_first(queue)
    [command] = queue.stream.taken()
    await queue.settle(queue.report(command, end, 3))
    refused = await refusal(call, "page-0")
    assert (refused.code, refused.reason) == ("FAILED_PRECONDITION", "SLOT_NOT_LIVE")
    assert refused.metadata == {"slot_id": "page-0", "state": end}


async def test_a_post_that_ends_while_it_is_asked_for_is_refused(queue: "Queue", call: Rearranging) -> None:
    """The answer is the news; it is stored although the call is refused."""
    await dispatch_first(queue)
    queue.publisher.states["page-0", "facebook", ""] = JobState.FAILED
    refused = await refusal(call, "page-0")
    assert (refused.reason, refused.metadata["state"]) == ("SLOT_NOT_LIVE", "FAILED")
    assert (await queue.states())["page-0"] == "FAILED"


async def test_an_outdated_etag_is_refused_before_publisher_is_asked(queue: "Queue", call: Rearranging) -> None:
    await dispatch_first(queue)
    await call.remove("page-3")
    for slot_id in ("page-0", "page-2"):
        with pytest.raises(Conflict) as refused:
            await call.remove(slot_id, etag="0")
        assert refused.value.reason == "ETAG_MISMATCH"
    assert queue.publisher.asked == []
    assert (await queue.states())["page-0"] == "DISPATCHED"


async def test_a_change_of_somebody_else_meanwhile_does_not_stop_a_removal(queue: "Queue", call: Rearranging) -> None:
    """The removal was accepted first: who reads the queue afterwards has an etag that knows of it."""
    await dispatch_first(queue)
    ask = queue.publisher.cancel_posts

    async def meanwhile(organization_id: str, posts: object) -> object:
        with pytest.raises(Conflict):
            await call.shuffle(7, etag="0")
        await call.reorder("page-3", "page-2", "page-1", etag="1")
        return await ask(organization_id, posts)  # type: ignore[arg-type]

    queue.publisher.cancel_posts = meanwhile  # type: ignore[method-assign,assignment]
    answer = await call.remove("page-0", close_gap=True, etag="0")
    assert answer.etag == "3"
    assert [slot.id for slot in answer.moved_slots] == ["page-3", "page-2", "page-1"]


async def test_an_unknown_slot_and_one_of_another_organization_are_not_found(queue: "Queue", call: Rearranging) -> None:
    for slot_id, organization in (("nobody", "acme"), ("page-0", "other")):
        with pytest.raises(NotFound) as refused:
            await call.remove(slot_id, organization=organization)
        assert (refused.value.reason, refused.value.metadata) == ("SLOT_NOT_FOUND", {"slot_id": slot_id})
    assert await call.drafts() == ["page-0", "page-1", "page-2", "page-3"]


async def test_the_event_may_come_before_the_answer_is_applied(queue: "Queue", call: Rearranging) -> None:
    await dispatch_first(queue)
    ask = queue.publisher.cancel_posts

    async def overtaken(organization_id: str, posts: object) -> object:
        answers = await ask(organization_id, posts)  # type: ignore[arg-type]
        await queue.settle(*(each.job for each in answers))
        return answers

    queue.publisher.cancel_posts = overtaken  # type: ignore[method-assign,assignment]
    answer = await call.remove("page-0", close_gap=True)
    assert [slot.id for slot in answer.moved_slots] == ["page-1", "page-2", "page-3"]
    assert len(await queue.cancellations()) == 1


async def test_calls_at_once_remove_a_slot_once(queue: "Queue", call: Rearranging) -> None:
    await dispatch_first(queue)
    async with asyncio.TaskGroup() as group:
        calls = [group.create_task(call.remove("page-0", request_id=f"r{number % 3}")) for number in range(6)]
        cleared = group.create_task(call.clear())
    assert {each.result().queue_slot.state for each in calls} == {QUEUE_SLOT_STATE_CANCELED}
    assert list(cleared.result().too_late_slots) == []
    assert set((await queue.states()).values()) == {"CANCELED"}
    canceled = [each.slot_id for each in await queue.cancellations()]
    assert sorted(canceled) == ["page-0", "page-1", "page-2", "page-3"]
