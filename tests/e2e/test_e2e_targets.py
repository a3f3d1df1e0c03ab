"""Targets that are published already, and that are added and removed while their draft has a slot."""

from datetime import datetime, timedelta

import grpc
import pytest

from devstack.stack import Stack
from postflow.drafts.v1.draft_pb2 import DRAFT_STATE_DRAFT, DRAFT_STATE_PUBLISHED, DRAFT_STATE_SCHEDULED
from postflow.queue.v1.queue_slot_pb2 import QUEUE_SLOT_STATE_CANCELED, QUEUE_SLOT_STATE_PUBLISHED
from servicekit.clock import SystemClock
from servicekit.rpc.status import fault_from_error
from testkit.eventually import eventually
from testkit.stack.tenant import Tenant, target

FEED, PHOTOS = target(), target(channel="instagram_feed")


def soon(seconds: float = 1.0) -> datetime:
    return SystemClock().now() + timedelta(seconds=seconds)


async def until_slot(tenant: Tenant, draft_id: str, state: int) -> None:
    async def reached() -> bool:
        (slot,) = await tenant.slots(draft_id)
        return slot.state == state

    await eventually(reached)


async def job_states(tenant: Tenant, draft_id: str) -> dict[str, str]:
    draft = await tenant.draft(draft_id)
    return {each.target.channel: each.post_job_state for each in draft.target_states}


async def refused(call: object) -> str:
    with pytest.raises(grpc.aio.AioRpcError) as error:
        await call  # type: ignore[misc]
    return fault_from_error(error.value).reason


async def test_a_published_draft_gets_no_other_slot(stack: Stack, tenant: Tenant) -> None:
    await tenant.connect()
    await tenant.create("evergreen", "Once")
    await tenant.schedule_at("evergreen", soon())
    await tenant.until("evergreen", DRAFT_STATE_PUBLISHED)
    await until_slot(tenant, "evergreen", QUEUE_SLOT_STATE_PUBLISHED)
    again = tenant.schedule_at("evergreen", soon(60), request_id="again")
    assert await refused(again) == "DRAFT_PUBLISHED"
    assert len(stack.sandbox.effects(account=tenant.external("page"))) == 1


async def test_a_target_removed_and_put_back_goes_out(stack: Stack, tenant: Tenant) -> None:
    await tenant.connect()
    for number in range(4):
        draft = f"draft-{number}"
        await tenant.create(draft, f"Number {number}", [FEED, PHOTOS])
        await tenant.schedule_at(draft, soon(65 * number + 8) if number else soon(8))
        await tenant.change_targets(draft, [FEED])
        if number % 2:
            await eventually(lambda draft=draft: _is_canceled(tenant, draft))  # type: ignore[misc]
        await tenant.change_targets(draft, [FEED, PHOTOS])
        await tenant.approve(draft)
    published = await tenant.until("draft-0", DRAFT_STATE_PUBLISHED)
    assert {each.post_job_state for each in published.target_states} == {"PUBLISHED"}
    await until_slot(tenant, "draft-0", QUEUE_SLOT_STATE_PUBLISHED)
    texts = [effect["text"] for effect in stack.sandbox.effects(account=tenant.external("page"))]
    assert texts == ["Number 0", "Number 0"]
    for number in (1, 2, 3):
        waiting = await tenant.until(f"draft-{number}", DRAFT_STATE_SCHEDULED)
        assert "CANCELED" not in {each.post_job_state for each in waiting.target_states}


async def _is_canceled(tenant: Tenant, draft_id: str) -> bool:
    return (await job_states(tenant, draft_id)).get("instagram_feed") in {None, "CANCELED"}


async def test_an_added_target_goes_out_with_the_slot(stack: Stack, tenant: Tenant) -> None:
    await tenant.connect()
    await tenant.create("growing", "Grown", [FEED])
    await tenant.schedule_at("growing", soon(4))
    await tenant.change_targets("growing", [FEED, PHOTOS])
    await tenant.approve("growing")
    published = await tenant.until("growing", DRAFT_STATE_PUBLISHED)
    assert {each.target.channel for each in published.target_states} == {"facebook", "instagram_feed"}
    await until_slot(tenant, "growing", QUEUE_SLOT_STATE_PUBLISHED)
    assert len(stack.sandbox.effects(account=tenant.external("page"))) == 2


async def test_a_slot_without_targets_is_freed_and_the_draft_needs_another(stack: Stack, tenant: Tenant) -> None:
    await tenant.connect()
    await tenant.connect("other")
    await tenant.create("moving", "Moved", [FEED])
    due = soon(60)
    await tenant.schedule_at("moving", due)
    await tenant.change_targets("moving", [target("other")])
    await until_slot(tenant, "moving", QUEUE_SLOT_STATE_CANCELED)
    await tenant.create("next", "Takes the time")
    await tenant.schedule_at("next", due)
    await tenant.change_targets("moving", [FEED])

    async def is_back() -> bool:
        return await job_states(tenant, "moving") == {"facebook": "PENDING"}

    await eventually(is_back)
    assert (await tenant.draft("moving")).state == DRAFT_STATE_DRAFT
    await tenant.approve("moving")
    await tenant.schedule_at("moving", soon(-1), request_id="another")
    await tenant.until("moving", DRAFT_STATE_PUBLISHED)


async def test_an_account_just_added_can_be_scheduled(stack: Stack, tenant: Tenant) -> None:
    await tenant.connect()
    await tenant.connect("other")
    await tenant.create("wide", "Wide", [FEED])
    await tenant.schedule_at("wide", soon(60))
    await tenant.change_targets("wide", [FEED, target("other")])
    (slot,) = await tenant.schedule_at("wide", soon(60), "other", request_id="other")
    assert slot.social_account_id == "other"


async def test_a_mistyped_account_is_refused(stack: Stack, tenant: Tenant) -> None:
    await tenant.connect()
    await tenant.create("typo", "Where?", [target("pgae")])
    assert await refused(tenant.schedule_at("typo", soon(60))) == "ACCOUNT_NOT_FOUND"
