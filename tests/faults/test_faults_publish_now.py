"""Publisher dies while it sends at once, or retries: the repeated call begins one run, and each post goes out once."""

from collections.abc import Sequence

import pytest

from devstack.stack import Stack
from postflow.drafts.v1.draft_pb2 import DRAFT_STATE_PUBLISHED, Draft
from postflow.publisher.v1 import publisher_service_pb2 as pb
from postflow.publisher.v1.post_job_pb2 import (
    POST_JOB_STATE_FAILED,
    POST_JOB_STATE_PUBLISHED,
    POST_JOB_STATE_SCHEDULED,
)
from postflow.queue.v1.queue_slot_pb2 import QUEUE_SLOT_STATE_PUBLISHED
from testkit.eventually import eventually
from testkit.stack.posting import Posting
from tests.faults.second import second_publisher

FAILPOINTS = "POSTFLOW_PUBLISHER_FAILPOINTS"
DAY = 86_400.0
OF_A_SEND = ["publisher.recover.committed", "publisher.send.claimed", "publisher.send.answered"]


async def _until_out_once(posting: Posting, *drafts: str) -> None:
    """Waits until all services show the posts as published, and compares that with the provider's ledger."""
    for draft in drafts:
        job = await posting.tenant.until_job(draft, POST_JOB_STATE_PUBLISHED, within=60)
        await posting.tenant.until(draft, DRAFT_STATE_PUBLISHED)
        (effect,) = [each for each in posting.effects() if each["account"].endswith(f"of-{draft}")]
        assert effect["idempotency_key"] == f"{job.id}-{job.run}"
        assert effect["id"] == job.external_id

    async def settled() -> bool:
        slots = [slot for draft in drafts for slot in await posting.tenant.slots(draft)]
        return all(slot.state == QUEUE_SLOT_STATE_PUBLISHED for slot in slots)

    await eventually(settled, within=30)


@pytest.mark.parametrize(
    "failpoint", ["publisher.publish_now.before_commit", "publisher.publish_now.committed", *OF_A_SEND]
)
async def test_what_is_sent_at_once_goes_out_once_by_a_killed_publisher(
    stack: Stack, posting: Posting, failpoint: str
) -> None:
    drafts = ["one", "two"]
    await posting.schedule(*drafts, ahead=DAY)
    known = {draft: await posting.tenant.draft(draft) for draft in drafts}
    for draft in drafts:
        await posting.tenant.until_job(draft, POST_JOB_STATE_SCHEDULED)
    await stack.restart("publisher", {FAILPOINTS: f"{failpoint}=kill"})
    await posting.tenant.clients.ready()
    async with second_publisher(stack):
        for draft in drafts:
            await _publish(stack, posting, draft, known[draft])
        # The process may die just after the effect: whether it is still running then says nothing.
        await eventually(lambda: _are_out(posting, drafts), within=60)
        if stack.running("publisher"):
            await stack.stop("publisher")
        await stack.start("publisher", {FAILPOINTS: ""})
        await posting.tenant.clients.ready()
        await _until_out_once(posting, *drafts)


async def _are_out(posting: Posting, drafts: Sequence[str]) -> bool:
    accounts = {each["account"] for each in posting.effects()}
    return all(any(account.endswith(f"of-{draft}") for account in accounts) for draft in drafts)


async def test_a_retry_goes_out_once_by_a_killed_publisher(stack: Stack, posting: Posting) -> None:
    await stack.sandbox.faults({"fault": "status", "status": 422, "count": 1})
    await posting.schedule("post", ahead=0.5)
    failed = await posting.tenant.until_job("post", POST_JOB_STATE_FAILED)
    await stack.restart("publisher", {FAILPOINTS: "publisher.retry.committed=kill"})
    await posting.tenant.clients.ready()
    request = pb.RetryPostJobRequest(
        organization_id=posting.tenant.organization_id, post_job_id=failed.id, request_id="again"
    )
    answer = await posting.insist(lambda: _revived(stack, posting, request))
    assert answer.post_job.run == 2
    await _until_out_once(posting, "post")


async def _revived(stack: Stack, posting: Posting, request: pb.RetryPostJobRequest) -> pb.RetryPostJobResponse:
    if not stack.running("publisher"):
        await stack.start("publisher", {FAILPOINTS: ""})
        await posting.tenant.clients.ready()
    return await posting.tenant.clients.publisher.RetryPostJob(request)


async def _publish(stack: Stack, posting: Posting, draft: str, known: Draft) -> None:
    async def call() -> list[pb.PublishNowResult]:
        if not stack.running("publisher"):
            await stack.start("publisher", {FAILPOINTS: ""})
            await posting.tenant.clients.ready()
        return list(await posting.tenant.publish_now(draft, known, request_id=f"now-{draft}"))

    (result,) = await posting.insist(call)
    assert result.outcome == pb.PUBLISH_NOW_OUTCOME_STARTED
