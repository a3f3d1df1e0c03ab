"""ListZoneChanges lists exactly what the current time zone data moves."""

from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING

from civil.weekly import WeeklySlot
from civil.windows import SendWindow
from schedule_service.adapters.postgres.account_schedules import save_schedule
from schedule_service.adapters.postgres.timers import insert_timer
from schedule_service.domain.calendars.account_schedule import deleted
from schedule_service.domain.timers.timer_request import TimerRequest
from schedule_service.domain.timers.timer_request import created as created_timer
from schedule_service.domain.zone_changes.moved_times import MovedTime
from schedule_service.domain.zone_changes.zone_change import Kind
from testkit.zones.compiled_zones import compiled_zone
from tests.usecase.schedule_service.zone_changes.vancouver import BERLIN, MOVED, NEW, NOW, OLD, VANCOUVER, ids

if TYPE_CHECKING:
    from tests.usecase.schedule_service.zone_changes.conftest import Drift


async def test_only_schedules_whose_times_move_are_listed(drift: "Drift") -> None:
    await drift.schedule("moves")
    await drift.schedule("off", enabled=False)
    await drift.schedule("berlin", BERLIN)
    await drift.schedule("empty", weekly_slots=())
    await drift.schedule("current", release=NEW)
    async with drift.database.transaction() as tx:
        gone = deleted(await drift.schedule("deleted"), now=NOW)
        await save_schedule(tx.connection, gone)
    changes = await drift.listed()
    assert ids(changes) == [("ACCOUNT_SCHEDULE", "acme", "moves"), ("ACCOUNT_SCHEDULE", "acme", "off")]
    assert changes[0].zone_release == (OLD, VANCOUVER)
    assert changes[0].moved_times[0] == MOVED
    assert len(changes[0].moved_times) == 10
    assert {moved.old - moved.new for moved in changes[0].moved_times if moved.old and moved.new} == {
        timedelta(hours=1)
    }


async def test_a_difference_outside_all_slots_moves_nothing(drift: "Drift") -> None:
    """Compares with a release in which summer time ended two hours later, once."""
    summer, winter = timedelta(hours=2), timedelta(hours=1)
    ends = [(datetime(2026, 10, 25, 3, tzinfo=UTC), winter)]
    data = compiled_zone("CET-1CEST,M3.5.0,M10.5.0/3", offset=summer, changes=ends)
    await drift.record(BERLIN, data, "2025b")
    await drift.schedule("monday", BERLIN, release="2025b")
    await drift.schedule("sunday", BERLIN, release="2025b", weekly_slots=(WeeklySlot(day=0, hour=3, minute=30),))
    (change,) = await drift.listed()
    assert change.moved_times == (
        MovedTime(
            datetime(2026, 10, 25, 3, 30),
            datetime(2026, 10, 25, 1, 30, tzinfo=UTC),
            datetime(2026, 10, 25, 2, 30, tzinfo=UTC),
        ),
    )
    assert (await drift.apply()).moved[Kind.ACCOUNT_SCHEDULE] == 1
    assert [each.account_schedule.social_account_id for each in drift.announced.schedules] == ["sunday"]
    assert (await drift.stored_schedule("monday")).tzdata_version == NEW


async def test_a_schedule_without_slots_moves_with_its_window(drift: "Drift") -> None:
    window = SendWindow(days=frozenset({1}), start=time(9), end=None)
    await drift.schedule(weekly_slots=(), send_window=window)
    (change,) = await drift.listed()
    assert change.moved_times[0] == MOVED
    assert change.moved_times[1].nominal == datetime(2026, 11, 3, 0, 0)


async def test_rules_move_by_their_own_targets(drift: "Drift") -> None:
    await drift.rule("weekly")
    await drift.rule(
        "monthly", weekly_slots=(), rrule="FREQ=MONTHLY;BYDAY=1TU;BYHOUR=9;BYMINUTE=30", start_date=date(2026, 1, 1)
    )
    await drift.rule("ended", end_date=date(2026, 10, 31))
    await drift.rule("later", start_date=date(2028, 1, 1))
    first_mondays = (date(2026, 11, 2), date(2026, 11, 9))
    await drift.rule("excluded", excluded_dates=first_mondays)
    await drift.rule(
        "summers",
        weekly_slots=(),
        rrule="FREQ=YEARLY;BYMONTH=7;BYMONTHDAY=1;BYHOUR=9;BYMINUTE=0",
        start_date=date(2026, 1, 1),
    )
    changes = {change.place.id: change for change in await drift.listed()}
    assert changes.keys() == {"weekly", "monthly", "later", "excluded"}
    assert changes["weekly"].moved_times[0] == MOVED
    assert [moved.nominal for moved in changes["monthly"].moved_times[:2]] == [
        datetime(2026, 11, 3, 9, 30),
        datetime(2026, 12, 1, 9, 30),
    ]
    assert changes["later"].moved_times[0].nominal == datetime(2028, 1, 3, 9, 0)
    assert changes["excluded"].moved_times[0].nominal == datetime(2026, 11, 16, 9, 0)
    assert all(change.kind is Kind.SCHEDULE_RULE for change in changes.values())


async def test_a_timer_is_listed_with_the_time_that_it_waits_for(drift: "Drift") -> None:
    await drift.timer()
    (change,) = await drift.listed()
    assert (change.kind, change.place, change.zone_release) == (Kind.TIMER, ("acme", "timer"), (OLD, VANCOUVER))
    assert change.moved_times == (MOVED,)


async def test_timers_that_do_not_move_are_not_listed(drift: "Drift") -> None:
    due = NOW + timedelta(days=30)
    once = replace(created_timer("acme", "once", TimerRequest(topic="t", fire_time=due), now=NOW), tzdata_version=OLD)
    request = TimerRequest(topic="t", cron="@every 1h", time_zone=VANCOUVER)
    every = replace(created_timer("acme", "every", request, now=NOW), tzdata_version=OLD)
    async with drift.database.transaction() as tx:
        for timer in (once, every):
            assert await insert_timer(tx.connection, timer)
    await drift.timer("due", fence=1)
    drift.clock.moment = datetime(2026, 11, 2, 17, 0, 1, tzinfo=UTC)
    assert await drift.listed() == []


async def test_pages_cover_all_kinds_organizations_and_ids(drift: "Drift") -> None:
    expected = []
    for organization in ("acme", "umbrella", "wayne"):
        for number in range(3):
            await drift.schedule(f"page-{number}", organization=organization)
            await drift.schedule(f"still-{number}", BERLIN, organization=organization)
            await drift.rule(f"rule-{number}", organization=organization)
            await drift.timer(f"timer-{number}", organization=organization)
            expected += [
                ("ACCOUNT_SCHEDULE", organization, f"page-{number}"),
                ("SCHEDULE_RULE", organization, f"rule-{number}"),
                ("TIMER", organization, f"timer-{number}"),
            ]
    for size in (1, 2, 3, 7, 26, 27, 28, 200):
        assert ids(await drift.listed(size=size)) == sorted(expected)
    for size in (1, 4, 9, 10):
        assert ids(await drift.listed("umbrella", size=size)) == [
            each for each in sorted(expected) if each[1] == "umbrella"
        ]
    assert await drift.listed("nobody") == []


async def test_a_schedule_put_with_the_current_release_is_not_listed(drift: "Drift") -> None:
    await drift.schedule("page")
    await drift.schedule("other")
    await drift.put("page", max_posts_per_day=3)
    assert ids(await drift.listed()) == [("ACCOUNT_SCHEDULE", "acme", "other")]
    assert (await drift.apply()).moved[Kind.ACCOUNT_SCHEDULE] == 1
    assert [
        (each.account_schedule.social_account_id, each.account_schedule.version) for each in drift.announced.schedules
    ] == [
        ("page", 2),
        ("other", 2),
    ]
