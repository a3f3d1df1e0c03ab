"""Queue dies while a call takes a dispatched slot back: the same call, repeated, is carried out once."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import grpc
import pytest

from devstack.stack import Stack
from postflow.drafts.v1.draft_pb2 import DRAFT_STATE_DRAFT, DRAFT_STATE_PUBLISHED
from postflow.publisher.v1.post_job_pb2 import POST_JOB_STATE_CANCELED
from postflow.queue.v1.queue_service_pb2 import ClearQueueRequest
from servicekit.clock import SystemClock
from testkit.eventually import eventually
from testkit.stack.posting import Posting

FAILPOINTS = "POSTFLOW_QUEUE_FAILPOINTS"
PLACES = ("queue.take_back.intended", "queue.take_back.asked")

Call = Callable[[], Awaitable[object]]


async def dispatched(posting: Posting) -> str:
    """Returns a slot that has been handed over and is not due before the calls are through."""
    await posting.schedule("post", ahead=29)
    await posting.until_slots("DISPATCHED")
    [slot] = await posting.tenant.slots("post")
    return slot.id


async def killed_at_each_place(stack: Stack, posting: Posting, call: Call) -> None:
    """Makes the call, which dies at one place and is repeated, dies at the next one and is repeated."""
    for place in PLACES:
        await stack.restart("queue", {FAILPOINTS: f"{place}=kill"})
        await posting.tenant.clients.ready()
        with pytest.raises(grpc.aio.AioRpcError):
            await call()
        await eventually(lambda: not stack.running("queue"))
    await stack.start("queue", {FAILPOINTS: ""})
    await posting.tenant.clients.ready()
    await posting.insist(call)
    await posting.insist(call)


async def test_a_killed_removal_is_carried_out_once(stack: Stack, posting: Posting) -> None:
    slot_id = await dispatched(posting)
    await killed_at_each_place(stack, posting, lambda: posting.tenant.remove(slot_id, request_id="remove"))
    await nothing_is_sent(posting)


async def test_a_killed_clearing_is_carried_out_once(stack: Stack, posting: Posting) -> None:
    tenant = posting.tenant
    await dispatched(posting)
    request = ClearQueueRequest(organization_id=tenant.organization_id, social_account_id="of-post", request_id="clear")
    await killed_at_each_place(stack, posting, lambda: tenant.clients.queue.ClearQueue(request))
    answer = await tenant.clients.queue.ClearQueue(request)
    assert (answer.canceled_slots, list(answer.too_late_slots)) == (1, [])
    await nothing_is_sent(posting)


async def nothing_is_sent(posting: Posting) -> None:
    await posting.until_slots("CANCELED")
    job = await posting.tenant.until_job("post", POST_JOB_STATE_CANCELED)
    await posting.tenant.until("post", DRAFT_STATE_DRAFT)
    assert (job.attempts, posting.effects()) == (0, [])
    await posting.check()


async def test_a_killed_move_is_carried_out_once(stack: Stack, posting: Posting) -> None:
    tenant = posting.tenant
    slot_id = await dispatched(posting)
    times: list[datetime] = []

    def move() -> Awaitable[None]:
        times.append(times[0] if times else SystemClock().now() + timedelta(seconds=20))
        return tenant.move(slot_id, times[0], request_id="move")

    await killed_at_each_place(stack, posting, move)
    [slot] = await tenant.slots("post")
    assert slot.schedule_time.ToDatetime(UTC) == times[0]
    await tenant.until("post", DRAFT_STATE_PUBLISHED, within=60)
    await posting.check_all_published()
