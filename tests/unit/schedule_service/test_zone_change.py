"""Changes that a new tzdata release makes to schedules, rules and timers."""

from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from civil.cron import Dst, firings, parse_cron
from civil.weekly import WeeklySlot
from civil.windows import SendWindow
from civil.zones import Zone, find_zone, tzdata_version, zone_data, zone_from_data
from schedule_service.domain.calendars.account_schedule import AccountSchedule, Timetable, created
from schedule_service.domain.calendars.rule_targets import targets
from schedule_service.domain.calendars.schedule_rule import AssetPolicy, ScheduleRule, Terms
from schedule_service.domain.timers.timer import Timer
from schedule_service.domain.timers.timer_request import TimerRequest
from schedule_service.domain.timers.timer_request import created as created_timer
from schedule_service.domain.zone_changes.moved_times import HORIZON, MovedTime
from schedule_service.domain.zone_changes.zone_change import (
    Kind,
    can_have_moved,
    is_due,
    moved_rule,
    moved_schedule,
    moved_timer,
    reannounced,
    with_current_release,
    with_current_zone,
    zone_of,
)
from testkit.zones.compiled_zones import compiled_zone
from testkit.zones.wall_clock import distinct_zones

NOW = datetime(2026, 10, 20, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
VANCOUVER = find_zone("America/Vancouver")
# Until 2026 clocks in Vancouver went back in November; since then they stay.
BEFORE = zone_from_data("America/Vancouver", compiled_zone("PST8PDT,M3.2.0,M11.1.0", offset=-8 * HOUR))
MONDAY_NINE = WeeklySlot(day=1, hour=9, minute=0)


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc,arg-type]


def schedule(**changes: object) -> AccountSchedule:
    terms: dict[str, object] = {"name": "", "zone": VANCOUVER, "weekly_slots": (), "max_posts_per_day": 0}
    timetable = Timetable(**(terms | {"enabled": True} | changes))  # type: ignore[arg-type]
    return replace(created("acme", "page", timetable, now=NOW), tzdata_version="2024a")


def rule(**changes: object) -> ScheduleRule:
    terms = Terms(
        name="",
        time_zone=VANCOUVER,
        weekly_slots=(),
        rrule="",
        start_time=None,
        start_date=None,
        end_date=None,
        excluded_dates=(),
        channels=("facebook",),
        category_id="",
        asset_policy=AssetPolicy.OPTIONAL,
        enabled=True,
    )
    return ScheduleRule(
        organization_id="acme",
        id="rule",
        brand_id="brand",
        terms=replace(terms, **changes),  # type: ignore[arg-type]
        version=1,
        create_time=NOW,
        update_time=NOW,
        tzdata_version="2024a",
    )


def timer(cron: str, zone: Zone, *, after: datetime, dst: Dst = Dst.ONCE, **changes: object) -> Timer:
    """Returns a timer that waits for its first time after an instant, computed with that zone."""
    made = created_timer("acme", "t", TimerRequest(topic="t", cron=cron, time_zone=zone.name, dst_policy=dst), now=NOW)
    due = next(firings(parse_cron(cron), zone, after=after, dst=dst)).instant
    return replace(made, due_time=due, sleep_until=due, tzdata_version="2024a", **changes)  # type: ignore[arg-type]


# Schedules


def test_a_schedule_is_compared_by_its_slots_or_else_its_window() -> None:
    window = SendWindow(days=frozenset({6}), start=time(8, 30), end=None)
    by_slots = moved_schedule(schedule(weekly_slots=(MONDAY_NINE,), send_window=window), BEFORE, now=NOW)
    assert by_slots
    assert {(moved.nominal.isoweekday(), moved.nominal.hour) for moved in by_slots} == {(1, 9)}
    by_window = moved_schedule(schedule(send_window=window), BEFORE, now=NOW)
    assert by_window
    # It closes with the end of Saturday, which is the start of Sunday.
    assert [moved.nominal for moved in by_window[:3]] == [
        datetime(2026, 11, 7, 8, 30),
        datetime(2026, 11, 8, 0, 0),
        datetime(2026, 11, 14, 8, 30),
    ]
    hours = replace(window, end=time(17, 45))
    by_hours = moved_schedule(schedule(send_window=hours), BEFORE, now=NOW)
    assert by_hours
    assert [moved.nominal.time() for moved in by_hours[:2]] == [time(8, 30), time(17, 45)]


def test_a_schedule_without_times_does_not_move() -> None:
    assert moved_schedule(schedule(), BEFORE, now=NOW) is None
    assert moved_schedule(schedule(weekly_slots=(MONDAY_NINE,)), VANCOUVER, now=NOW) is None


def test_a_disabled_schedule_moves_as_well() -> None:
    moved = moved_schedule(schedule(weekly_slots=(MONDAY_NINE,), enabled=False), BEFORE, now=NOW)
    assert moved
    assert moved[0] == MovedTime(datetime(2026, 11, 2, 9, 0), utc(2026, 11, 2, 17), utc(2026, 11, 2, 16))


def test_without_the_old_zone_something_may_have_moved() -> None:
    assert moved_schedule(schedule(), None, now=NOW) == ()
    assert moved_rule(rule(weekly_slots=(MONDAY_NINE,)), None, now=NOW) == ()


def test_only_a_reannounced_row_gets_a_new_version() -> None:
    before = schedule(weekly_slots=(MONDAY_NINE,))
    later = NOW + HOUR
    assert reannounced(before, now=later) == replace(
        before, version=2, update_time=later, tzdata_version=tzdata_version()
    )
    assert reannounced(before, now=later).etag != before.etag
    assert with_current_release(before) == replace(before, tzdata_version=tzdata_version())
    assert with_current_release(before).etag == before.etag


def test_each_kind_knows_its_zone() -> None:
    of = [schedule(), rule(weekly_slots=(MONDAY_NINE,)), timer("0 9 * * 1", VANCOUVER, after=NOW)]
    assert {zone_of(each) for each in of} == {VANCOUVER}  # type: ignore[arg-type]


# Rules

RRULES = (
    "FREQ=MONTHLY;BYDAY=1TU;BYHOUR=9;BYMINUTE=30",
    "FREQ=DAILY;INTERVAL=3;BYHOUR=2;BYMINUTE=15,45",
    "FREQ=WEEKLY;BYDAY=SU;BYHOUR=1,2,3;BYMINUTE=0,30",
    "FREQ=HOURLY;INTERVAL=7;BYMINUTE=10",
)


@settings(max_examples=60, deadline=None)
@given(
    names=st.tuples(st.sampled_from(distinct_zones()), st.sampled_from(distinct_zones())) | st.none(),
    slots=st.lists(
        st.builds(WeeklySlot, day=st.integers(0, 6), hour=st.integers(0, 3), minute=st.sampled_from((0, 30))),
        min_size=1,
        max_size=8,
        unique=True,
    ).map(lambda slots: tuple(sorted(slots))),
    rrule=st.sampled_from(("", *RRULES)),
    excluded=st.lists(st.integers(0, 700).map(lambda day: date(2026, 10, 20) + timedelta(days=day)), max_size=5),
    last=st.none() | st.integers(0, 700).map(lambda day: date(2026, 10, 20) + timedelta(days=day)),
)
def test_the_moved_times_of_a_rule_are_where_its_targets_differ(
    names: tuple[str, str] | None,
    slots: tuple[WeeklySlot, ...],
    rrule: str,
    excluded: list[date],
    last: date | None,
) -> None:
    old, new = [zone_from_data("UTC", zone_data(name)) for name in names] if names else (BEFORE, VANCOUVER)
    made = rule(
        time_zone=new,
        weekly_slots=() if rrule else slots,
        rrule=rrule,
        start_time=time(9) if rrule else None,
        start_date=date(2026, 10, 1) if rrule else None,
        end_date=last,
        excluded_dates=tuple(sorted(set(excluded))),
    )
    announced = replace(made, terms=replace(made.terms, time_zone=old))
    # A time at the very start may have been announced for an instant before it.
    around = {"start": NOW - timedelta(days=3), "end": NOW + HORIZON + timedelta(days=3)}
    before, after = ({each.key: each.instant for each in targets(of, **around)} for of in (announced, made))
    differing = sorted(
        (datetime.fromisoformat(key.partition("/")[2].replace("/", " ")), before.get(key), after.get(key))
        for key in before.keys() | after.keys()
        if before.get(key) != after.get(key)
        and any(at and NOW <= at < NOW + HORIZON for at in (before.get(key), after.get(key)))
    )
    assert list(moved_rule(made, old, now=NOW) or ()) == [MovedTime(*each) for each in differing[:10]]


# Timers


@pytest.mark.parametrize("dst", Dst)
def test_a_timer_moves_with_the_time_that_it_waits_for(dst: Dst) -> None:
    waits = timer("0 9 * * 1", BEFORE, after=utc(2026, 11, 1, 12), dst=dst)
    assert moved_timer(waits, BEFORE, now=NOW) == (
        MovedTime(datetime(2026, 11, 2, 9, 0), utc(2026, 11, 2, 17), utc(2026, 11, 2, 16)),
    )
    following = with_current_zone(waits, BEFORE, now=NOW)
    assert following.due_time == following.sleep_until == utc(2026, 11, 2, 16)
    assert following.tzdata_version == tzdata_version()
    assert following.fence > waits.fence


def test_a_timer_whose_next_time_does_not_move_keeps_its_fence() -> None:
    waits = timer("0 9 * * 1", BEFORE, after=NOW, fence=3)
    assert moved_timer(waits, BEFORE, now=NOW) is None
    assert with_current_zone(waits, BEFORE, now=NOW) == replace(waits, tzdata_version=tzdata_version())


def test_a_timer_keeps_its_instant_without_the_old_zone() -> None:
    waits = timer("0 9 * * 1", BEFORE, after=utc(2026, 11, 1, 12))
    assert moved_timer(waits, None, now=NOW) is None
    assert with_current_zone(waits, None, now=NOW) == replace(waits, tzdata_version=tzdata_version())


def test_a_timer_is_due_from_its_time_on_unless_paused() -> None:
    waits = timer("0 9 * * 1", BEFORE, after=utc(2026, 11, 1, 12))
    due = utc(2026, 11, 2, 17)
    assert [is_due(waits, now=now) for now in (due - HOUR, due, due + HOUR)] == [False, True, True]
    assert not is_due(replace(waits, paused=True), now=due + HOUR)
    assert not is_due(replace(waits, sleep_until=None), now=due + HOUR)


def test_timers_are_compared_as_far_ahead_as_they_can_wait() -> None:
    """A leap day may be eight years off, and cron looks five ahead."""
    in_three_years = NOW + timedelta(days=3 * 365)
    later = zone_from_data("UTC", compiled_zone("ABC-1", changes=[(in_three_years, HOUR)]))
    assert can_have_moved(Kind.TIMER, find_zone("UTC"), later, now=NOW)
    assert not can_have_moved(Kind.ACCOUNT_SCHEDULE, find_zone("UTC"), later, now=NOW)
    assert not can_have_moved(Kind.SCHEDULE_RULE, find_zone("UTC"), later, now=NOW)
    long_paused = NOW - timedelta(days=200)
    earlier = zone_from_data("UTC", compiled_zone("UTC0", offset=HOUR, changes=[(long_paused, timedelta())]))
    assert can_have_moved(Kind.TIMER, earlier, find_zone("UTC"), now=NOW)
    assert not can_have_moved(Kind.ACCOUNT_SCHEDULE, earlier, find_zone("UTC"), now=NOW)
