"""ClearQueue: everything that has not started is canceled, no matter when the call dies."""

import asyncio
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from postflow.queue.v1.queue_events_pb2 import SLOT_CANCEL_REASON_CLEARED
from queue_service.application.take_back import ASKED, INTENDED
from queue_service.domain.job import JobState
from queue_service.domain.take_back import CancelAnswer, SlotPost
from servicekit import failpoints
from servicekit.faults import Conflict, NotFound, Unavailable
from testkit.clocks import START
from tests.usecase.queue_service.pausing import FEED
from tests.usecase.queue_service.rearranging import Rearranging

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
LATER = timedelta(seconds=11)


@pytest.fixture
async def call(queue: "Queue") -> Rearranging:
    """A queue with three dispatched slots and four that wait."""
    queue.now = START - 5 * MINUTE
    for place in range(3):
        await queue.save_draft(f"d{place}", FEED)
        await queue.at(f"d{place}", START - place * MINUTE)
    queue.now = START
    await queue.hand_over.dispatch()
    await queue.fill_weekly("page", START + HOUR, HOUR, 4)
    queue.now += timedelta(seconds=1)
    return Rearranging(queue)


@pytest.fixture(autouse=True)
def no_failpoints() -> Iterator[None]:
    yield
    failpoints.install("", "test")


async def die_at(place: str, call: Rearranging) -> None:
    failpoints.install(f"{place}=raise", "test")
    with pytest.raises(failpoints.FailpointHit):
        await call.clear(etag="3", request_id="r1")
    failpoints.install("", "test")


async def test_every_slot_is_canceled(queue: "Queue", call: Rearranging) -> None:
    answer = await call.clear(etag="3")
    assert (answer.canceled_slots, list(answer.too_late_slots), answer.etag) == (7, [], "4")
    assert set((await queue.states()).values()) == {"CANCELED"}
    canceled = await queue.cancellations()
    assert len(canceled) == 7
    assert {each.reason for each in canceled} == {SLOT_CANCEL_REASON_CLEARED}
    queue.stream.taken()
    queue.now += 9 * HOUR
    await queue.hand_over.dispatch()
    assert queue.stream.taken() == []


async def test_slots_for_which_it_is_too_late_are_listed(queue: "Queue", call: Rearranging) -> None:
    queue.publisher.states["d0", "facebook", ""] = JobState.SENDING
    queue.publisher.states["d1", "facebook", ""] = JobState.PUBLISHED
    queue.publisher.states["d2", "facebook", ""] = JobState.FAILED
    answer = await call.clear()
    assert [slot.draft_id for slot in answer.too_late_slots] == ["d1", "d0"]
    assert answer.canceled_slots == 4
    states = await queue.states()
    assert (states["d0"], states["d1"], states["d2"]) == ("DISPATCHED", "PUBLISHED", "FAILED")


async def test_an_empty_queue_stays_empty(queue: "Queue", call: Rearranging) -> None:
    first = await call.clear()
    queue.now += MINUTE
    again = await call.clear(etag=first.etag)
    assert (again.canceled_slots, again.etag) == (0, first.etag)
    never = await call.clear("never")
    assert (never.canceled_slots, never.etag) == (0, "0")


async def test_the_slots_of_other_accounts_stay(queue: "Queue", call: Rearranging) -> None:
    await queue.fill_weekly("other", START + HOUR, HOUR, 2)
    await call.clear()
    rows = await queue.rows("select id from slot where is_live order by 1")
    assert [row.id for row in rows] == ["other-0", "other-1"]


async def test_an_unknown_account_is_refused(queue: "Queue", call: Rearranging) -> None:
    queue.accounts.missing.add("nobody")
    with pytest.raises(NotFound) as refused:
        await call.clear("nobody")
    assert refused.value.reason == "ACCOUNT_NOT_FOUND"


async def test_an_outdated_etag_is_refused(queue: "Queue", call: Rearranging) -> None:
    with pytest.raises(Conflict) as refused:
        await call.clear(etag="2")
    assert refused.value.reason == "ETAG_MISMATCH"
    assert queue.publisher.asked == []
    assert "CANCELED" not in (await queue.states()).values()


async def test_dispatched_slots_alone_change_the_etag(queue: "Queue", call: Rearranging) -> None:
    await queue.rows("update slot set state = 'MISSED', next_emit_at = null where state = 'SCHEDULED' returning 1")
    assert (await call.clear(etag="3")).etag == "4"


async def test_a_repeated_request_gets_the_first_answer(queue: "Queue", call: Rearranging) -> None:
    first = await call.clear(etag="3", request_id="r1")
    await queue.save_draft("new", "page")
    await queue.at("new", START + HOUR)
    assert await call.clear(etag="3", request_id="r1") == first
    assert (await queue.states())["new"] == "SCHEDULED"


@pytest.mark.parametrize("place", [INTENDED, ASKED])
@pytest.mark.parametrize("completed", [False, True])
async def test_a_call_that_died_is_completed_by_its_repeat(
    queue: "Queue", call: Rearranging, place: str, *, completed: bool
) -> None:
    """The answer counts what the first attempt canceled. Slots that were added since stay, dispatched or not."""
    await die_at(place, call)
    queue.now += 2 * MINUTE
    if completed:
        await queue.complete_take_backs()
    for draft, minutes in (("soon", 0), ("late", 60)):
        await queue.save_draft(draft, "page")
        await queue.at(draft, queue.now + timedelta(minutes=minutes))
    await queue.hand_over.dispatch()
    answer = await call.clear(etag="3", request_id="r1")
    assert (answer.canceled_slots, list(answer.too_late_slots)) == (7, [])
    states = await queue.states()
    assert (states.pop("soon"), states.pop("late")) == ("DISPATCHED", "SCHEDULED")
    assert set(states.values()) == {"CANCELED"}
    assert await call.clear(etag="3", request_id="r1") == answer


@pytest.mark.parametrize("place", [INTENDED, ASKED])
async def test_a_call_that_died_is_completed_without_a_repeat(queue: "Queue", call: Rearranging, place: str) -> None:
    await die_at(place, call)
    queue.now += LATER
    await queue.complete_take_backs()
    assert set((await queue.states()).values()) == {"CANCELED"}
    assert {each.reason for each in await queue.cancellations()} == {SLOT_CANCEL_REASON_CLEARED}


async def test_without_publisher_the_rest_is_pending(queue: "Queue", call: Rearranging) -> None:
    queue.publisher.cancel_fault = Unavailable("TAKE_BACK_PENDING", "no")
    with pytest.raises(Unavailable) as refused:
        await call.clear(etag="3", request_id="r1")
    assert refused.value.reason == "TAKE_BACK_PENDING"
    assert sorted((await queue.states()).values()) == ["CANCELED"] * 4 + ["DISPATCHED"] * 3
    queue.publisher.cancel_fault = None
    assert (await call.clear(etag="3", request_id="r1")).canceled_slots == 7


async def test_thousands_of_slots_are_taken_back_page_by_page(queue: "Queue", call: Rearranging) -> None:
    await queue.fill("many", START - 40 * HOUR, MINUTE, 2400)
    await queue.rows(
        """
        update slot set state = 'DISPATCHED', next_emit_at = '2999-01-01'
        where social_account_id = 'many' and cast(substr(id, 6) as int) < 1200 returning 1
        """
    )
    answer = await call.clear("many")
    assert answer.canceled_slots == 2400
    assert [len(page) for page in queue.publisher.asked] == [500, 500, 200]
    assert len(await queue.cancellations()) == 2400


async def test_what_is_dispatched_meanwhile_is_given_back(queue: "Queue", call: Rearranging) -> None:
    """Covers a dispatcher that has found the account due while the call has its lock."""
    async with asyncio.TaskGroup() as group:
        for _ in range(5):
            queue.now += HOUR
            group.create_task(queue.hand_over.dispatch())
            group.create_task(call.clear())
    await queue.hand_over.dispatch()
    sent = {(command.slot_id, command.revision) for command in queue.stream.taken()}
    given_back = {(post.slot_id, post.slot_revision) for page in queue.publisher.asked for post in page}
    assert sent <= given_back
    assert set((await queue.states()).values()) == {"CANCELED"}


async def test_slots_that_were_cleared_before_are_not_counted_again(queue: "Queue", call: Rearranging) -> None:
    """A late report changes one of them while Publisher is asked for a new one."""
    [command, *_] = queue.stream.taken()
    await call.clear()
    await queue.save_draft("new", FEED)
    await queue.at("new", START)
    await queue.hand_over.dispatch()
    ask = queue.publisher.cancel_posts

    async def reporting(organization_id: str, posts: Sequence[SlotPost]) -> list[CancelAnswer]:
        await queue.settle(queue.report(command, JobState.CANCELED, 50, state_reason="TAKEN_BACK"))
        return await ask(organization_id, posts)

    queue.publisher.cancel_posts = reporting  # type: ignore[method-assign]
    queue.now += timedelta(seconds=1)
    assert (await call.clear()).canceled_slots == 1
