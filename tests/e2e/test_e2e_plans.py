"""Plans of queues across the services: what was planned is what Schedule, Queue and Publisher then do."""

from postflow.queue.v1.queue_service_pb2 import (
    AddToQueueRequest,
    ClearQueueRequest,
    PlanQueueRequest,
    PlanQueueResponse,
)
from postflow.queue.v1.queue_slot_pb2 import QUEUE_SLOT_STATE_CANCELED, QueueSlot
from postflow.schedule.v1.account_schedule_pb2 import AccountSchedule, DayOfWeek, WeeklySlot
from servicekit.clock import SystemClock
from testkit.stack.tenant import Tenant


def daily(*later: int, cap: int = 0) -> AccountSchedule:
    """Returns a schedule with times so many hours from now on, so that none passes while a test runs."""
    hours = [(SystemClock().now().hour + 9 + each) % 24 for each in later]
    slots = [WeeklySlot(day_of_week=day, hour=hour) for day in DayOfWeek.keys()[1:] for hour in hours]
    return AccountSchedule(social_account_id="page", time_zone="Asia/Tokyo", weekly_slots=slots, max_posts_per_day=cap)


async def plan(tenant: Tenant, **change: object) -> PlanQueueResponse:
    request = PlanQueueRequest(organization_id=tenant.organization_id, social_account_id="page", **change)  # type: ignore[arg-type]
    return await tenant.clients.queue.PlanQueue(request)


def times(slots: list[QueueSlot]) -> list[str]:
    return [slot.schedule_time.ToJsonString() for slot in slots]


def planned_times(planned: PlanQueueResponse) -> list[str]:
    return [slot.schedule_time.ToJsonString() for slot in planned.slots]


async def test_additions_get_the_times_of_their_plan(tenant: Tenant) -> None:
    await tenant.connect()
    await tenant.put_schedule(daily(6, 12))
    planned = await plan(tenant, add={"count": 3})
    added: list[QueueSlot] = []
    for draft in ("d1", "d2", "d3"):
        await tenant.create(draft, "Hello")
        added += await tenant.add_to_queue(draft)
    assert times(added) == planned_times(planned)
    assert (await plan(tenant, clear=True)).etag == "3"


async def test_another_schedule_gives_the_times_of_its_plan(tenant: Tenant) -> None:
    """The drafts are added again under the schedule, since saving it moves no slot."""
    await tenant.connect()
    await tenant.put_schedule(daily(6))
    drafts = ("d1", "d2", "d3")
    for draft in drafts:
        await tenant.create(draft, "Hello")
        await tenant.add_to_queue(draft)
    changed = daily(9, 16, cap=1)
    planned = await plan(tenant, schedule={"weekly_slots": changed.weekly_slots, "max_posts_per_day": 1})
    assert [slot.draft_id for slot in planned.slots] == list(drafts)

    await tenant.put_schedule(changed)
    await tenant.clients.queue.ClearQueue(
        ClearQueueRequest(organization_id=tenant.organization_id, social_account_id="page")
    )
    assert {slot.state for slot in await tenant.slots()} == {QUEUE_SLOT_STATE_CANCELED}
    again: list[QueueSlot] = []
    for draft in drafts:
        request = AddToQueueRequest(organization_id=tenant.organization_id, draft_id=draft)
        again += (await tenant.clients.queue.AddToQueue(request)).queue_slots
    assert times(again) == planned_times(planned)
