"""AddToQueue at the front of a queue, over the wire."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from postflow.queue.v1.queue_service_pb2 import (
    QUEUE_PLACE_END,
    QUEUE_PLACE_FRONT,
    AddToQueueRequest,
    GetQueueRequest,
    ListQueueSlotsRequest,
)
from servicekit.clock import SystemClock
from servicekit.faults import Fault, NotFound, Refused

if TYPE_CHECKING:
    from tests.rpc.queue_service.conftest import Rig

Refusal = Callable[[Awaitable[object]], Awaitable[Fault]]
MIDNIGHT = SystemClock().now().replace(hour=0, minute=0, second=0, microsecond=0)
DAYS = [MIDNIGHT + timedelta(days=number, hours=12) for number in range(2, 500)]


def add(draft: str, *, place: Any = QUEUE_PLACE_FRONT, request_id: str = "", **fields: Any) -> AddToQueueRequest:
    return AddToQueueRequest(
        **{"organization_id": "acme", "draft_id": draft, "place": place, "request_id": request_id, **fields}
    )


async def added(rig: "Rig", draft: str, **fields: Any) -> datetime:
    rig.draft(draft, ("page", "facebook", ""))
    answer = await rig.stub.AddToQueue(add(draft, **fields))
    moment: datetime = answer.queue_slots[0].schedule_time.ToDatetime(UTC)
    return moment


async def shown(rig: "Rig") -> list[tuple[str, datetime, int]]:
    answer = await rig.stub.ListQueueSlots(ListQueueSlotsRequest(organization_id="acme", social_account_id="page"))
    return [(slot.draft_id, slot.schedule_time.ToDatetime(UTC), slot.revision) for slot in answer.queue_slots]


async def test_the_slots_of_a_queue_shift_for_a_draft_at_its_front(rig: "Rig") -> None:
    await rig.put_schedule("page", *DAYS)
    assert await added(rig, "a", place=QUEUE_PLACE_END) == DAYS[0]
    assert await added(rig, "b") == DAYS[0]
    assert await added(rig, "c", place=0) == DAYS[2]
    assert await shown(rig) == [("b", DAYS[0], 1), ("a", DAYS[1], 2), ("c", DAYS[2], 1)]
    queue = (await rig.stub.GetQueue(GetQueueRequest(organization_id="acme", social_account_id="page"))).queue
    assert queue.etag == "3"


async def test_a_repeat_gets_the_first_answer_and_shifts_nothing(rig: "Rig", refusal: Refusal) -> None:
    await rig.put_schedule("page", *DAYS)
    await added(rig, "a")
    rig.draft("b", ("page", "facebook", ""))
    first = await rig.stub.AddToQueue(add("b", request_id="r1"))
    assert await rig.stub.AddToQueue(add("b", request_id="r1")) == first
    assert [draft for draft, *_ in await shown(rig)] == ["b", "a"]
    reused = await refusal(rig.stub.AddToQueue(add("b", place=QUEUE_PLACE_END, request_id="r1")))
    assert reused.reason == "REQUEST_ID_REUSED"


@pytest.mark.parametrize(
    ("fields", "kind", "reason"),
    [
        ({"draft_id": "missing"}, NotFound, "DRAFT_NOT_FOUND"),
        ({"draft_id": "a"}, Refused, "ALREADY_QUEUED"),
        ({"social_account_ids": ["shop"]}, Refused, "ACCOUNT_NOT_A_TARGET"),
        ({"social_account_ids": ["gone"]}, Refused, "ACCOUNT_NOT_FOUND"),
        ({"social_account_ids": ["new"]}, Refused, "NO_SCHEDULE"),
        ({"social_account_ids": ["off"]}, Refused, "SCHEDULE_DISABLED"),
        ({"social_account_ids": ["full"]}, Refused, "HORIZON_EXHAUSTED"),
    ],
)
async def test_it_is_refused_with_its_reason(
    rig: "Rig", refusal: Refusal, fields: dict[str, Any], kind: type[Fault], reason: str
) -> None:
    await rig.put_schedule("page", *DAYS)
    await rig.put_schedule("off", enabled=False)
    await rig.put_schedule("full")
    rig.publisher.missing.add("gone")
    await added(rig, "a")
    rig.draft("b", *((account, "facebook", "") for account in ("page", "gone", "new", "off", "full")))
    refused = await refusal(rig.stub.AddToQueue(add("b", **fields)))
    assert (type(refused), refused.reason) == (kind, reason)


async def test_an_unknown_place_is_refused_by_name(rig: "Rig") -> None:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await rig.stub.AddToQueue(add("a", place=7))
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "place" in (refused.value.details() or "")
