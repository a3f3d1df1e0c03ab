"""Publisher dies or stalls between a claim and its last look at holds: what is held stays, and is not lost."""

import asyncio

import pytest

from devstack.stack import Stack
from postflow.publisher.v1 import publisher_service_pb2 as pb
from postflow.publisher.v1.hold_pb2 import HOLD_SCOPE_ACCOUNT
from postflow.publisher.v1.post_job_pb2 import (
    POST_JOB_STATE_BLOCKED,
    POST_JOB_STATE_PUBLISHED,
    POST_JOB_STATE_SENDING,
    PostJob,
)
from testkit.eventually import eventually
from testkit.stack.posting import Posting

FAILPOINTS = "POSTFLOW_PUBLISHER_FAILPOINTS"


async def _hold(posting: Posting, account: str) -> list[str]:
    """Puts a hold and returns what its answer lists; repeats the call until there is an answer."""
    request = pb.PutHoldRequest(
        organization_id=posting.tenant.organization_id,
        hold_id="hold",
        scope=HOLD_SCOPE_ACCOUNT,
        scope_id=account,
        revision=1,
        request_id="hold",
    )
    answer = await posting.insist(lambda: posting.tenant.clients.publisher.PutHold(request))
    return list(answer.in_flight_post_job_ids)


async def _release(posting: Posting) -> None:
    request = pb.ReleaseHoldRequest(
        organization_id=posting.tenant.organization_id, hold_id="hold", request_id="release"
    )
    await posting.insist(lambda: posting.tenant.clients.publisher.ReleaseHold(request))


async def _until_held(posting: Posting) -> PostJob:
    job = await posting.tenant.until_job("post", POST_JOB_STATE_BLOCKED, within=60)
    assert job.state_reason == "ACCOUNT_ON_HOLD"
    assert posting.effects() == []
    return job


async def test_a_post_claimed_by_a_killed_publisher_is_held(stack: Stack, posting: Posting) -> None:
    await stack.restart("publisher", {FAILPOINTS: "publisher.send.claimed=kill"})
    await posting.tenant.clients.ready()
    await posting.tenant.connect("of-post")
    await stack.sandbox.mode(posting.tenant.external("of-post"), "lookup")
    await posting.schedule("post", ahead=0.5)
    await eventually(lambda: not stack.running("publisher"))
    await stack.start("publisher", {FAILPOINTS: ""})

    listed = await _hold(posting, "of-post")
    # Nobody knows yet that it was not sent. The provider does not show it, and so it would be sent again.
    job = await _until_held(posting)
    assert listed == [job.id]
    await _release(posting)
    await posting.check_all_published()


@pytest.mark.parametrize("killed", [False, True], ids=["answered", "killed"])
async def test_a_post_claimed_before_a_hold_is_not_sent(stack: Stack, posting: Posting, killed: bool) -> None:
    """The hold is put while a sender stands between claim and look, by a process that may die before it answers."""
    points = "publisher.send.claimed=sleep:3" + (",publisher.hold.committed=kill" if killed else "")
    await stack.restart("publisher", {FAILPOINTS: points})
    await posting.tenant.clients.ready()
    await posting.schedule("post", ahead=0.5)
    await posting.tenant.until_job("post", POST_JOB_STATE_SENDING)
    async with asyncio.TaskGroup() as group:
        holding = group.create_task(_hold(posting, "of-post"))
        if killed:
            await eventually(lambda: not stack.running("publisher"))
            await stack.start("publisher", {FAILPOINTS: ""})
    job = await _until_held(posting)
    assert holding.result() == [job.id]
    # A killed process leaves behind an attempt that may have gone out; another one knows that it has begun nothing.
    assert job.attempts == (1 if killed else 0)
    # After that sleep too little of a lease is left for a request.
    await stack.restart("publisher", {FAILPOINTS: ""})
    await posting.tenant.clients.ready()
    await _release(posting)
    assert (await posting.tenant.until_job("post", POST_JOB_STATE_PUBLISHED)).run == 1
    await posting.check_all_published()
