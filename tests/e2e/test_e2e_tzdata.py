"""Schedules across the services: a saved one counts at once, and slots move with new time zone data."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import grpc
import pytest
from sqlalchemy import text

from devstack.stack import Stack
from postflow.drafts.v1.draft_pb2 import DRAFT_STATE_SCHEDULED
from postflow.schedule.v1.account_schedule_pb2 import AccountSchedule, WeeklySlot
from postflow.schedule.v1.schedule_admin_service_pb2 import ApplyZoneChangesRequest, ListZoneChangesRequest
from postflow.schedule.v1.schedule_admin_service_pb2_grpc import ScheduleAdminServiceStub
from postflow.schedule.v1.schedule_service_pb2 import DeleteAccountScheduleRequest
from servicekit.clock import SystemClock
from servicekit.pg.database import Database
from servicekit.rpc.status import fault_from_error
from testkit.eventually import eventually
from testkit.stack.tenant import Tenant
from testkit.zones.compiled_zones import compiled_zone

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
# Japan has always had one offset. In this older release it is an hour behind, so that noon comes an hour later.
OLD_RELEASE, OLD_JAPAN = "2020a", compiled_zone("JST-8", offset=timedelta(hours=8))
HISTORY: Mapping[str, tuple[str, ...]] = {
    "schedule": (
        "insert into zone_data values (:release, 'Asia/Tokyo', :zone) on conflict do nothing",
        "update account_schedule set tzdata_version = :release where organization_id = :org",
        "update upcoming_slot set schedule_time = schedule_time + interval '1 hour' where organization_id = :org",
    ),
    "queue": (
        "update account_queue set tzdata_version = :release where organization_id = :org",
        """
        update slot set schedule_time = schedule_time + interval '1 hour', not_after = not_after + interval '1 hour',
            tzdata_version = :release
        where organization_id = :org
        """,
    ),
    "publisher": (
        "update post_job set schedule_time = schedule_time + interval '1 hour' where organization_id = :org",
    ),
    "drafts": (
        "update post_job set schedule_time = schedule_time + interval '1 hour' where organization_id = :org",
        "update draft set schedule_time = schedule_time + interval '1 hour' where organization_id = :org",
    ),
}


def daily(*hours: int, cap: int = 0) -> AccountSchedule:
    slots = [WeeklySlot(day_of_week=day, hour=hour) for day in range(1, 8) for hour in hours]  # type: ignore[arg-type]
    return AccountSchedule(
        social_account_id="page", time_zone="Asia/Tokyo", weekly_slots=slots, max_posts_per_day=cap, enabled=True
    )


async def rewrite_with_old_release(stack: Stack, tenant: Tenant) -> None:
    """Rewrites all databases as the older release of the time zone data would have left them."""
    values = {"release": OLD_RELEASE, "zone": OLD_JAPAN, "org": tenant.organization_id}
    for service, statements in HISTORY.items():
        database = Database(stack.database_urls[service], application="test", pool_size=1)
        async with database.transaction() as tx:
            for statement in statements:
                used = {name: value for name, value in values.items() if f":{name}" in statement}
                await tx.connection.execute(text(statement), used)
        await database.dispose()


async def upcoming(stack: Stack, tenant: Tenant) -> list[datetime]:
    """Returns the times of Queue's slots that Schedule knows."""
    database = Database(stack.database_urls["schedule"], application="test", pool_size=1)
    statement = text("select schedule_time from upcoming_slot where organization_id = :org order by 1")
    async with database.statement() as connection:
        found = list((await connection.execute(statement, {"org": tenant.organization_id})).scalars())
    await database.dispose()
    return found


async def queue_times(tenant: Tenant) -> list[datetime]:
    return [slot.schedule_time.ToDatetime(UTC) for slot in await tenant.slots()]


async def job_times(tenant: Tenant) -> list[datetime]:
    return sorted(job.schedule_time.ToDatetime(UTC) for job in await tenant.jobs())


async def draft_times(tenant: Tenant, *drafts: str) -> list[datetime]:
    return [(await tenant.draft(draft)).schedule_time.ToDatetime(UTC) for draft in drafts]


async def test_slots_move_with_new_time_zone_data_in_every_service(stack: Stack, tenant: Tenant) -> None:
    drafts = ("one", "two", "three")
    await tenant.connect()
    hour = (SystemClock().now() + 9 * HOUR + 12 * HOUR).hour  # in Tokyo, far from now
    await tenant.put_schedule(daily(hour))
    for draft in drafts:
        await tenant.create(draft, f"Number {draft}")
        await tenant.add_to_queue(draft)
        await tenant.until(draft, DRAFT_STATE_SCHEDULED)
    times = await queue_times(tenant)
    assert times == [times[0], times[0] + DAY, times[0] + 2 * DAY]
    await eventually(lambda: _shown(stack, tenant, drafts, times))
    await rewrite_with_old_release(stack, tenant)
    await eventually(lambda: _shown(stack, tenant, drafts, [time + HOUR for time in times]))

    admin = ScheduleAdminServiceStub(tenant.clients.channels["schedule"])
    listed = await admin.ListZoneChanges(ListZoneChangesRequest(organization_id=tenant.organization_id))
    [change] = listed.zone_changes
    first = change.moved_times[0]
    assert first.old_time.ToDatetime(UTC) - first.new_time.ToDatetime(UTC) == HOUR
    applied = await admin.ApplyZoneChanges(ApplyZoneChangesRequest(organization_id=tenant.organization_id))
    assert (applied.account_schedules, applied.done) == (1, True)

    await eventually(lambda: _shown(stack, tenant, drafts, times))
    assert [slot.revision for slot in await tenant.slots()] == [2, 2, 2]
    assert [slot.local_time for slot in await tenant.slots()] == [f"{hour:02}:00"] * 3
    assert {job.slot_revision for job in await tenant.jobs()} == {2}
    await tenant.create("next", "Number four")
    [slot] = await tenant.add_to_queue("next")
    assert slot.schedule_time.ToDatetime(UTC) == times[0] + 3 * DAY


@pytest.mark.parametrize("is_deleted", [False, True])
async def test_slots_move_even_if_their_schedule_has_left_the_zone(
    stack: Stack, tenant: Tenant, is_deleted: bool
) -> None:
    await tenant.connect()
    await tenant.put_schedule(daily((SystemClock().now() + 9 * HOUR + 12 * HOUR).hour))
    await tenant.create("one", "Number one")
    await tenant.add_to_queue("one")
    await tenant.until("one", DRAFT_STATE_SCHEDULED)
    times = await queue_times(tenant)
    await eventually(lambda: _shown(stack, tenant, ("one",), times))
    if is_deleted:
        deletion = DeleteAccountScheduleRequest(
            organization_id=tenant.organization_id, social_account_id="page", force=True
        )
        await tenant.clients.schedule.DeleteAccountSchedule(deletion)
    else:
        elsewhere = daily(12)
        elsewhere.time_zone = "UTC"
        await tenant.put_schedule(elsewhere)
    await eventually(lambda: _queue_has_version(stack, tenant, 2))
    await rewrite_with_old_release(stack, tenant)
    await eventually(lambda: _shown(stack, tenant, ("one",), [time + HOUR for time in times]))

    admin = ScheduleAdminServiceStub(tenant.clients.channels["schedule"])
    applied = await admin.ApplyZoneChanges(ApplyZoneChangesRequest(organization_id=tenant.organization_id))
    assert (applied.account_schedules, applied.done) == (1, True)
    await eventually(lambda: _shown(stack, tenant, ("one",), times))
    assert [(slot.revision, slot.time_zone) for slot in await tenant.slots()] == [(2, "Asia/Tokyo")]


async def _queue_has_version(stack: Stack, tenant: Tenant, version: int) -> bool:
    """Returns True once Queue has received this version of the schedule."""
    database = Database(stack.database_urls["queue"], application="test", pool_size=1)
    statement = text("select schedule_version from account_queue where organization_id = :org")
    async with database.statement() as connection:
        known = list((await connection.execute(statement, {"org": tenant.organization_id})).scalars())
    await database.dispose()
    return known == [version]


async def _shown(stack: Stack, tenant: Tenant, drafts: tuple[str, ...], times: list[datetime]) -> bool:
    assert await queue_times(tenant) == times
    assert await job_times(tenant) == times
    assert await draft_times(tenant, *drafts) == times
    assert await upcoming(stack, tenant) == times
    return True


async def test_a_schedule_counts_as_soon_as_it_is_saved(tenant: Tenant) -> None:
    await tenant.connect()
    for draft in ("first", "second"):
        await tenant.create(draft, "Hello")
    hour = (SystemClock().now() + 9 * HOUR + 6 * HOUR).hour
    await tenant.put_schedule(daily(hour, (hour + 1) % 24, cap=1))
    [first] = await tenant.add_to_queue("first")
    [second] = await tenant.add_to_queue("second")
    assert first.local_date < second.local_date


async def test_an_account_gets_no_slot_while_it_has_no_schedule(stack: Stack, tenant: Tenant) -> None:
    await tenant.connect()
    await tenant.put_schedule(daily(3, 15))
    for draft in ("first", "second"):
        await tenant.create(draft, "Hello")
    [first] = await tenant.add_to_queue("first")
    deletion = DeleteAccountScheduleRequest(
        organization_id=tenant.organization_id, social_account_id="page", force=True
    )
    await tenant.clients.schedule.DeleteAccountSchedule(deletion)

    async def queue_knows() -> bool:
        statement = text("select 1 from account_queue where organization_id = :org and time_zone = ''")
        async with queue.statement() as connection:
            return bool((await connection.execute(statement, {"org": tenant.organization_id})).all())

    # Until then Queue allocates the times that it has read before.
    queue = Database(stack.database_urls["queue"], application="test", pool_size=1)
    await eventually(queue_knows)
    await queue.dispose()
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await tenant.add_to_queue("second")
    assert fault_from_error(refused.value).reason == "NO_SCHEDULE"
    assert [slot.id for slot in await tenant.slots()] == [first.id]
    await tenant.put_schedule(daily(3, 15))
    [second] = await tenant.add_to_queue("second")
    assert second.schedule_time.ToDatetime(UTC) > first.schedule_time.ToDatetime(UTC)
