"""QueueService's reads of queues and slots, over the wire."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from postflow.queue.v1.queue_pb2 import LATE_ACTION_PUBLISH, Queue
from postflow.queue.v1.queue_service_pb2 import (
    GetQueueRequest,
    ListDraftSlotsRequest,
    ListQueueSlotsRequest,
    ScheduleAtRequest,
)
from servicekit.clock import SystemClock
from servicekit.faults import Fault, InvalidRequest, NotFound
from servicekit.timestamps import timestamp
from testkit.eventually import eventually

if TYPE_CHECKING:
    from tests.rpc.queue_service.conftest import Rig

Refusal = Callable[[Awaitable[object]], Awaitable[Fault]]
MIDNIGHT = SystemClock().now().replace(hour=0, minute=0, second=0, microsecond=0)
DAYS = [MIDNIGHT + timedelta(days=number, hours=12) for number in range(2, 9)]


async def schedule(rig: "Rig", draft_id: str, moment: datetime, account: str = "page") -> None:
    rig.draft(draft_id, (account, "facebook", ""))
    request = ScheduleAtRequest(organization_id="acme", draft_id=draft_id, schedule_time=timestamp(moment))
    await rig.stub.ScheduleAt(request)


async def queue(rig: "Rig", organization_id: str = "acme") -> Queue:
    request = GetQueueRequest(organization_id=organization_id, social_account_id="page")
    found: Queue = (await rig.stub.GetQueue(request)).queue
    return found


async def test_a_queue_is_shown(rig: "Rig") -> None:
    empty = await queue(rig)
    assert (empty.social_account_id, empty.connected, empty.paused, empty.empty_on) == ("page", True, False, "")
    assert empty.late_policy.action == LATE_ACTION_PUBLISH
    assert (empty.late_policy.grace.seconds, empty.pace.seconds) == (600, 300)
    assert not empty.HasField("next_time")
    await schedule(rig, "d1", DAYS[0])
    await schedule(rig, "d2", DAYS[3])
    found = await queue(rig)
    assert (found.scheduled_slots, found.dispatched_slots, found.overdue_slots) == (2, 0, 0)
    assert found.next_time.ToDatetime(UTC) == DAYS[0]
    assert found.last_time.ToDatetime(UTC) == DAYS[3]
    assert found.empty_on == DAYS[3].date().isoformat()
    assert found.etag


async def test_a_queue_shows_where_the_next_draft_would_go(rig: "Rig") -> None:
    await rig.put_schedule("page", *DAYS)
    assert (await queue(rig)).next_free_time.ToDatetime(UTC) == DAYS[0]
    await schedule(rig, "d1", DAYS[0])
    assert (await queue(rig)).next_free_time.ToDatetime(UTC) == DAYS[1]
    # A change of the schedule, so that the cached times are of no use.
    await rig.put_schedule("page", *DAYS, version=2)
    rig.schedule.is_frozen = True

    async def is_left_out() -> bool:
        return not (await queue(rig)).HasField("next_free_time")

    assert await eventually(is_left_out)


async def test_an_account_that_is_not_connected_has_a_queue(rig: "Rig") -> None:
    rig.publisher.disconnected = {"page"}
    assert (await queue(rig)).connected is False


async def test_an_unknown_account_has_no_queue(rig: "Rig", refusal: Refusal) -> None:
    rig.publisher.missing = {"page"}
    refused = await refusal(queue(rig))
    assert isinstance(refused, NotFound)
    assert (refused.reason, refused.metadata) == ("ACCOUNT_NOT_FOUND", {"social_account_id": "page"})


async def test_lists_have_the_slots_between_two_instants(rig: "Rig", refusal: Refusal) -> None:
    for number, day in enumerate(DAYS):
        await schedule(rig, f"d{number}", day)
    request = ListQueueSlotsRequest(
        organization_id="acme", page_size=2, start_time=timestamp(DAYS[2]), end_time=timestamp(DAYS[5])
    )
    first = await rig.stub.ListQueueSlots(request)
    request.page_token = first.next_page_token
    second = await rig.stub.ListQueueSlots(request)
    assert [slot.draft_id for page in (first, second) for slot in page.queue_slots] == ["d2", "d3", "d4"]
    assert second.next_page_token == ""
    request.end_time.CopyFrom(timestamp(DAYS[6]))
    fault = await refusal(rig.stub.ListQueueSlots(request))
    assert [violation.field for violation in fault.violations] == ["page_token"]


async def test_slots_are_listed_by_draft(rig: "Rig") -> None:
    await schedule(rig, "d1", DAYS[1])
    await schedule(rig, "d2", DAYS[0])

    async def drafts(organization_id: str) -> list[tuple[str, list[datetime]]]:
        request = ListDraftSlotsRequest(organization_id=organization_id, draft_ids=["d2", "d9", "d1"])
        answer = await rig.stub.ListDraftSlots(request)
        return [
            (each.draft_id, [slot.schedule_time.ToDatetime(UTC) for slot in each.queue_slots]) for each in answer.drafts
        ]

    assert await drafts("acme") == [("d2", [DAYS[0]]), ("d9", []), ("d1", [DAYS[1]])]
    assert await drafts("umbrella") == [("d2", []), ("d9", []), ("d1", [])]


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (GetQueueRequest(organization_id="acme"), "social_account_id"),
        (
            ListQueueSlotsRequest(organization_id="acme", start_time=timestamp(DAYS[1]), end_time=timestamp(DAYS[0])),
            "end_time",
        ),
        (ListDraftSlotsRequest(organization_id="acme"), "draft_ids"),
        (ListDraftSlotsRequest(organization_id="acme", draft_ids=["d1", "no such id!"]), "draft_ids[1]"),
        (ListDraftSlotsRequest(organization_id="acme", draft_ids=[f"d{n}" for n in range(101)]), "draft_ids"),
    ],
)
async def test_a_field_at_fault_is_named(rig: "Rig", refusal: Refusal, request_: Any, field: str) -> None:
    method = getattr(rig.stub, type(request_).__name__.removesuffix("Request"))
    fault = await refusal(method(request_))
    assert isinstance(fault, InvalidRequest)
    assert [violation.field for violation in fault.violations] == [field]
