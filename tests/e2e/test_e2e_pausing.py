"""Accounts that are held up: nothing of theirs is sent, and everything shows it; afterwards it is sent once."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from devstack.stack import Stack
from postflow.drafts.v1.draft_pb2 import DRAFT_STATE_DRAFT, DRAFT_STATE_PUBLISHED, DRAFT_STATE_SCHEDULED
from postflow.queue.v1.queue_service_pb2 import (
    OVERDUE_POLICY_CANCEL,
    OVERDUE_POLICY_PUBLISH_PACED,
    OVERDUE_POLICY_RESCHEDULE,
    GetQueueRequest,
    OverduePolicy,
)
from postflow.queue.v1.queue_slot_pb2 import (
    QUEUE_SLOT_STATE_CANCELED,
    QUEUE_SLOT_STATE_DISPATCHED,
    QUEUE_SLOT_STATE_SCHEDULED,
    QueueSlotState,
)
from postflow.schedule.v1.account_schedule_pb2 import AccountSchedule, WeeklySlot
from servicekit.clock import SystemClock
from testkit.eventually import eventually
from testkit.stack.tenant import Tenant, target

HOURLY = [WeeklySlot(day_of_week=day, hour=hour, minute=0) for day in range(1, 8) for hour in range(24)]  # type: ignore[arg-type]


def soon(seconds: float = 3.0) -> datetime:
    return SystemClock().now() + timedelta(seconds=seconds)


def effects(stack: Stack, tenant: Tenant, account: str = "page") -> Sequence[str]:
    return [effect["text"] for effect in stack.sandbox.effects(account=tenant.external(account))]


async def in_state(tenant: Tenant, draft: str, state: QueueSlotState) -> None:
    async def reached() -> bool:
        return [slot.state for slot in await tenant.slots(draft)] == [state]

    await eventually(reached)


async def until_sent_elsewhere(stack: Stack, tenant: Tenant, due: datetime) -> None:
    """Waits until a post of another account has gone out that is due a second later."""
    await tenant.create("clock", "Tick", [target("clock")])
    await tenant.schedule_at("clock", due + timedelta(seconds=1))
    await tenant.until("clock", DRAFT_STATE_PUBLISHED)
    assert effects(stack, tenant, "clock") == ["Tick"]


async def paused_with_a_post(stack: Stack, tenant: Tenant) -> datetime:
    """Pauses an account whose post has been handed over; returns once its time has passed."""
    await tenant.connect()
    await tenant.connect("clock")
    await tenant.put_schedule(
        AccountSchedule(social_account_id="page", name="hourly", time_zone="UTC", weekly_slots=HOURLY, enabled=True)
    )
    await tenant.create("d1", "Hello")
    due = soon()
    await tenant.schedule_at("d1", due)
    await in_state(tenant, "d1", QUEUE_SLOT_STATE_DISPATCHED)
    assert list(await tenant.pause("page", request_id="pause")) == []
    await in_state(tenant, "d1", QUEUE_SLOT_STATE_SCHEDULED)
    await until_sent_elsewhere(stack, tenant, due)
    assert effects(stack, tenant) == []
    shown = await tenant.until("d1", DRAFT_STATE_SCHEDULED)
    assert shown.schedule_time.ToDatetime(UTC) == due
    return due


async def test_a_post_of_a_paused_account_goes_out_once_after_the_resumption(stack: Stack, tenant: Tenant) -> None:
    await paused_with_a_post(stack, tenant)
    await tenant.resume("page", OVERDUE_POLICY_PUBLISH_PACED, request_id="resume")
    published = await tenant.until("d1", DRAFT_STATE_PUBLISHED)
    assert effects(stack, tenant) == ["Hello"]
    (job,) = await tenant.jobs("d1")
    assert (job.attempts, len(published.target_states)) == (1, 1)


@pytest.mark.parametrize("policy", [OVERDUE_POLICY_RESCHEDULE, OVERDUE_POLICY_CANCEL])
async def test_an_overdue_post_gets_another_time_or_is_canceled_unsent(
    stack: Stack, tenant: Tenant, policy: OverduePolicy
) -> None:
    due = await paused_with_a_post(stack, tenant)
    await tenant.resume("page", policy, request_id="resume")
    # A post behind it proves that the account sends again.
    await tenant.create("d2", "Next")
    await tenant.schedule_at("d2", soon(1))
    await tenant.until("d2", DRAFT_STATE_PUBLISHED)
    assert effects(stack, tenant) == ["Next"]
    if policy == OVERDUE_POLICY_CANCEL:
        await tenant.until("d1", DRAFT_STATE_DRAFT)
        await in_state(tenant, "d1", QUEUE_SLOT_STATE_CANCELED)
        return

    async def moved() -> bool:
        shown = (await tenant.draft("d1")).schedule_time.ToDatetime(UTC)
        return shown > due and shown.minute == 0

    await eventually(moved)
    await in_state(tenant, "d1", QUEUE_SLOT_STATE_SCHEDULED)


async def test_posts_of_a_disabled_account_wait_until_it_is_enabled(stack: Stack, tenant: Tenant) -> None:
    await tenant.connect()
    await tenant.connect("clock")
    schedule = AccountSchedule(
        social_account_id="page", name="hourly", time_zone="UTC", weekly_slots=HOURLY, enabled=False
    )
    await tenant.put_schedule(schedule)
    request = GetQueueRequest(organization_id=tenant.organization_id, social_account_id="page")

    async def is_known() -> bool:
        queue = (await tenant.clients.queue.GetQueue(request)).queue
        return queue.time_zone == "UTC" and not queue.schedule_enabled

    await eventually(is_known)
    await tenant.create("d1", "Hello")
    due = soon(1)
    await tenant.schedule_at("d1", due)
    await until_sent_elsewhere(stack, tenant, due)
    assert effects(stack, tenant) == []
    await in_state(tenant, "d1", QUEUE_SLOT_STATE_SCHEDULED)
    schedule.enabled = True
    await tenant.put_schedule(schedule)
    await tenant.until("d1", DRAFT_STATE_PUBLISHED)
    assert effects(stack, tenant) == ["Hello"]
