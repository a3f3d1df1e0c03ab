"""Posts that could not be handed over in time: what becomes of them follows their queue, in every service."""

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta

import pytest

from devstack.stack import Stack
from postflow.drafts.v1.draft_pb2 import DRAFT_STATE_FAILED, DRAFT_STATE_PUBLISHED
from postflow.publisher.v1.post_job_pb2 import POST_JOB_STATE_BLOCKED, POST_JOB_STATE_MISSED
from postflow.queue.v1.queue_pb2 import LATE_ACTION_MISS, LATE_ACTION_PUBLISH, LATE_ACTION_RESLOT
from postflow.queue.v1.queue_service_pb2 import ExplainSlotRequest, GetQueueRequest
from postflow.queue.v1.queue_slot_pb2 import (
    QUEUE_SLOT_STATE_MISSED,
    QUEUE_SLOT_STATE_PUBLISHED,
    QUEUE_SLOT_STATE_SCHEDULED,
    QueueSlotState,
)
from postflow.schedule.v1.account_schedule_pb2 import AccountSchedule, WeeklySlot
from servicekit.clock import SystemClock
from testkit.eventually import eventually
from testkit.stack.tenant import Tenant, target

SECOND = timedelta(seconds=1)
GRACE = SECOND
MINUTE = timedelta(minutes=1)
NEVER_EARLIER = timedelta(milliseconds=50)


@pytest.fixture(scope="module")
async def stack(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stack]:
    """Runs a stack whose slots are handed over just before their times, so that they are late soon."""
    environment = {"POSTFLOW_QUEUE_LEAD": "0.5", "POSTFLOW_QUEUE_NOTICE": "5"}
    async with Stack(tmp_path_factory.mktemp("stack") / "state", environment=environment) as running:
        yield running


def now() -> datetime:
    return SystemClock().now()


def sent(stack: Stack, tenant: Tenant, account: str) -> Sequence[tuple[str, datetime]]:
    """Returns texts and times of what has gone out."""
    effects = stack.sandbox.effects(account=tenant.external(account))
    return [(each["text"], datetime.fromisoformat(each["time"])) for each in effects]


async def until_past(time: datetime) -> None:
    await eventually(lambda: now() > time, within=90)


async def in_state(tenant: Tenant, draft: str, state: QueueSlotState) -> None:
    async def reached() -> bool:
        return [slot.state for slot in await tenant.slots(draft)] == [state]

    await eventually(reached)


def each_minute_from_now() -> list[WeeklySlot]:
    """Returns the slot times of the next minutes."""
    times = [now() + number * MINUTE for number in range(1, 11)]
    return [
        WeeklySlot(day_of_week=each.isoweekday(), hour=each.hour, minute=each.minute)  # type: ignore[arg-type]
        for each in times
    ]


async def late_by_a_stop_of_queue(stack: Stack, tenant: Tenant, *drafts: str) -> datetime:
    """Schedules each draft on the account of its name, with Queue down at their time; returns that time."""
    for draft in drafts:
        await tenant.create(draft, f"This is {draft}", [target(draft)])
    due = now() + timedelta(seconds=3)
    for draft in drafts:
        await tenant.schedule_at(draft, due)
    await stack.kill("queue", respawn=False)
    await until_past(due + 2 * GRACE)
    await stack.start("queue")
    await tenant.clients.ready()
    return due


async def test_late_posts_follow_the_policy_of_their_queue(stack: Stack, tenant: Tenant) -> None:
    for account, action in (
        ("missed", LATE_ACTION_MISS),
        ("published", LATE_ACTION_PUBLISH),
        ("reslotted", LATE_ACTION_RESLOT),
    ):
        await tenant.connect(account)
        await tenant.set_late_policy(account, action, grace=GRACE)
    schedule = AccountSchedule(social_account_id="reslotted", time_zone="UTC", enabled=True)
    schedule.weekly_slots.extend(each_minute_from_now())
    await tenant.put_schedule(schedule)
    due = await late_by_a_stop_of_queue(stack, tenant, "missed", "published", "reslotted")

    await tenant.until("published", DRAFT_STATE_PUBLISHED)
    [(text, time)] = sent(stack, tenant, "published")
    assert (text, time > due + 2 * GRACE) == ("This is published", True)
    await tenant.until("missed", DRAFT_STATE_FAILED)
    await tenant.until_job("missed", POST_JOB_STATE_MISSED)
    await in_state(tenant, "missed", QUEUE_SLOT_STATE_MISSED)

    async def moved() -> datetime | None:
        [slot] = await tenant.slots("reslotted")
        return slot.schedule_time.ToDatetime(UTC) if slot.revision == 2 else None

    next_time = await eventually(moved)
    assert next_time is not None
    assert due < next_time <= due + 2 * MINUTE
    assert (next_time.second, next_time.microsecond) == (0, 0)

    async def shown() -> bool:
        draft = await tenant.draft("reslotted")
        return draft.schedule_time.ToDatetime(UTC) == next_time

    await eventually(shown)
    await tenant.until("reslotted", DRAFT_STATE_PUBLISHED, within=90)
    [(text, time)] = sent(stack, tenant, "reslotted")
    assert (text, time >= next_time - NEVER_EARLIER) == ("This is reslotted", True)
    await in_state(tenant, "reslotted", QUEUE_SLOT_STATE_PUBLISHED)
    assert sent(stack, tenant, "missed") == []
    assert len(sent(stack, tenant, "published")) == 1


async def disconnected(stack: Stack, tenant: Tenant, time: datetime) -> None:
    """Disconnects the account: the provider refuses its token, for a post that is due at the time."""
    await stack.sandbox.faults({"fault": "status", "status": 401, "account": tenant.external("page"), "count": 1})
    await tenant.create("refused", "Refused")
    await tenant.schedule_at("refused", time)
    await tenant.until_job("refused", POST_JOB_STATE_BLOCKED)
    request = GetQueueRequest(organization_id=tenant.organization_id, social_account_id="page")

    async def is_known() -> bool:
        return not (await tenant.clients.queue.GetQueue(request)).queue.connected

    await eventually(is_known)


async def obstacles(tenant: Tenant, draft: str) -> list[str]:
    [slot] = await tenant.slots(draft)
    request = ExplainSlotRequest(organization_id=tenant.organization_id, slot_id=slot.id)
    return [each.reason for each in (await tenant.clients.queue.ExplainSlot(request)).obstacles]


async def test_a_post_of_a_disconnected_account_goes_out_once_it_returns(stack: Stack, tenant: Tenant) -> None:
    await tenant.connect()
    await tenant.connect("clock")
    await tenant.create("late", "Hello")
    await tenant.create("tick", "Tick", [target("clock")])
    due = now() + 5 * SECOND
    await tenant.schedule_at("late", due)
    await tenant.schedule_at("tick", due + SECOND)
    await disconnected(stack, tenant, due - MINUTE)
    await tenant.until("tick", DRAFT_STATE_PUBLISHED)
    await in_state(tenant, "late", QUEUE_SLOT_STATE_SCHEDULED)
    assert await obstacles(tenant, "late") == ["ACCOUNT_NOT_CONNECTED"]
    assert sent(stack, tenant, "page") == []

    await tenant.connect("page", "sandbox-token-2")
    await tenant.until("late", DRAFT_STATE_PUBLISHED)
    await tenant.until("refused", DRAFT_STATE_PUBLISHED)
    assert sorted(text for text, _ in sent(stack, tenant, "page")) == ["Hello", "Refused"]


async def test_a_post_of_an_account_that_stays_away_is_missed(stack: Stack, tenant: Tenant) -> None:
    await tenant.connect()
    await tenant.create("late", "Too late")
    [late] = await tenant.schedule_at("late", now() + 60 * MINUTE)
    await disconnected(stack, tenant, now())
    [refused] = await tenant.slots("refused")
    await tenant.remove(refused.id, request_id="remove")
    await tenant.set_late_policy("page", LATE_ACTION_MISS, grace=SECOND)
    due = now() - 57 * SECOND
    await tenant.move(late.id, due, request_id="move")
    assert await obstacles(tenant, "late") == ["ACCOUNT_NOT_CONNECTED"]

    # A minute after its latest time, at which a process looks as soon as it has started.
    await until_past(due + GRACE + MINUTE)
    await stack.restart("queue")
    await tenant.clients.ready()
    await tenant.until("late", DRAFT_STATE_FAILED)
    await tenant.until_job("late", POST_JOB_STATE_MISSED)
    await in_state(tenant, "late", QUEUE_SLOT_STATE_MISSED)
    await tenant.connect("page", "sandbox-token-2")
    await tenant.set_late_policy("page", LATE_ACTION_MISS, grace=MINUTE)
    await tenant.create("next", "Next")
    await tenant.schedule_at("next", now() + SECOND)
    await tenant.until("next", DRAFT_STATE_PUBLISHED)
    assert [text for text, _ in sent(stack, tenant, "page")] == ["Next"]
