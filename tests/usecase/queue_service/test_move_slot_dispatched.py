"""MoveSlot of a slot that Publisher has: it is taken back first, and lost by no fault in between."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from civil.weekly import WeeklySlot
from postflow.queue.v1.queue_events_pb2 import (
    SLOT_MOVE_REASON_MOVED,
    SLOT_MOVE_REASON_TAKEN_BACK,
)
from postflow.queue.v1.queue_slot_pb2 import QUEUE_SLOT_STATE_DISPATCHED, QUEUE_SLOT_STATE_SCHEDULED
from queue_service.application.take_back import ASKED, INTENDED
from queue_service.domain.job import JobState
from queue_service.domain.take_back import CancelAnswer, SlotPost
from servicekit import failpoints
from servicekit.faults import Fault, Unavailable
from servicekit.timestamps import timestamp
from testkit.clocks import START
from tests.usecase.queue_service.rearranging import Rearranging

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.usecase.queue_service.conftest import Queue

HOUR = timedelta(hours=1)
HOURLY = [WeeklySlot(day=day, hour=hour, minute=0) for day in range(7) for hour in range(24)]
NOON = timestamp(START + 9.5 * HOUR)


@pytest.fixture
async def call(queue: "Queue") -> Rearranging:
    """A queue whose first slot of four has just been dispatched."""
    queue.now = START
    await queue.put_schedule("page", *HOURLY)
    await queue.fill_weekly("page", START + HOUR, HOUR, 4)
    queue.now = START + HOUR
    await queue.hand_over.dispatch()
    assert (await queue.states())["page-0"] == "DISPATCHED"
    return Rearranging(queue)


@pytest.fixture(autouse=True)
def no_failpoints() -> Iterator[None]:
    yield
    failpoints.install("", "test")


def between(queue: "Queue", act: "Callable[[list[CancelAnswer]], Awaitable[object]]") -> None:
    """Has something happen after Publisher has answered, and before the call goes on."""
    ask = queue.publisher.cancel_posts

    async def answered(organization_id: str, posts: Sequence[SlotPost]) -> list[CancelAnswer]:
        answers = await ask(organization_id, posts)
        await act(answers)
        return answers

    queue.publisher.cancel_posts = answered  # type: ignore[method-assign]


async def refusal(call: Rearranging, **fields: Any) -> Fault:
    with pytest.raises(Fault) as refused:
        await call.move("page-0", **fields)
    return refused.value


async def test_it_is_taken_back_and_goes_out_at_its_new_time(queue: "Queue", call: Rearranging) -> None:
    [before] = queue.stream.taken()
    answer = await call.move("page-0", schedule_time=NOON, etag="0")
    slot = answer.queue_slot
    assert (queue.time_of(slot), slot.state, slot.revision) == (START + 9.5 * HOUR, QUEUE_SLOT_STATE_SCHEDULED, 3)
    assert (answer.etag, await call.etag()) == ("1", "1")
    assert [each.reason for each in await queue.moves()] == [SLOT_MOVE_REASON_TAKEN_BACK, SLOT_MOVE_REASON_MOVED]
    await queue.hand_over.dispatch()
    assert queue.stream.taken() == []
    queue.now = START + 9.5 * HOUR
    await queue.hand_over.dispatch()
    [again] = [each for each in queue.stream.taken() if each.slot_id == "page-0"]
    assert (before.revision, again.revision, again.schedule_time) == (1, 3, START + 9.5 * HOUR)
    await queue.settle(queue.report(again, JobState.PUBLISHED, 30))
    assert (await queue.states())["page-0"] == "PUBLISHED"


async def test_it_goes_to_the_bottom(queue: "Queue", call: Rearranging) -> None:
    answer = await call.move("page-0", to_bottom=True)
    assert queue.time_of(answer.queue_slot) == START + 5 * HOUR
    assert len(queue.publisher.asked) == 1


async def test_its_own_time_is_too_near_for_the_others(queue: "Queue", call: Rearranging) -> None:
    answer = await call.move("page-0", before_slot_id="page-2")
    assert [(slot.id, queue.time_of(slot)) for slot in answer.moved_slots] == [
        ("page-0", START + 3 * HOUR),
        ("page-2", START + 4 * HOUR),
        ("page-3", START + 5 * HOUR),
    ]
    assert await call.drafts() == ["page-1", "page-0", "page-2", "page-3"]


async def test_one_that_is_there_already_is_not_taken_back(queue: "Queue", call: Rearranging) -> None:
    answer = await call.move("page-0", to_top=True)
    assert (answer.queue_slot.state, answer.etag) == (QUEUE_SLOT_STATE_DISPATCHED, "0")
    assert queue.publisher.asked == []


async def test_what_would_be_refused_takes_nothing_back(queue: "Queue", call: Rearranging) -> None:
    taken = timestamp(START + 2 * HOUR)
    for fields, reason in (
        ({"schedule_time": taken}, "SLOT_TAKEN"),
        ({"before_slot_id": "nobody"}, "SLOT_NOT_FOUND"),
        ({"to_bottom": True, "etag": "9"}, "ETAG_MISMATCH"),
        ({"schedule_time": timestamp(START)}, "INVALID_FIELD"),
    ):
        assert (await refusal(call, **fields)).reason == reason
    await queue.delete_schedule("page", version=2)
    assert (await refusal(call, to_bottom=True)).reason == "NO_SCHEDULE"
    assert queue.publisher.asked == []
    [row] = await queue.rows("select state, taking_back from slot where id = 'page-0'")
    assert tuple(row) == ("DISPATCHED", "")


@pytest.mark.parametrize("state", [JobState.SENDING, JobState.UNKNOWN])
async def test_a_post_that_has_started_is_named(queue: "Queue", call: Rearranging, state: JobState) -> None:
    queue.publisher.states["page-0", "facebook", ""] = state
    refused = await refusal(call, schedule_time=NOON, etag="0")
    assert (refused.code, refused.reason) == ("FAILED_PRECONDITION", "TOO_LATE")
    assert refused.metadata == {"slot_id": "page-0", "post_job_id": "job-page-0-facebook-"}
    [row] = await queue.rows("select state, taking_back from slot where id = 'page-0'")
    assert (tuple(row), await call.etag()) == (("DISPATCHED", ""), "0")


async def test_a_post_that_ends_meanwhile_is_refused(queue: "Queue", call: Rearranging) -> None:
    queue.publisher.states["page-0", "facebook", ""] = JobState.FAILED
    refused = await refusal(call, schedule_time=NOON)
    assert (refused.reason, refused.metadata["state"]) == ("SLOT_NOT_LIVE", "FAILED")
    assert (await queue.states())["page-0"] == "FAILED"


@pytest.mark.parametrize("place", [INTENDED, ASKED])
@pytest.mark.parametrize("completed", [False, True])
async def test_a_call_that_died_is_completed_by_its_repeat(
    queue: "Queue", call: Rearranging, place: str, *, completed: bool
) -> None:
    failpoints.install(f"{place}=raise", "test")
    with pytest.raises(failpoints.FailpointHit):
        await call.move("page-0", to_bottom=True, etag="0", request_id="r1")
    failpoints.install("", "test")
    queue.now += timedelta(seconds=11)
    if completed:
        await queue.complete_take_backs()
        await queue.hand_over.dispatch()
    answer = await call.move("page-0", to_bottom=True, etag="0", request_id="r1")
    assert (queue.time_of(answer.queue_slot), answer.etag) == (START + 5 * HOUR, "1")
    assert await call.move("page-0", to_bottom=True, etag="0", request_id="r1") == answer


@pytest.mark.parametrize("place", [INTENDED, ASKED])
async def test_a_call_that_died_loses_no_slot(queue: "Queue", call: Rearranging, place: str) -> None:
    failpoints.install(f"{place}=raise", "test")
    with pytest.raises(failpoints.FailpointHit):
        await call.move("page-0", schedule_time=NOON)
    failpoints.install("", "test")
    queue.stream.taken()
    queue.now += timedelta(seconds=11)
    await queue.complete_take_backs()
    await queue.hand_over.dispatch()
    [command] = queue.stream.taken()
    assert (command.slot_id, command.revision, command.schedule_time) == ("page-0", 2, START + HOUR)


async def test_without_publisher_the_call_is_repeated(queue: "Queue", call: Rearranging) -> None:
    queue.publisher.cancel_fault = Unavailable("TAKE_BACK_PENDING", "no")
    pending = await refusal(call, schedule_time=NOON, etag="0", request_id="r1")
    assert (pending.code, pending.reason) == ("UNAVAILABLE", "TAKE_BACK_PENDING")
    queue.publisher.cancel_fault = None
    answer = await call.move("page-0", schedule_time=NOON, etag="0", request_id="r1")
    assert queue.time_of(answer.queue_slot) == START + 9.5 * HOUR


async def test_a_change_of_somebody_else_meanwhile_refuses_the_move(queue: "Queue", call: Rearranging) -> None:
    """The etag is judged where the change is decided. The slot is where it was."""
    between(queue, lambda _: call.remove("page-3"))
    assert (await refusal(call, to_bottom=True, etag="0")).reason == "ETAG_MISMATCH"
    [row] = await queue.rows("select state, schedule_time, taking_back from slot where id = 'page-0'")
    assert tuple(row) == ("SCHEDULED", START + HOUR, "")
    assert await call.etag() == "1"


async def test_a_time_that_is_taken_meanwhile_refuses_the_move(queue: "Queue", call: Rearranging) -> None:
    between(queue, lambda _: call.move("page-3", schedule_time=NOON))
    assert (await refusal(call, schedule_time=NOON)).reason == "SLOT_TAKEN"
    assert (await queue.states())["page-0"] == "SCHEDULED"
    assert len(await queue.moves()) == 2


async def test_a_slot_that_is_dispatched_again_meanwhile_is_taken_back_again(queue: "Queue", call: Rearranging) -> None:
    """Publisher's event may come before its answer is applied, and the slot is due."""
    rounds: list[int] = []

    async def overtake(answers: list[CancelAnswer]) -> None:
        rounds.append(answers[0].post.slot_revision)
        await queue.settle(*(each.job for each in answers))
        if len(rounds) == 1:
            await queue.hand_over.dispatch()

    between(queue, overtake)
    answer = await call.move("page-0", schedule_time=NOON, etag="0")
    assert (queue.time_of(answer.queue_slot), answer.queue_slot.revision) == (START + 9.5 * HOUR, 4)
    assert rounds == [1, 2]


async def test_a_slot_that_is_dispatched_again_and_again_is_pending(queue: "Queue", call: Rearranging) -> None:
    async def overtake(answers: list[CancelAnswer]) -> None:
        await queue.settle(*(each.job for each in answers))
        await queue.hand_over.dispatch()

    between(queue, overtake)
    assert (await refusal(call, schedule_time=NOON)).reason == "TAKE_BACK_PENDING"
    assert len(queue.publisher.asked) == 3


async def test_a_removal_meanwhile_prevails(queue: "Queue", call: Rearranging) -> None:
    failpoints.install(f"{INTENDED}=raise", "test")
    with pytest.raises(failpoints.FailpointHit):
        await call.remove("page-0")
    failpoints.install("", "test")
    refused = await refusal(call, schedule_time=NOON)
    assert (refused.reason, refused.metadata["state"]) == ("SLOT_NOT_LIVE", "CANCELED")


async def test_a_target_that_has_failed_is_not_announced_with_the_new_time(queue: "Queue") -> None:
    """Publisher would begin another run of it."""
    await queue.save_draft("both", ("group", "facebook", ""), ("group", "instagram_feed", ""))
    queue.now = START
    [slot] = await queue.at("both", START)
    await queue.hand_over.dispatch()
    commands = {each.channel: each for each in queue.stream.taken()}
    await queue.settle(queue.report(commands["facebook"], JobState.FAILED, 5))
    await Rearranging(queue).move(slot.id, schedule_time=NOON)
    returned, moved = await queue.moves()
    assert [[each.channel for each in event.targets] for event in (returned, moved)] == 2 * [["instagram_feed"]]
    queue.now = START + 9.5 * HOUR
    await queue.hand_over.dispatch()
    assert [each.channel for each in queue.stream.taken()] == ["instagram_feed"]
