"""An operator asks why a post has not gone out, and later what has become of it."""

from datetime import UTC, timedelta

from postflow.drafts.v1.draft_pb2 import DRAFT_STATE_PUBLISHED
from postflow.queue.v1.queue_service_pb2 import ExplainSlotRequest, ExplainSlotResponse
from postflow.queue.v1.queue_slot_pb2 import QUEUE_SLOT_STATE_PUBLISHED
from postflow.schedule.v1.account_schedule_pb2 import AccountSchedule, DayOfWeek, LocalTime, SendWindow, WeeklySlot
from servicekit.clock import SystemClock
from testkit.eventually import eventually
from testkit.stack.tenant import Tenant

HOURLY = [
    WeeklySlot(day_of_week=day, hour=hour)  # type: ignore[arg-type]
    for day in DayOfWeek.values()
    if day
    for hour in range(24)
]


async def explained(tenant: Tenant, slot_id: str) -> ExplainSlotResponse:
    request = ExplainSlotRequest(organization_id=tenant.organization_id, slot_id=slot_id)
    answer: ExplainSlotResponse = await tenant.clients.queue.ExplainSlot(request)
    return answer


def reasons(found: ExplainSlotResponse) -> list[str]:
    return [each.reason for each in found.obstacles]


async def test_a_paused_post_is_explained_before_and_after_it_goes_out(tenant: Tenant) -> None:
    await tenant.connect()
    await tenant.create("late", "Late")
    [slot] = await tenant.schedule_at("late", SystemClock().now() + timedelta(seconds=1))
    await tenant.pause("page", request_id="pause")

    async def overdue() -> ExplainSlotResponse | None:
        found = await explained(tenant, slot.id)
        return found if reasons(found) == ["QUEUE_PAUSED"] else None

    held = await eventually(overdue)
    assert held is not None
    assert held.time_reason == "CHOSEN"
    assert "the queue has been paused since" in held.summary
    await tenant.resume("page", request_id="resume")
    published = await tenant.until("late", DRAFT_STATE_PUBLISHED)

    async def ended() -> ExplainSlotResponse | None:
        found = await explained(tenant, slot.id)
        return found if found.queue_slot.state == QUEUE_SLOT_STATE_PUBLISHED else None

    after = await eventually(ended)
    assert after is not None
    assert (after.time_reason, reasons(after)) == ("RESUMED", [])
    at = published.publish_time.ToDatetime(UTC)
    assert f"The post to facebook was published at {at:%Y-%m-%d %H:%M:%S} UTC" in after.summary


async def test_a_draft_that_is_not_approved_is_explained(tenant: Tenant) -> None:
    await tenant.connect()
    await tenant.create("secret", "Not yet", approved=False)
    [slot] = await tenant.schedule_at("secret", SystemClock().now() + timedelta(hours=1))
    assert reasons(await explained(tenant, slot.id)) == ["NOT_APPROVED", "NOT_DUE"]
    await tenant.approve("secret")
    assert reasons(await explained(tenant, slot.id)) == ["NOT_DUE"]


async def test_earlier_slot_times_are_explained(tenant: Tenant) -> None:
    await tenant.connect()
    await tenant.put_schedule(AccountSchedule(social_account_id="page", time_zone="UTC", weekly_slots=HOURLY))
    for draft in ("first", "second"):
        await tenant.create(draft, draft)
    [first] = await tenant.add_to_queue("first")
    [second] = await tenant.add_to_queue("second")
    found = await explained(tenant, second.id)
    assert found.time_reason == "NEXT_FREE"
    assert [(each.reason, each.slot_id) for each in found.passed_times if each.slot_id] == [("FILLED", first.id)]
    far = SystemClock().now() + timedelta(days=300)
    await tenant.create("third", "third")
    [third] = await tenant.schedule_at("third", far)
    times = [each.time.ToDatetime(UTC) for each in (await explained(tenant, third.id)).passed_times]
    last = far.replace(minute=0, second=0, microsecond=0)
    assert times == [last - timedelta(hours=number) for number in range(49, -1, -1)]


async def test_slot_times_outside_the_send_window_are_passed_over(tenant: Tenant) -> None:
    await tenant.connect()
    now = SystemClock().now()
    opens = now.replace(minute=0, second=0, microsecond=0) + timedelta(hours=20)
    window = SendWindow(
        days_of_week=[opens.isoweekday()],  # type: ignore[list-item]
        start=LocalTime(hour=opens.hour),
    )
    schedule = AccountSchedule(social_account_id="page", time_zone="UTC", weekly_slots=HOURLY, send_window=window)
    await tenant.put_schedule(schedule)
    await tenant.create("first", "first")
    [first] = await tenant.add_to_queue("first")
    assert first.schedule_time.ToDatetime(UTC) == opens
    found = await explained(tenant, first.id)
    assert {each.reason for each in found.passed_times} == {"WINDOW"}
    assert "are outside the send window" in found.summary
    schedule.ClearField("send_window")
    await tenant.put_schedule(schedule)
    await tenant.create("second", "second")
    [second] = await tenant.add_to_queue("second")
    assert second.schedule_time.ToDatetime(UTC) < opens
