"""Posts from draft to provider: four processes, PostgreSQL, NATS, and a provider that records every request."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import grpc
import pytest

from devstack.stack import Stack
from postflow.drafts.v1.draft_pb2 import (
    DRAFT_STATE_DRAFT,
    DRAFT_STATE_FAILED,
    DRAFT_STATE_PUBLISHED,
    DRAFT_STATE_SCHEDULED,
)
from postflow.publisher.v1.post_job_pb2 import (
    POST_JOB_STATE_BLOCKED,
    POST_JOB_STATE_FAILED,
    POST_JOB_STATE_PUBLISHED,
)
from postflow.queue.v1.queue_slot_pb2 import (
    QUEUE_SLOT_ORIGIN_EXACT,
    QUEUE_SLOT_ORIGIN_QUEUE,
    QUEUE_SLOT_STATE_PUBLISHED,
    QUEUE_SLOT_STATE_SCHEDULED,
)
from postflow.schedule.v1.account_schedule_pb2 import AccountSchedule, WeeklySlot
from servicekit.clock import SystemClock
from servicekit.rpc.status import fault_from_error
from testkit.eventually import eventually
from testkit.stack.tenant import Tenant, target

NEVER_EARLIER = timedelta(milliseconds=50)


def soon(seconds: float = 1.0) -> datetime:
    return SystemClock().now() + timedelta(seconds=seconds)


def every_day_at(hour: int, *, account: str = "page") -> AccountSchedule:
    slots = [WeeklySlot(day_of_week=day, hour=hour, minute=30) for day in range(1, 8)]  # type: ignore[arg-type]
    return AccountSchedule(
        social_account_id=account, name="every day", time_zone="Europe/Berlin", weekly_slots=slots, enabled=True
    )


async def test_a_post_goes_out_once_and_every_service_shows_it(stack: Stack, tenant: Tenant) -> None:
    await tenant.connect()
    draft = await tenant.create("hello", "Hello, world")
    assert draft.approved
    due = soon()
    (slot,) = await tenant.schedule_at("hello", due)
    assert (slot.state, slot.origin) == (QUEUE_SLOT_STATE_SCHEDULED, QUEUE_SLOT_ORIGIN_EXACT)

    published = await tenant.until("hello", DRAFT_STATE_PUBLISHED)

    (effect,) = stack.sandbox.effects(account=tenant.external("page"))
    assert (effect["channel"], effect["destination"], effect["text"]) == ("facebook", "", "Hello, world")
    assert datetime.fromisoformat(effect["time"]) >= due - NEVER_EARLIER
    (shown,) = published.target_states
    assert shown.post_job_state == "PUBLISHED"
    assert shown.external_url.endswith(f"/v1/posts/{effect['id']}")
    assert published.publish_time.ToDatetime(UTC) >= due

    async def settled() -> bool:
        (slot,) = await tenant.slots("hello")
        return slot.state == QUEUE_SLOT_STATE_PUBLISHED and slot.targets[0].post_job_state == "PUBLISHED"

    await eventually(settled)
    (job,) = await tenant.jobs("hello")
    assert (job.state, job.external_id, job.attempts) == (POST_JOB_STATE_PUBLISHED, effect["id"], 1)
    assert job.id == shown.post_job_id
    found = await tenant.job(job.id)
    assert found.post_job == job
    (attempt,) = found.attempts
    assert (attempt.state, attempt.idempotency_key) == ("ACCEPTED", effect["idempotency_key"])


async def test_each_target_of_a_draft_gets_its_own_post(stack: Stack, tenant: Tenant) -> None:
    for account in ("page", "shop"):
        await tenant.connect(account)
    targets = [
        target("page", "telegram", "news"),
        target("page", "telegram", "offers"),
        target("shop", "facebook"),
    ]
    await tenant.create("many", "One text, three posts", targets)

    slots = await tenant.schedule_at("many", soon())

    assert sorted((slot.social_account_id, len(slot.targets)) for slot in slots) == [("page", 2), ("shop", 1)]
    draft = await tenant.until("many", DRAFT_STATE_PUBLISHED)
    jobs = await tenant.jobs("many")
    assert len({job.id for job in jobs}) == 3
    assert len({each.external_url for each in draft.target_states}) == 3
    page = stack.sandbox.effects(account=tenant.external("page"))
    shop = stack.sandbox.effects(account=tenant.external("shop"))
    assert sorted(effect["destination"] for effect in page) == ["news", "offers"]
    assert [effect["channel"] for effect in shop] == ["facebook"]


async def test_adding_to_the_queue_takes_the_next_weekly_slots_in_turn(tenant: Tenant) -> None:
    berlin = ZoneInfo("Europe/Berlin")
    now = SystemClock().now().astimezone(berlin)
    hour = max((now.hour + 12) % 24, 4)  # far from now, on either side, and not an hour that a change of clocks skips
    await tenant.connect()
    await tenant.put_schedule(every_day_at(hour))
    for number in range(3):
        await tenant.create(f"draft-{number}", f"Number {number}")

    times = [(await tenant.add_to_queue(f"draft-{number}"))[0] for number in range(3)]

    today = now.replace(hour=hour, minute=30, second=0, microsecond=0)
    first = today if today > now else today + timedelta(days=1)
    expected = [(first + timedelta(days=number)).astimezone(UTC) for number in range(3)]
    assert [slot.schedule_time.ToDatetime(UTC) for slot in times] == expected
    assert {slot.origin for slot in times} == {QUEUE_SLOT_ORIGIN_QUEUE}
    assert [slot.local_time for slot in times] == [f"{hour:02}:30"] * 3
    assert [slot.local_date for slot in times] == [(first + timedelta(days=n)).date().isoformat() for n in range(3)]
    assert [slot.id for slot in await tenant.slots()] == [slot.id for slot in times]
    await tenant.until("draft-0", DRAFT_STATE_SCHEDULED)


async def test_a_repeated_request_takes_no_second_slot(tenant: Tenant) -> None:
    await tenant.connect()
    await tenant.create("twice", "Asked for twice")
    due = soon(3600)
    first = await tenant.schedule_at("twice", due)
    assert await tenant.schedule_at("twice", due) == first
    assert len(await tenant.slots("twice")) == 1


async def test_an_unapproved_post_waits_and_goes_out_on_approval(stack: Stack, tenant: Tenant) -> None:
    await tenant.connect()
    await tenant.create("unseen", "Has anybody read this?", approved=False)
    await tenant.schedule_at("unseen", soon(0.5))

    job = await tenant.until_job("unseen", POST_JOB_STATE_BLOCKED)
    assert job.state_reason == "NOT_APPROVED"
    assert stack.sandbox.effects(account=tenant.external("page")) == []

    await tenant.approve("unseen")
    await tenant.until("unseen", DRAFT_STATE_PUBLISHED)
    assert len(stack.sandbox.effects(account=tenant.external("page"))) == 1


async def test_after_an_edit_only_the_new_text_goes_out_once_approved(stack: Stack, tenant: Tenant) -> None:
    await tenant.connect()
    await tenant.create("edited", "The old text")
    await tenant.schedule_at("edited", soon(5))

    changed = await tenant.change_text("edited", "The new text")

    assert not changed.draft.approved
    assert list(changed.in_flight_post_job_ids) == []
    await tenant.until_job("edited", POST_JOB_STATE_BLOCKED)
    assert stack.sandbox.effects(account=tenant.external("page")) == []
    await tenant.approve("edited")
    await tenant.until("edited", DRAFT_STATE_PUBLISHED)
    (effect,) = stack.sandbox.effects(account=tenant.external("page"))
    assert effect["text"] == "The new text"


async def test_a_post_refused_by_the_provider_fails_with_its_message(stack: Stack, tenant: Tenant) -> None:
    await tenant.connect()
    await tenant.create("lost", "To nowhere", [target(destination="missing-page")])
    await tenant.schedule_at("lost", soon(0.5))

    failed = await tenant.until("lost", DRAFT_STATE_FAILED)

    (job,) = await tenant.jobs("lost")
    assert (job.state, job.error_reason) == (POST_JOB_STATE_FAILED, "DESTINATION_NOT_FOUND")
    assert job.error_message
    assert failed.target_states[0].error_message == job.error_message
    assert stack.sandbox.effects(account=tenant.external("page")) == []


async def test_two_organizations_with_the_same_ids_do_not_see_each_other(
    stack: Stack, new_tenant: Callable[[], Tenant]
) -> None:
    one, other = new_tenant(), new_tenant()
    for each in (one, other):
        await each.connect()
        await each.create("same", f"of {each.organization_id}")
    await one.schedule_at("same", soon(0.5))
    await one.until("same", DRAFT_STATE_PUBLISHED)

    assert [effect["text"] for effect in stack.sandbox.effects(account=one.external("page"))] == [
        f"of {one.organization_id}"
    ]
    assert stack.sandbox.effects(account=other.external("page")) == []
    untouched = await other.draft("same")
    assert (untouched.state, untouched.content.text) == (DRAFT_STATE_DRAFT, f"of {other.organization_id}")
    assert await other.slots("same") == []
    (job,), (other_job,) = await one.jobs("same"), await other.jobs("same")
    assert job.id != other_job.id


async def test_another_organizations_things_look_missing(new_tenant: Callable[[], Tenant]) -> None:
    owner, stranger = new_tenant(), new_tenant()
    await owner.connect()
    await owner.create("private", "Not yours")
    await owner.schedule_at("private", soon(3600))
    job_id = (await eventually(lambda: owner.jobs("private")))[0].id

    for foreign, absent in (
        (stranger.draft("private"), stranger.draft("nowhere")),
        (stranger.approve("private"), stranger.approve("nowhere")),
        (stranger.change_text("private", "mine now"), stranger.change_text("nowhere", "mine now")),
        (stranger.schedule_at("private", soon(60)), stranger.schedule_at("nowhere", soon(60))),
        (stranger.add_to_queue("private"), stranger.add_to_queue("nowhere")),
        (stranger.job(job_id), stranger.job("nowhere")),
    ):
        with pytest.raises(grpc.aio.AioRpcError) as hidden:
            await foreign
        with pytest.raises(grpc.aio.AioRpcError) as missing:
            await absent
        assert hidden.value.code() is grpc.StatusCode.NOT_FOUND
        assert hidden.value.details() == missing.value.details()
        assert fault_from_error(hidden.value).reason == fault_from_error(missing.value).reason
    assert await stranger.slots("private") == []
    assert await stranger.jobs("private") == []
    assert (await owner.draft("private")).content.text == "Not yours"
