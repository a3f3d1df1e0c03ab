"""BatchAddToQueue over the wire: a result for each item, repeats, and limits."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from google.rpc.code_pb2 import Code

from postflow.queue.v1.queue_service_pb2 import BatchAddToQueueRequest, QueueItem
from postflow.queue.v1.queue_slot_pb2 import QUEUE_SLOT_ORIGIN_EXACT, QUEUE_SLOT_ORIGIN_QUEUE
from servicekit.clock import SystemClock
from servicekit.faults import Fault, InvalidRequest, Unavailable
from servicekit.timestamps import timestamp

if TYPE_CHECKING:
    from tests.rpc.queue_service.conftest import Rig

Refusal = Callable[[Awaitable[object]], Awaitable[Fault]]
NOW = SystemClock().now()
MIDNIGHT = NOW.replace(hour=0, minute=0, second=0, microsecond=0)
DAYS = [MIDNIGHT + timedelta(days=number, hours=12) for number in range(2, 500)]


def batch(*items: tuple[str, str] | tuple[str, str, datetime], request_id: str = "") -> BatchAddToQueueRequest:
    return BatchAddToQueueRequest(
        organization_id="acme",
        items=[
            QueueItem(draft_id=draft, social_account_id=account, schedule_time=timestamp(at[0]) if at else None)
            for draft, account, *at in items
        ],
        request_id=request_id,
    )


async def test_each_item_gets_its_slot_or_its_error(rig: "Rig") -> None:
    await rig.put_schedule("page", *DAYS[:2])
    await rig.put_schedule("off", enabled=False)
    for number in range(5):
        rig.draft(f"d{number}", ("page", "facebook", ""), ("off", "x", ""), ("new", "x", ""))
    later = DAYS[0] + timedelta(hours=3)
    answer = await rig.stub.BatchAddToQueue(
        batch(
            ("d0", "page"),
            ("d1", "page", later),
            ("d2", "page", later + timedelta(seconds=59)),
            ("d2", "page"),
            ("d3", "page"),
            ("d3", "off"),
            ("d3", "new"),
        )
    )
    slots = [each.queue_slot for each in answer.results if each.HasField("queue_slot")]
    assert [slot.schedule_time.ToDatetime(UTC) for slot in slots] == [DAYS[0], later, DAYS[1]]
    assert [slot.origin for slot in slots] == [
        QUEUE_SLOT_ORIGIN_QUEUE,
        QUEUE_SLOT_ORIGIN_EXACT,
        QUEUE_SLOT_ORIGIN_QUEUE,
    ]
    errors = [each.error for each in answer.results if each.HasField("error")]
    assert [error.reason for error in errors] == [
        "SLOT_TAKEN",
        "HORIZON_EXHAUSTED",
        "SCHEDULE_DISABLED",
        "NO_SCHEDULE",
    ]
    assert {Code.Name(error.code) for error in errors} == {"FAILED_PRECONDITION"}
    assert errors[0].metadata["queue_slot_id"] == slots[1].id
    assert errors[0].message


async def test_a_repeat_returns_the_first_results(rig: "Rig", refusal: Refusal) -> None:
    await rig.put_schedule("page", *DAYS)
    rig.draft("d1", ("page", "facebook", ""))
    request = batch(("d1", "page"), ("gone", "page"), request_id="b1")
    first = await rig.stub.BatchAddToQueue(request)
    rig.schedule.fault = Unavailable("AWAY", "no")
    assert await rig.stub.BatchAddToQueue(request) == first
    reused = await refusal(rig.stub.BatchAddToQueue(batch(("d1", "page"), request_id="b1")))
    assert (type(reused), reused.reason) == (InvalidRequest, "REQUEST_ID_REUSED")


async def test_a_batch_waits_for_the_services_that_it_needs(rig: "Rig", refusal: Refusal) -> None:
    await rig.put_schedule("page", *DAYS)
    rig.draft("d1", ("page", "facebook", ""))
    rig.schedule.fault = Unavailable("AWAY", "no")
    assert isinstance(await refusal(rig.stub.BatchAddToQueue(batch(("d1", "page"), request_id="b1"))), Unavailable)
    rig.schedule.fault = None
    [result] = (await rig.stub.BatchAddToQueue(batch(("d1", "page"), request_id="b1"))).results
    assert result.queue_slot.schedule_time.ToDatetime(UTC) == DAYS[0]


async def test_a_batch_has_a_thousand_items_at_most(rig: "Rig", refusal: Refusal) -> None:
    items = [(f"d{number}", "page") for number in range(1001)]
    refused = await refusal(rig.stub.BatchAddToQueue(batch(*items)))
    assert isinstance(refused, InvalidRequest)
    assert [violation.field for violation in refused.violations] == ["items"]
    answer = await rig.stub.BatchAddToQueue(batch(*items[:1000]))
    assert {each.error.reason for each in answer.results} == {"DRAFT_NOT_FOUND"}
    assert len(answer.results) == 1000
    refused = await refusal(rig.stub.BatchAddToQueue(batch()))
    assert [violation.field for violation in refused.violations] == ["items"]


async def test_an_item_needs_its_ids(rig: "Rig", refusal: Refusal) -> None:
    for draft, account, field in (("", "page", "draft_id"), ("d1", "no/id", "social_account_id")):
        refused = await refusal(rig.stub.BatchAddToQueue(batch(("d0", "page"), (draft, account))))
        assert isinstance(refused, InvalidRequest)
        assert [violation.field for violation in refused.violations] == [f"items[1].{field}"]
