"""Rearranging a queue over the wire: codes, reasons, details, replays, and other organizations."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from postflow.queue.v1.queue_service_pb2 import (
    AddToQueueRequest,
    ReorderQueueRequest,
    ShuffleQueueRequest,
)
from postflow.queue.v1.queue_slot_pb2 import QueueSlot
from servicekit.clock import SystemClock
from servicekit.faults import Fault

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


def time_of(slot: QueueSlot) -> datetime:
    return slot.schedule_time.ToDatetime(UTC)


def reorder(*slots: QueueSlot, etag: str = "3", **fields: Any) -> ReorderQueueRequest:
    return ReorderQueueRequest(**{**PAGE, "slot_ids": [slot.id for slot in slots], "etag": etag, **fields})


async def test_a_reorder_returns_the_moved_slots_and_the_new_etag(rig: "Rig") -> None:
    first, second, third = await queued(rig)
    answer = await rig.stub.ReorderQueue(reorder(third, second, first))
    assert [(slot.id, time_of(slot), slot.revision) for slot in answer.moved_slots] == [
        (third.id, DAYS[0], 2),
        (first.id, DAYS[2], 2),
    ]
    assert answer.etag == "4"
    by_draft = reorder(etag="4", draft_ids=["d0", "d1", "d2"])
    assert [slot.id for slot in (await rig.stub.ReorderQueue(by_draft)).moved_slots] == [first.id, third.id]


async def test_a_reorder_is_refused_with_its_reason_and_the_slot(rig: "Rig", refusal: Refusal) -> None:
    first, second, third = await queued(rig)
    unknown = QueueSlot(id="unknown")
    cases: list[tuple[ReorderQueueRequest, str, str, dict[str, str]]] = [
        (reorder(first, second, third, etag="1"), "ABORTED", "ETAG_MISMATCH", {"etag": "3"}),
        (reorder(first, second), "INVALID_ARGUMENT", "REORDER_INCOMPLETE", {"slot_id": third.id, "draft_id": "d2"}),
        (reorder(first, first, third), "INVALID_ARGUMENT", "REORDER_REPEATED", {"slot_id": first.id}),
        (reorder(first, unknown), "NOT_FOUND", "SLOT_NOT_FOUND", {"slot_id": "unknown"}),
        (reorder(first, draft_ids=["d1"]), "INVALID_ARGUMENT", "INVALID_FIELD", {"field": "draft_ids"}),
        (reorder(first, etag=""), "INVALID_ARGUMENT", "INVALID_FIELD", {"field": "etag"}),
        (reorder(first, organization_id="other"), "ABORTED", "ETAG_MISMATCH", {}),
        (reorder(first, organization_id="other", etag="0"), "NOT_FOUND", "SLOT_NOT_FOUND", {"slot_id": first.id}),
    ]
    for request, code, reason, metadata in cases:
        refused = await refusal(rig.stub.ReorderQueue(request))
        assert (refused.code, refused.reason) == (code, reason)
        assert refused.metadata.items() >= metadata.items()
    await rig.rows("update slot set state = 'CANCELED', next_emit_at = null where draft_id = 'd2' returning 1")
    refused = await refusal(rig.stub.ReorderQueue(reorder(third, second, first)))
    assert (refused.code, refused.reason) == ("FAILED_PRECONDITION", "SLOT_NOT_SCHEDULED")
    assert refused.metadata["slot_id"] == third.id


async def test_a_shuffle_returns_its_seed(rig: "Rig") -> None:
    await queued(rig, 6)
    answer = await rig.stub.ShuffleQueue(ShuffleQueueRequest(**PAGE, seed=5))
    assert (answer.seed, answer.etag) == (5, "7")
    assert [time_of(slot) for slot in answer.moved_slots] == sorted(time_of(slot) for slot in answer.moved_slots)
    assert (await rig.stub.ShuffleQueue(ShuffleQueueRequest(**PAGE))).seed > 0


async def test_a_shuffle_is_refused_with_its_reason(rig: "Rig", refusal: Refusal) -> None:
    await queued(rig, 1)
    outdated = await refusal(rig.stub.ShuffleQueue(ShuffleQueueRequest(**PAGE, etag="9")))
    assert (outdated.code, outdated.reason) == ("ABORTED", "ETAG_MISMATCH")
    rig.publisher.missing.add("nobody")
    unknown = ShuffleQueueRequest(organization_id="acme", social_account_id="nobody")
    refused = await refusal(rig.stub.ShuffleQueue(unknown))
    assert (refused.code, refused.reason) == ("NOT_FOUND", "ACCOUNT_NOT_FOUND")


@pytest.mark.parametrize("method", ["ReorderQueue", "ShuffleQueue"])
async def test_a_repeated_request_gets_the_first_answer(rig: "Rig", refusal: Refusal, method: str) -> None:
    first, second, third = await queued(rig)
    request: Any = {
        "ReorderQueue": reorder(third, first, second, request_id="r1"),
        "ShuffleQueue": ShuffleQueueRequest(**PAGE, etag="3", request_id="r1"),
    }[method]
    call = getattr(rig.stub, method)
    answer = await call(request)
    assert await call(request) == answer
    request.etag = "4"
    assert (await refusal(call(request))).reason == "REQUEST_ID_REUSED"
