"""SkipNextSlot over the wire."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from postflow.queue.v1.queue_service_pb2 import AddToQueueRequest, SkipNextSlotRequest
from servicekit.clock import SystemClock
from servicekit.faults import Fault, NotFound, Refused

if TYPE_CHECKING:
    from tests.rpc.queue_service.conftest import Rig

Refusal = Callable[[Awaitable[object]], Awaitable[Fault]]
MIDNIGHT = SystemClock().now().replace(hour=0, minute=0, second=0, microsecond=0)
DAYS = [MIDNIGHT + timedelta(days=number, hours=12) for number in range(2, 500)]


def skip(account: str = "page", *, undo: bool = False, organization_id: str = "acme") -> SkipNextSlotRequest:
    return SkipNextSlotRequest(organization_id=organization_id, social_account_id=account, undo=undo)


async def added(rig: "Rig", draft: str) -> datetime:
    rig.draft(draft, ("page", "facebook", ""))
    answer = await rig.stub.AddToQueue(AddToQueueRequest(organization_id="acme", draft_id=draft))
    moment: datetime = answer.queue_slots[0].schedule_time.ToDatetime(UTC)
    return moment


async def test_a_skip_is_used_by_the_next_draft_and_can_be_taken_back(rig: "Rig") -> None:
    await rig.put_schedule("page", *DAYS)
    shown = (await rig.stub.SkipNextSlot(skip())).queue
    assert (shown.skip_next, shown.social_account_id, shown.etag) == (True, "page", "1")
    assert await added(rig, "d1") == DAYS[1]
    shown = (await rig.stub.SkipNextSlot(skip())).queue
    assert [time.ToDatetime(UTC) for time in shown.skipped_times] == [DAYS[0]]
    assert not (await rig.stub.SkipNextSlot(skip(undo=True))).queue.skip_next
    assert not (await rig.stub.SkipNextSlot(skip(undo=True))).queue.skipped_times
    assert [await added(rig, draft) for draft in ("d2", "d3")] == [DAYS[0], DAYS[2]]


async def test_nothing_is_skipped_in_another_organization(rig: "Rig", refusal: Refusal) -> None:
    await rig.stub.SkipNextSlot(skip())
    refused = await refusal(rig.stub.SkipNextSlot(skip(undo=True, organization_id="other")))
    assert (type(refused), refused.reason) == (Refused, "NOTHING_SKIPPED")


async def test_an_unknown_account_is_refused(rig: "Rig", refusal: Refusal) -> None:
    rig.publisher.missing.add("gone")
    refused = await refusal(rig.stub.SkipNextSlot(skip("gone")))
    assert (type(refused), refused.reason) == (NotFound, "ACCOUNT_NOT_FOUND")
