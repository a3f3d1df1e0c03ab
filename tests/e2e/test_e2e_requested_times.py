"""Drafts that ask for a time go out without a call of Queue."""

from datetime import UTC, datetime, timedelta

from devstack.stack import Stack
from postflow.drafts.v1.draft_pb2 import DRAFT_STATE_DRAFT, DRAFT_STATE_PUBLISHED, DRAFT_STATE_SCHEDULED
from postflow.queue.v1.queue_slot_pb2 import QUEUE_SLOT_ORIGIN_DRAFT
from servicekit.clock import SystemClock
from testkit.eventually import eventually
from testkit.stack.tenant import Tenant, target

NEVER_EARLIER = timedelta(milliseconds=50)


def soon(seconds: float = 1.0) -> datetime:
    return SystemClock().now() + timedelta(seconds=seconds)


async def test_an_approved_draft_goes_out_at_the_time_it_asks_for(stack: Stack, tenant: Tenant) -> None:
    await tenant.connect()
    await tenant.connect("shop")
    due = soon(2)
    targets = [target("page"), target("shop")]
    created = await tenant.create("hello", "Hello", targets, approved=False, requested_time=due)
    assert (created.state, created.requested_time.ToDatetime(UTC)) == (DRAFT_STATE_DRAFT, due)
    await tenant.approve("hello")

    published = await tenant.until("hello", DRAFT_STATE_PUBLISHED)

    assert list(published.slot_refusals) == []
    assert {slot.origin for slot in await tenant.slots("hello")} == {QUEUE_SLOT_ORIGIN_DRAFT}
    for account in ("page", "shop"):
        (effect,) = stack.sandbox.effects(account=tenant.external(account))
        assert datetime.fromisoformat(effect["time"]) >= due - NEVER_EARLIER


async def test_a_draft_takes_its_slot_along_to_another_time(stack: Stack, tenant: Tenant) -> None:
    await tenant.connect()
    await tenant.create("moved", "Not tomorrow", requested_time=soon(86_400))
    before = await tenant.until("moved", DRAFT_STATE_SCHEDULED)
    (slot,) = await tenant.slots("moved")
    due = soon(2)
    assert (await tenant.ask_for("moved", due)).approved

    after = await tenant.until("moved", DRAFT_STATE_PUBLISHED)

    assert (after.revision, after.approve_time) == (before.revision, before.approve_time)
    (moved,) = await tenant.slots("moved")
    assert (moved.id, moved.schedule_time.ToDatetime(UTC), moved.revision) == (slot.id, due, 2)
    (effect,) = stack.sandbox.effects(account=tenant.external("page"))
    assert datetime.fromisoformat(effect["time"]) >= due - NEVER_EARLIER


async def test_a_taken_time_is_shown_until_the_draft_asks_for_another(tenant: Tenant) -> None:
    await tenant.connect()
    due = soon(3600)
    await tenant.create("first", "First", requested_time=due)
    await tenant.until("first", DRAFT_STATE_SCHEDULED)
    await tenant.create("second", "Second", requested_time=due + timedelta(seconds=30))

    async def refused() -> list[str]:
        return [each.reason for each in (await tenant.draft("second")).slot_refusals]

    assert await eventually(refused) == ["SLOT_TAKEN"]
    assert (await tenant.draft("second")).state == DRAFT_STATE_DRAFT
    assert not (await tenant.ask_for("second", due + timedelta(minutes=1))).slot_refusals
    scheduled = await tenant.until("second", DRAFT_STATE_SCHEDULED)
    assert scheduled.schedule_time.ToDatetime(UTC) == due + timedelta(minutes=1)
    assert not scheduled.slot_refusals
