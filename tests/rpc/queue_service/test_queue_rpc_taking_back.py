"""Removing, clearing and moving over the wire: codes, reasons, details, replays, and posts that Publisher has."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from postflow.queue.v1.queue_service_pb2 import (
    AddToQueueRequest,
    ClearQueueRequest,
    MoveSlotRequest,
    RemoveFromQueueRequest,
    ScheduleAtRequest,
)
from postflow.queue.v1.queue_slot_pb2 import (
    QUEUE_SLOT_STATE_CANCELED,
    QUEUE_SLOT_STATE_DISPATCHED,
    QUEUE_SLOT_STATE_SCHEDULED,
    QueueSlot,
)
from servicekit.clock import SystemClock
from servicekit.faults import Fault, Unavailable
from tests.rpc.queue_service.conftest import stamp

if TYPE_CHECKING:
    from tests.rpc.queue_service.conftest import Rig

Refusal = Callable[[Awaitable[object]], Awaitable[Fault]]
MIDNIGHT = SystemClock().now().replace(hour=0, minute=0, second=0, microsecond=0)
DAYS = [MIDNIGHT + timedelta(days=number, hours=12) for number in range(2, 500)]
PAGE: dict[str, Any] = {"organization_id": "acme", "social_account_id": "page"}


async def queued(rig: "Rig", count: int = 3) -> list[QueueSlot]:
    """Gives drafts d0, d1, ... the next slots of the account."""
    await rig.put_schedule("page", *DAYS)
    slots: list[QueueSlot] = []
    for number in range(count):
        rig.draft(f"d{number}", ("page", "facebook", ""))
        request = AddToQueueRequest(organization_id="acme", draft_id=f"d{number}")
        slots += (await rig.stub.AddToQueue(request)).queue_slots
    return slots


async def dispatched(rig: "Rig") -> QueueSlot:
    """Has a draft sent now, and waits until Queue has handed it over."""
    rig.draft("now", ("page", "facebook", ""))
    time = stamp(SystemClock().now())
    request = ScheduleAtRequest(organization_id="acme", draft_id="now", schedule_time=time)
    [slot] = (await rig.stub.ScheduleAt(request)).queue_slots
    await rig.commands(1)
    found: QueueSlot = slot
    return found


def time_of(slot: QueueSlot) -> datetime:
    return slot.schedule_time.ToDatetime(UTC)


def remove(slot: str, **fields: Any) -> RemoveFromQueueRequest:
    return RemoveFromQueueRequest(**{"organization_id": "acme", "slot_id": slot} | fields)


def move(slot: str, **fields: Any) -> MoveSlotRequest:
    return MoveSlotRequest(**{"organization_id": "acme", "slot_id": slot} | fields)


async def test_a_removal_returns_the_slot_and_those_that_moved_up(rig: "Rig") -> None:
    first, second, third = await queued(rig)
    answer = await rig.stub.RemoveFromQueue(remove(first.id, close_gap=True, etag="3"))
    assert (answer.queue_slot.state, answer.queue_slot.state_reason) == (QUEUE_SLOT_STATE_CANCELED, "REMOVED")
    assert [(slot.id, time_of(slot)) for slot in answer.moved_slots] == [(second.id, DAYS[0]), (third.id, DAYS[1])]
    assert answer.etag == "4"
    again = await rig.stub.RemoveFromQueue(remove(first.id, close_gap=True, etag="3"))
    assert (again.queue_slot, list(again.moved_slots), again.etag) == (answer.queue_slot, [], "4")


async def test_a_removal_takes_a_post_back_from_publisher(rig: "Rig") -> None:
    slot = await dispatched(rig)
    answer = await rig.stub.RemoveFromQueue(remove(slot.id, etag="1"))
    assert (answer.queue_slot.state, answer.etag) == (QUEUE_SLOT_STATE_CANCELED, "2")
    [asked] = rig.posts.asked
    assert (asked.slot_id, asked.slot_revision, asked.draft_id) == (slot.id, 1, "now")


async def test_a_move_returns_the_slot_and_those_that_shifted(rig: "Rig") -> None:
    first, second, third = await queued(rig)
    top = await rig.stub.MoveSlot(move(third.id, to_top=True, etag="3"))
    assert [(slot.id, time_of(slot)) for slot in top.moved_slots] == list(
        zip((third.id, first.id, second.id), DAYS, strict=False)
    )
    assert (top.queue_slot, top.etag) == (top.moved_slots[0], "4")
    bottom = await rig.stub.MoveSlot(move(third.id, to_bottom=True))
    assert time_of(bottom.queue_slot) == DAYS[3]
    before = await rig.stub.MoveSlot(move(third.id, before_slot_id=second.id))
    assert [slot.id for slot in before.moved_slots] == [third.id, second.id]
    at = await rig.stub.MoveSlot(move(third.id, schedule_time=stamp(DAYS[9])))
    assert [time_of(slot) for slot in at.moved_slots] == [DAYS[9]]


async def test_a_move_takes_a_post_back_from_publisher(rig: "Rig") -> None:
    await rig.put_schedule("page", *DAYS)
    slot = await dispatched(rig)
    answer = await rig.stub.MoveSlot(move(slot.id, to_bottom=True, etag="1"))
    moved = answer.queue_slot
    assert (time_of(moved), moved.state, moved.revision) == (DAYS[0], QUEUE_SLOT_STATE_SCHEDULED, 3)
    assert len(rig.posts.asked) == 1


async def test_a_clearing_counts_and_lists_what_it_came_too_late_for(rig: "Rig") -> None:
    await queued(rig, 2)
    slot = await dispatched(rig)
    rig.posts.started.add("now")
    answer = await rig.stub.ClearQueue(ClearQueueRequest(**PAGE, etag="3"))
    assert (answer.canceled_slots, answer.etag) == (2, "4")
    assert [(late.id, late.state) for late in answer.too_late_slots] == [(slot.id, QUEUE_SLOT_STATE_DISPATCHED)]
    rig.posts.started.clear()
    again = await rig.stub.ClearQueue(ClearQueueRequest(**PAGE))
    assert (again.canceled_slots, list(again.too_late_slots)) == (1, [])


async def test_what_has_started_is_refused_with_the_post(rig: "Rig", refusal: Refusal) -> None:
    slot = await dispatched(rig)
    rig.posts.started.add("now")
    for call in (
        rig.stub.RemoveFromQueue(remove(slot.id)),
        rig.stub.MoveSlot(move(slot.id, schedule_time=stamp(DAYS[0]))),
    ):
        refused = await refusal(call)
        assert (refused.code, refused.reason) == ("FAILED_PRECONDITION", "TOO_LATE")
        assert refused.metadata == {"slot_id": slot.id, "post_job_id": "job-now"}


async def test_without_publisher_posts_are_pending(rig: "Rig", refusal: Refusal) -> None:
    slot = await dispatched(rig)
    rig.posts.fault = Unavailable("NOT_READY", "starting")
    later = move(slot.id, schedule_time=stamp(DAYS[0]))
    for call in (
        rig.stub.MoveSlot(later),
        rig.stub.RemoveFromQueue(remove(slot.id)),
        rig.stub.ClearQueue(ClearQueueRequest(**PAGE)),
    ):
        refused = await refusal(call)
        assert (refused.code, refused.reason) == ("UNAVAILABLE", "TAKE_BACK_PENDING")
    rig.posts.fault = None
    assert (await rig.stub.RemoveFromQueue(remove(slot.id))).queue_slot.state == QUEUE_SLOT_STATE_CANCELED


async def test_a_slot_is_refused_with_its_reason(rig: "Rig", refusal: Refusal) -> None:
    first, second, third = await queued(rig)
    await rig.stub.RemoveFromQueue(remove(third.id))
    await rig.rows("update slot set state = 'MISSED', next_emit_at = null where draft_id = 'd2' returning 1")
    live = {"slot_id": third.id, "state": "MISSED"}
    unknown = {"slot_id": "unknown"}
    foreign = {"organization_id": "other"}
    cases: list[tuple[Awaitable[object], str, str, dict[str, str]]] = [
        (rig.stub.RemoveFromQueue(remove("unknown")), "NOT_FOUND", "SLOT_NOT_FOUND", unknown),
        (rig.stub.RemoveFromQueue(remove(first.id, **foreign)), "NOT_FOUND", "SLOT_NOT_FOUND", {"slot_id": first.id}),
        (rig.stub.RemoveFromQueue(remove(third.id)), "FAILED_PRECONDITION", "SLOT_NOT_LIVE", live),
        (rig.stub.RemoveFromQueue(remove(first.id, etag="3")), "ABORTED", "ETAG_MISMATCH", {"etag": "4"}),
        (rig.stub.MoveSlot(move("unknown", to_top=True)), "NOT_FOUND", "SLOT_NOT_FOUND", unknown),
        (
            rig.stub.MoveSlot(move(first.id, to_top=True, **foreign)),
            "NOT_FOUND",
            "SLOT_NOT_FOUND",
            {"slot_id": first.id},
        ),
        (rig.stub.MoveSlot(move(third.id, to_top=True)), "FAILED_PRECONDITION", "SLOT_NOT_LIVE", live),
        (rig.stub.MoveSlot(move(first.id, to_top=True, etag="3")), "ABORTED", "ETAG_MISMATCH", {"etag": "4"}),
        (rig.stub.MoveSlot(move(first.id, before_slot_id="unknown")), "NOT_FOUND", "SLOT_NOT_FOUND", unknown),
        (rig.stub.MoveSlot(move(first.id)), "INVALID_ARGUMENT", "INVALID_FIELD", {"field": "destination"}),
        (
            rig.stub.MoveSlot(move(first.id, to_top=False)),
            "INVALID_ARGUMENT",
            "INVALID_FIELD",
            {"field": "destination"},
        ),
        (
            rig.stub.MoveSlot(move(first.id, schedule_time=stamp(DAYS[1]))),
            "FAILED_PRECONDITION",
            "SLOT_TAKEN",
            {"queue_slot_id": second.id},
        ),
    ]
    for call, code, reason, metadata in cases:
        refused = await refusal(call)
        assert (refused.code, refused.reason) == (code, reason)
        assert refused.metadata.items() >= metadata.items()


async def test_no_slot_moves_before_one_with_a_chosen_time(rig: "Rig", refusal: Refusal) -> None:
    first, *_ = await queued(rig, 1)
    rig.draft("chosen", ("page", "facebook", ""))
    request = ScheduleAtRequest(organization_id="acme", draft_id="chosen", schedule_time=stamp(DAYS[5]))
    [chosen] = (await rig.stub.ScheduleAt(request)).queue_slots
    refused = await refusal(rig.stub.MoveSlot(move(first.id, before_slot_id=chosen.id)))
    assert (refused.code, refused.reason) == ("FAILED_PRECONDITION", "SLOT_NOT_SCHEDULED")
    assert refused.metadata["slot_id"] == chosen.id


async def test_a_new_slot_time_is_refused_as_an_add_would_be(rig: "Rig", refusal: Refusal) -> None:
    rig.draft("d", ("page", "facebook", ""))
    request = ScheduleAtRequest(organization_id="acme", draft_id="d", schedule_time=stamp(DAYS[0]))
    [slot] = (await rig.stub.ScheduleAt(request)).queue_slots
    cases: list[tuple[dict[str, Any], str]] = [
        ({}, "NO_SCHEDULE"),
        ({"enabled": False}, "SCHEDULE_DISABLED"),
        ({"version": 2}, "HORIZON_EXHAUSTED"),
    ]
    for fields, reason in cases:
        if fields:
            await rig.put_schedule("page", announce=False, **fields)
        refused = await refusal(rig.stub.MoveSlot(move(slot.id, to_bottom=True)))
        assert (refused.code, refused.reason) == ("FAILED_PRECONDITION", reason)


async def test_a_clearing_is_refused_with_its_reason(rig: "Rig", refusal: Refusal) -> None:
    await queued(rig, 1)
    outdated = await refusal(rig.stub.ClearQueue(ClearQueueRequest(**PAGE, etag="9")))
    assert (outdated.code, outdated.reason) == ("ABORTED", "ETAG_MISMATCH")
    rig.publisher.missing.add("nobody")
    refused = await refusal(rig.stub.ClearQueue(ClearQueueRequest(organization_id="acme", social_account_id="nobody")))
    assert (refused.code, refused.reason) == ("NOT_FOUND", "ACCOUNT_NOT_FOUND")


@pytest.mark.parametrize("method", ["RemoveFromQueue", "ClearQueue", "MoveSlot"])
async def test_a_repeated_request_gets_the_first_answer(rig: "Rig", refusal: Refusal, method: str) -> None:
    first, *_ = await queued(rig)
    request: Any = {
        "RemoveFromQueue": remove(first.id, close_gap=True, etag="3", request_id="r1"),
        "ClearQueue": ClearQueueRequest(**PAGE, etag="3", request_id="r1"),
        "MoveSlot": move(first.id, to_bottom=True, etag="3", request_id="r1"),
    }[method]
    call = getattr(rig.stub, method)
    answer = await call(request)
    assert await call(request) == answer
    request.etag = "4"
    assert (await refusal(call(request))).reason == "REQUEST_ID_REUSED"
