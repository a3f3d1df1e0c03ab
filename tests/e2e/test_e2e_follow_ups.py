"""A post with comments, from draft to provider: each part goes out once and in order, even if processes break."""

from collections.abc import AsyncIterator
from datetime import timedelta
from functools import partial

import pytest

from devstack.stack import Stack
from postflow.drafts.v1.draft_pb2 import DRAFT_STATE_PARTIALLY_PUBLISHED, DRAFT_STATE_PUBLISHED
from postflow.queue.v1.queue_slot_pb2 import QUEUE_SLOT_STATE_PUBLISHED
from servicekit.clock import SystemClock
from testkit.eventually import eventually
from testkit.stack.mixed_run import QUICK
from testkit.stack.tenant import Tenant

COMMENTS = ("The first comment", "The second comment")


@pytest.fixture(scope="module")
async def stack(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stack]:
    async with Stack(tmp_path_factory.mktemp("stack") / "state", environment=QUICK) as running:
        yield running


@pytest.mark.parametrize("provider", ["sandbox", "sandbox-container", "sandbox-lookup"])
async def test_comments_go_out_once_and_in_order_though_answers_are_lost(
    stack: Stack, tenant: Tenant, provider: str
) -> None:
    """Every answer is lost, and Publisher is killed behind each of the parts."""
    account = tenant.external("page")
    await tenant.connect(provider=provider)
    await stack.sandbox.faults({"fault": "effect_then_reset", "account": account, "count": 3})
    await tenant.create("d1", "The post", comments=COMMENTS)
    await tenant.schedule_at("d1", SystemClock().now() + timedelta(seconds=1))
    for part in range(3):
        await eventually(partial(_is_out, stack, account, part), within=60)
        await stack.kill("publisher")
        await stack.wait_serving("publisher")
    await tenant.clients.ready()
    published = await tenant.until("d1", DRAFT_STATE_PUBLISHED, within=60)

    effects = stack.sandbox.effects(account=account)
    assert [effect["text"] for effect in effects] == ["The post", *COMMENTS]
    post = effects[0]["id"]
    assert [effect.get("follows", "") for effect in effects] == ["", post, post]
    (target,) = published.target_states
    assert target.post_job_state == "PUBLISHED"
    assert target.external_url.endswith(f"/v1/posts/{post}")
    assert [(each.part, each.post_job_state) for each in target.follow_ups] == [(1, "PUBLISHED"), (2, "PUBLISHED")]
    jobs = await tenant.jobs("d1")
    assert [(job.part, job.external_id, job.follows) for job in jobs] == [
        (part, effect["id"], effect.get("follows", "")) for part, effect in enumerate(effects)
    ]

    async def settled() -> bool:
        (slot,) = await tenant.slots("d1")
        return slot.state == QUEUE_SLOT_STATE_PUBLISHED

    await eventually(settled)


def _is_out(stack: Stack, account: str, part: int) -> bool:
    return len(stack.sandbox.effects(account=account)) > part


async def test_a_refused_comment_is_shown_and_goes_on_after_a_retry(stack: Stack, tenant: Tenant) -> None:
    account = tenant.external("page")
    await tenant.connect()
    await stack.sandbox.faults(
        {"fault": "status", "status": 422, "account": account, "text": "The first comment", "count": 1}
    )
    await tenant.create("d1", "The post", comments=COMMENTS)
    await tenant.schedule_at("d1", SystemClock().now() + timedelta(seconds=1))
    failed = await tenant.until("d1", DRAFT_STATE_PARTIALLY_PUBLISHED, within=60)
    first, second = failed.target_states[0].follow_ups
    assert (first.part, first.post_job_state, second.post_job_state) == (1, "FAILED", "PENDING")
    assert first.error_message
    await tenant.retry(first.post_job_id)
    await tenant.until("d1", DRAFT_STATE_PUBLISHED, within=60)
    assert [effect["text"] for effect in stack.sandbox.effects(account=account)] == ["The post", *COMMENTS]
