"""Publisher dies or stalls between a claim and its last look at holds: what is held stays, and is not lost."""

import asyncio
from datetime import timedelta

import pytest
from google.protobuf.field_mask_pb2 import FieldMask

from devstack.stack import Stack
from postflow.drafts.v1 import drafts_service_pb2
from postflow.drafts.v1.draft_pb2 import Draft
from postflow.publisher.v1 import publisher_service_pb2 as pb
from postflow.publisher.v1.hold_pb2 import (
    HOLD_SCOPE_ACCOUNT,
    HOLD_SCOPE_BRAND,
    HOLD_SCOPE_ORGANIZATION,
    HOLD_SCOPE_PROVIDER,
    HoldScope,
)
from postflow.publisher.v1.post_job_pb2 import (
    POST_JOB_STATE_BLOCKED,
    POST_JOB_STATE_PUBLISHED,
    POST_JOB_STATE_SENDING,
    PostJob,
)
from servicekit.clock import SystemClock
from testkit.eventually import eventually
from testkit.stack.posting import Posting
from tests.faults.second import second_publisher

FAILPOINTS = "POSTFLOW_PUBLISHER_FAILPOINTS"
RATE = "POSTFLOW_PUBLISHER_RELEASE_RATE"
WIDE = {HOLD_SCOPE_ORGANIZATION: "", HOLD_SCOPE_PROVIDER: "sandbox", HOLD_SCOPE_BRAND: "bakery"}


async def _hold(posting: Posting, account: str) -> list[str]:
    """Puts a hold and returns what its answer lists; repeats the call until there is an answer."""
    request = pb.PutHoldRequest(
        organization_id=posting.tenant.organization_id,
        hold_id="hold",
        scope=HOLD_SCOPE_ACCOUNT,
        scope_id=account,
        revision=1,
        reason="wrong price",
        request_id="hold",
    )
    answer = await posting.insist(lambda: posting.tenant.clients.publisher.PutHold(request))
    return list(answer.in_flight_post_job_ids)


async def _freeze(posting: Posting, scope: HoldScope) -> pb.PutHoldResponse:
    """Puts a hold that covers all posts of the tenant; repeats the call until there is an answer."""
    request = pb.PutHoldRequest(
        organization_id=posting.tenant.organization_id,
        hold_id="hold",
        scope=scope,
        scope_id=WIDE[scope],
        revision=1,
        reason="wrong price",
        request_id="hold",
    )
    return await posting.insist(lambda: posting.tenant.clients.publisher.PutHold(request))


async def _branded(posting: Posting, *drafts: str) -> None:
    for draft in drafts:
        request = drafts_service_pb2.UpdateDraftRequest(
            organization_id=posting.tenant.organization_id,
            draft=Draft(id=draft, brand_id="bakery"),
            update_mask=FieldMask(paths=["brand_id"]),
        )
        await posting.tenant.clients.drafts.UpdateDraft(request)


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


@pytest.mark.parametrize("scope", WIDE, ids=["organization", "provider", "brand"])
async def test_a_freeze_is_exact_with_two_publishers_that_die(stack: Stack, posting: Posting, scope: HoldScope) -> None:
    """Puts the hold while posts are going out. One process dies with the hold stored, one while posts are freed."""
    await stack.restart("publisher", {FAILPOINTS: "publisher.hold.committed=kill", RATE: "20"})
    await posting.tenant.clients.ready()
    names = [f"post-{number}" for number in range(40)]
    await posting.prepare(*names)
    await _branded(posting, *names)
    now = SystemClock().now()
    async with second_publisher(stack, {FAILPOINTS: "publisher.freeing.committed=kill", RATE: "20"}):
        # Some have gone out when the hold is put, some are due then, and some come later.
        await posting.schedule_each({name: now + timedelta(seconds=3 + i / 10) for i, name in enumerate(names)})
        await eventually(lambda: len(posting.effects()) >= 5, within=30)
        async with asyncio.TaskGroup() as group:
            freezing = group.create_task(_freeze(posting, scope))
            await eventually(lambda: not stack.running("publisher"))
            await stack.start("publisher", {FAILPOINTS: "", RATE: "20"})
        answer = freezing.result()
        out = {line["idempotency_key"] for line in posting.effects()}
        assert len(out) < len(names)
        await asyncio.sleep(max(0, (now + timedelta(seconds=9) - SystemClock().now()).total_seconds()))
        later = {line["idempotency_key"].rpartition("-")[0] for line in posting.effects()} - {
            key.rpartition("-")[0] for key in out
        }
        assert later <= set(answer.in_flight_post_job_ids)
        assert answer.in_flight_count == len(answer.in_flight_post_job_ids)
        await _release(posting)
        await posting.check_all_published()
    assert len(posting.effects()) == len(names)
