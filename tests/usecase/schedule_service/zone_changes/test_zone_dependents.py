"""Schedules with posts in other zones, and timers: what moves with the time zone data."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from sqlalchemy import text

from civil.zones import find_zone, tzdata_version
from schedule_service.adapters.postgres.account_schedules import save_schedule
from schedule_service.adapters.postgres.upcoming_slots import save_slots
from schedule_service.domain.calendars.account_schedule import deleted
from schedule_service.domain.calendars.upcoming_slot import UpcomingSlot
from schedule_service.domain.zone_changes.moved_times import MovedTime
from schedule_service.domain.zone_changes.zone_change import Kind, ZoneChange
from schedule_service.domain.zone_release import ZoneRelease
from testkit.zones.compiled_zones import compiled_zone

if TYPE_CHECKING:
    from tests.usecase.schedule_service.zone_changes.conftest import Drift


OLD = "2024a"
NEW = tzdata_version()
NOW = datetime(2026, 10, 20, 12, 0, tzinfo=UTC)
LONG_AGO = NOW - timedelta(days=500)
VANCOUVER = "America/Vancouver"
BERLIN = "Europe/Berlin"
# Monday 09:00 of the first winter without winter time.
MOVED = MovedTime(
    datetime(2026, 11, 2, 9, 0), datetime(2026, 11, 2, 17, 0, tzinfo=UTC), datetime(2026, 11, 2, 16, 0, tzinfo=UTC)
)


def ids(changes: Sequence[ZoneChange]) -> list[tuple[str, str, str]]:
    return [(change.kind, *change.place) for change in changes]


async def test_posts_at_former_slots_of_a_schedule_make_it_move(drift: "Drift") -> None:
    await drift.schedule(weekly_slots=())
    slot = UpcomingSlot(
        organization_id="acme", slot_id="s", social_account_id="page", revision=1, schedule_time=NOW + timedelta(days=2)
    )
    async with drift.database.transaction() as tx:
        await save_slots(tx, [slot])
    assert await drift.listed() == []
    in_winter = replace(slot, revision=2, schedule_time=NOW + timedelta(days=40))
    async with drift.database.transaction() as tx:
        await save_slots(tx, [in_winter])
    (change,) = await drift.listed()
    assert change.moved_times == ()
    assert (await drift.apply()).moved[Kind.ACCOUNT_SCHEDULE] == 1
    assert len(drift.announced.schedules) == 1


async def test_posts_in_a_former_zone_of_a_schedule_move_too(drift: "Drift") -> None:
    nominal, old, new = MOVED
    assert old is not None
    assert new is not None
    await drift.schedule()
    await drift.put("page", zone=find_zone(BERLIN))
    await drift.set_release(OLD)
    assert await drift.listed() == []
    await drift.receive_slot(nominal, old)
    (change,) = await drift.listed()
    assert (change.zone_release, change.moved_times) == (ZoneRelease(OLD, BERLIN), ())
    assert await drift.listed("umbrella") == []
    drift.announced.schedules.clear()
    assert (await drift.apply("acme")).moved[Kind.ACCOUNT_SCHEDULE] == 1
    (event,) = drift.announced.schedules
    assert (event.account_schedule.version, event.account_schedule.tzdata_version, event.deleted) == (3, NEW, False)
    assert await drift.listed() == []

    await drift.set_release(OLD)
    assert ids(await drift.listed()) == [("ACCOUNT_SCHEDULE", "acme", "page")]
    await drift.receive_slot(nominal, new, revision=2)
    assert await drift.listed() == []
    assert (await drift.apply()).moved.total() == 0
    assert (await drift.stored_schedule()).tzdata_version == NEW


async def test_posts_of_a_deleted_schedule_move_too(drift: "Drift") -> None:
    nominal, old, new = MOVED
    assert old is not None
    assert new is not None
    gone = deleted(await drift.schedule(), now=LONG_AGO)
    async with drift.database.transaction() as tx:
        await save_schedule(tx.connection, gone)
    assert await drift.listed() == []
    await drift.receive_slot(nominal, NOW - timedelta(minutes=1), slot_id="past")
    await drift.receive_slot(None, old, slot_id="exact")
    assert await drift.listed() == []
    await drift.receive_slot(nominal, old)
    assert ids(await drift.listed()) == [("ACCOUNT_SCHEDULE", "acme", "page")]
    assert (await drift.apply()).moved[Kind.ACCOUNT_SCHEDULE] == 1
    (event,) = drift.announced.schedules
    assert (event.account_schedule.version, event.account_schedule.tzdata_version, event.deleted) == (3, NEW, True)
    assert await drift.listed() == []
    assert not (await drift.apply()).moved

    await drift.put("page")
    await drift.set_release(OLD)
    await drift.receive_slot(nominal, new, revision=2)
    assert ids(await drift.listed()) == [("ACCOUNT_SCHEDULE", "acme", "page")]  # because of its weekly slots


async def test_accounts_with_posts_in_other_zones_are_listed_in_order(drift: "Drift") -> None:
    nominal, old, _ = MOVED
    assert old is not None
    accounts = [f"page-{number}" for number in range(6)]
    for number, account in enumerate(accounts):
        await drift.schedule(account)
        if number % 2:
            await drift.put(account, zone=find_zone(BERLIN))
            await drift.set_release(OLD, account)
            await drift.receive_slot(nominal, old, slot_id=account, social_account_id=account)
    for size in (1, 2, 3, 200):
        assert [change.place.id for change in await drift.listed(size=size)] == accounts


async def test_a_post_moves_from_a_new_second_pass_to_the_first(drift: "Drift") -> None:
    """Compares data by which clocks in Berlin went back on the 18th with the 25th; the post is after both."""
    release, data = "2025a", compiled_zone("CET-1CEST,M3.5.0,M10.3.0/3", offset=timedelta(hours=1))
    await drift.record(BERLIN, data, release)
    await drift.schedule(zone=BERLIN, release=release, weekly_slots=())
    before, behind = datetime(2026, 10, 25, 0, 30, tzinfo=UTC), datetime(2026, 10, 25, 1, 30, tzinfo=UTC)
    await drift.receive_slot(datetime(2026, 10, 25, 2, 30), behind, BERLIN)
    assert len(await drift.listed()) == 1
    await drift.receive_slot(None, behind, BERLIN, revision=2)
    assert await drift.listed() == []
    await drift.receive_slot(None, before, BERLIN, revision=3)  # a plain instant stays, but shows another local time
    assert len(await drift.listed()) == 1


async def test_a_paused_timer_moves_and_stays_paused(drift: "Drift") -> None:
    await drift.timer(paused=True, sleep_until=None)
    assert (await drift.apply()).moved[Kind.TIMER] == 1
    timer = await drift.stored_timer()
    assert (timer.due_time, timer.sleep_until, timer.paused) == (MOVED.new, None, True)


async def test_a_timer_that_is_due_keeps_its_occurrence(drift: "Drift") -> None:
    timer = await drift.timer()
    drift.clock.moment = datetime(2026, 11, 2, 17, 0, 1, tzinfo=UTC)
    applied = await drift.apply()
    assert (applied.done, applied.moved[Kind.TIMER]) == (True, 0)
    assert await drift.stored_timer() == timer


async def test_a_timer_that_does_not_move_is_marked_and_keeps_its_fence(drift: "Drift") -> None:
    due = datetime(2026, 10, 26, 16, 0, tzinfo=UTC)
    timer = await drift.timer(fence=7)
    async with drift.database.transaction() as tx:
        await tx.connection.execute(text("update timer set due_time = :due, sleep_until = :due"), {"due": due})
    assert await drift.listed() == []
    assert (await drift.apply()).moved[Kind.TIMER] == 0
    assert await drift.stored_timer() == replace(timer, due_time=due, sleep_until=due, tzdata_version=NEW)


async def test_a_schedule_in_a_dropped_zone_is_left_to_a_person(drift: "Drift") -> None:
    """Checks that no announcement is made that Queue could not read, although a post in another zone moves."""
    await drift.schedule_in_dropped_zone("gone")
    await drift.schedule("page")
    before = await drift.stored_schedule("gone")
    drift.announced.schedules.clear()

    assert ids(await drift.listed()) == [("ACCOUNT_SCHEDULE", "acme", "page")]
    applied = await drift.apply()

    assert (applied.moved[Kind.ACCOUNT_SCHEDULE], applied.done) == (1, True)
    assert [event.account_schedule.social_account_id for event in drift.announced.schedules] == ["page"]
    assert await drift.stored_schedule("gone") == before


async def test_posts_of_a_deleted_schedule_in_a_dropped_zone_move(drift: "Drift") -> None:
    await drift.schedule_in_dropped_zone("gone")
    async with drift.database.transaction() as tx:
        await save_schedule(tx.connection, deleted(await drift.stored_schedule("gone"), now=LONG_AGO))
    drift.announced.schedules.clear()

    assert ids(await drift.listed()) == [("ACCOUNT_SCHEDULE", "acme", "gone")]
    assert (await drift.apply()).moved[Kind.ACCOUNT_SCHEDULE] == 1

    (event,) = drift.announced.schedules
    assert (event.account_schedule.social_account_id, event.deleted) == ("gone", True)
    assert await drift.listed() == []
