"""Every target, compared with a walk over the minutes of UTC that asks each rule whether it means this minute.

The walk reads wall-clock times straight from the compiled zones.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise, product
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from civil.weekly import WeeklySlot
from civil.zones import find_zone
from schedule_service.domain.calendars.rule_targets import Span, page_of, targets
from schedule_service.domain.calendars.schedule_rule import AssetPolicy, ScheduleRule, Terms, checked
from testkit.zones.wall_clock import DAY, WallClock, changes_by_kind, clock, first_minutes, instant_of, moments

MADE = datetime(2020, 1, 1, tzinfo=UTC)
_MONDAY = date(1970, 1, 5)
_ON_THE_WALL = datetime(1970, 1, 1)
_DAYS = ("SU", "MO", "TU", "WE", "TH", "FR", "SA")

Wants = Callable[[datetime], bool]
"""Returns whether a rule asks for this local time, apart from its dates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recurring:
    """The terms of a rule that say when: as the service has them, and as a predicate."""

    weekly_slots: tuple[WeeklySlot, ...] = ()
    rrule: str = ""
    start: datetime
    wants: Wants


def wall_time(minute: int) -> datetime:
    return _ON_THE_WALL + timedelta(minutes=minute)


def expected(terms: Terms, wants: Wants, zone: WallClock, after: int, until: int) -> list[tuple[int, str, int, bool]]:
    """Returns (instant, nominal time, offset, shifted) by the policy. The walk reaches further than a jump, a day."""
    walk = range(after - 30 * 60, until + 30 * 60)
    walls = zone.walls(walk)
    first_shown = first_minutes(walk, walls)
    dates = {wall // DAY for wall in first_shown}

    def asks_for(wall: int) -> bool:
        local = wall_time(wall)
        day = local.date()
        return (
            (terms.start_date is None or terms.start_date <= day)
            and (terms.end_date is None or day <= terms.end_date)
            and day not in terms.excluded_dates
            and wants(local)
        )

    found: dict[int, tuple[int, int]] = {}  # minute -> local time that was asked for, local time that is shown
    for earlier, later in pairwise(walls):
        for skipped in range(earlier + 1, later):
            if skipped not in first_shown and skipped // DAY in dates and asks_for(skipped):
                shown = skipped + later - earlier - 1
                found[first_shown[shown]] = skipped, shown
    for wall, minute in first_shown.items():
        if asks_for(wall):
            found[minute] = wall, wall
    return [
        (minute, f"{wall_time(asked):%Y-%m-%d/%H:%M}", (shown - minute) * 60, asked != shown)
        for minute, (asked, shown) in sorted(found.items())
        if after <= minute < until
    ]


def answered(rule: ScheduleRule, after: int, until: int) -> list[tuple[int, str, int, bool]]:
    found = targets(rule, start=instant_of(after), end=instant_of(until))
    return [
        (
            int(each.instant.timestamp()) // 60,
            each.key.removeprefix("r1/"),
            int(each.offset.total_seconds()),
            bool(each.shift),
        )
        for each in found
    ]


def rule_of(terms: Terms, rule_id: str = "r1") -> ScheduleRule:
    return ScheduleRule(
        organization_id="acme",
        id=rule_id,
        brand_id="brand",
        terms=checked(terms, made_on=MADE.date()),
        version=1,
        create_time=MADE,
        update_time=MADE,
        tzdata_version="",
    )


def terms_of(recurring: Recurring, zone_name: str, **dates: Any) -> Terms:
    given: dict[str, Any] = {"start_date": recurring.start.date(), "end_date": None, "excluded_dates": ()} | dates
    return Terms(
        name="",
        time_zone=find_zone(zone_name),
        weekly_slots=recurring.weekly_slots,
        rrule=recurring.rrule,
        start_time=recurring.start.time() if recurring.rrule else None,
        channels=("facebook",),
        category_id="",
        asset_policy=AssetPolicy.OPTIONAL,
        enabled=True,
        **given,
    )


def weekly(slots: set[WeeklySlot], start: datetime) -> Recurring:
    named = {(slot.day, slot.hour, slot.minute) for slot in slots}
    return Recurring(
        weekly_slots=tuple(sorted(slots)),
        start=start,
        wants=lambda at: (at.isoweekday() % 7, at.hour, at.minute) in named,
    )


def daily(interval: int, times: set[tuple[int, int]], start: datetime) -> Recurring:
    hours, minutes = {hour for hour, _ in times}, {minute for _, minute in times}
    return Recurring(
        rrule=f"FREQ=DAILY;INTERVAL={interval};BYHOUR={numbers(hours)};BYMINUTE={numbers(minutes)}",
        start=start,
        wants=lambda at: (
            (at.date() - start.date()).days % interval == 0
            and at.hour in hours
            and at.minute in minutes
            and at >= start
        ),
    )


def hourly(interval: int, minutes: set[int], start: datetime) -> Recurring:
    since = start.replace(minute=0)
    return Recurring(
        rrule=f"FREQ=HOURLY;INTERVAL={interval};BYMINUTE={numbers(minutes)}",
        start=start,
        wants=lambda at: (
            (at.replace(minute=0) - since) // timedelta(hours=1) % interval == 0
            and at.minute in minutes
            and at >= start
        ),
    )


def fortnightly(interval: int, days: set[int], start: datetime) -> Recurring:
    week = (start.date() - _MONDAY).days // 7
    return Recurring(
        rrule=f"FREQ=WEEKLY;INTERVAL={interval};BYDAY={','.join(_DAYS[day] for day in days)}",
        start=start,
        wants=lambda at: (
            ((at.date() - _MONDAY).days // 7 - week) % interval == 0
            and at.isoweekday() % 7 in days
            and at.time() == start.time()
            and at >= start
        ),
    )


def monthly(interval: int, days: set[int], start: datetime) -> Recurring:
    def is_day(day: date) -> bool:
        next_month = (day.replace(day=1) + timedelta(days=32)).replace(day=1)
        return day.day in days or day.day - (next_month - timedelta(days=1)).day - 1 in days

    return Recurring(
        rrule=f"FREQ=MONTHLY;INTERVAL={interval};BYMONTHDAY={numbers(days)}",
        start=start,
        wants=lambda at: (
            ((at.year - start.year) * 12 + at.month - start.month) % interval == 0
            and is_day(at.date())
            and at.time() == start.time()
            and at >= start
        ),
    )


def until(recurring: Recurring, last: datetime) -> Recurring:
    return replace(
        recurring,
        rrule=f"{recurring.rrule};UNTIL={last:%Y%m%dT%H%M%S}",
        wants=lambda at: at <= last and recurring.wants(at),
    )


def numbers(values: set[int]) -> str:
    return ",".join(map(str, sorted(values)))


minutes = st.sampled_from([0, 1, 15, 30, 45, 59])
times = st.tuples(st.integers(0, 4) | st.integers(0, 23), minutes)
slots = st.builds(WeeklySlot, day=st.integers(0, 6), hour=st.integers(0, 23), minute=minutes)


@st.composite
def asked_rules(draw: st.DrawFn) -> tuple[Terms, Wants, str, int, int]:
    """Generates terms, their predicate, a zone, and the first and last minute to list."""
    name, minute = draw(moments())
    around = wall_time(clock(name).wall(minute))
    start = datetime.combine(
        around.date() - timedelta(days=draw(st.integers(-3, 30) | st.integers(0, 4000))), time(*draw(times))
    )
    recurring = draw(
        st.builds(weekly, st.sets(slots, min_size=1, max_size=30), st.just(start))
        | st.builds(daily, st.integers(1, 4), st.sets(times, min_size=1, max_size=4), st.just(start))
        | st.builds(hourly, st.integers(1, 7), st.sets(minutes, min_size=1), st.just(start))
        | st.builds(fortnightly, st.integers(1, 3), st.sets(st.integers(0, 6), min_size=1), st.just(start))
        | st.builds(
            monthly, st.integers(1, 2), st.sets(st.integers(1, 28) | st.integers(-28, -1), min_size=1), st.just(start)
        )
    )
    near = st.integers(-4, 6).map(lambda days: around.date() + timedelta(days=days))
    if recurring.rrule and draw(st.booleans()):
        last = datetime.combine(draw(near), time(*draw(times)))
        recurring = until(recurring, max(last, start + timedelta(days=70)))
    start_date = start.date() if recurring.rrule else draw(st.none() | near)
    end_date = draw(st.none() | near)
    if start_date and end_date:
        end_date = max(start_date, end_date)
    excluded = tuple(sorted(draw(st.sets(near, max_size=5))))
    terms = terms_of(recurring, name, start_date=start_date, end_date=end_date, excluded_dates=excluded)
    return terms, recurring.wants, name, minute - draw(st.integers(0, 2 * DAY)), minute + draw(st.integers(0, 6 * DAY))


@settings(deadline=None, max_examples=400)
@given(asked_rules())
def test_any_rule_in_any_zone(asked: tuple[Terms, Wants, str, int, int]) -> None:
    terms, wants, name, after, until = asked
    assert answered(rule_of(terms), after, until) == expected(terms, wants, clock(name), after, until)


@settings(deadline=None, max_examples=100)
@given(asked_rules(), st.lists(asked_rules(), max_size=3), st.integers(1, 7))
def test_pages_add_up_to_the_whole(
    first: tuple[Terms, Wants, str, int, int], others: list[tuple[Terms, Wants, str, int, int]], size: int
) -> None:
    *_, after, until = first
    rules = [rule_of(terms, f"r{n}") for n, (terms, *_) in enumerate([first, *others])]
    whole = Span(start=instant_of(after), end=instant_of(until))
    together = sorted(each for rule in rules for each in targets(rule, start=whole.start, end=whole.end))
    assert list(pages(rules, whole, size)) == together[:100]


def pages(rules: list[ScheduleRule], rest: Span | None, size: int) -> Iterator[object]:
    shown = 0
    while rest is not None and shown < 100:
        page = page_of(rules, rest, size=min(size, 100 - shown))
        shown += len(page.targets)
        yield from page.targets
        rest = page.rest


def test_every_known_clock_change_on_both_sides() -> None:
    """Compares both kinds of rule, on all dates and with the last one excluded.

    One clock change stands for all between the same offsets at the same time of day.
    """
    kinds = {
        (change.before, change.after, (change.at + change.before) % 86_400): (change, names[0])
        for change, names in changes_by_kind(2010, 2037).items()
    }
    assert len(kinds) > 100
    for change, name in kinds.values():
        middle = change.at // 60
        edges = [(change.at + offset) // 60 for offset in (change.before, change.after)]
        walls = {edge + near for edge in edges for near in (-61, -60, -31, -30, -1, 0, 1, 29, 30, 31, 59, 60, 61)}
        start = wall_time(min(walls)).replace(hour=0, minute=0) - timedelta(days=2)
        last_date = wall_time(max(walls)).date()
        of_slots = weekly({slot_at(wall) for wall in walls}, start)
        of_days = daily(1, {(wall_time(wall).hour, wall_time(wall).minute) for wall in walls}, start)
        for recurring, excluded in product((of_slots, of_days), ((), (last_date,))):
            terms = terms_of(recurring, name, excluded_dates=excluded)
            after, until = middle - 26 * 60, middle + 26 * 60
            wanted = expected(terms, recurring.wants, clock(name), after, until)
            assert answered(rule_of(terms), after, until) == wanted, (name, change)


def slot_at(wall: int) -> WeeklySlot:
    at = wall_time(wall)
    return WeeklySlot(day=at.isoweekday() % 7, hour=at.hour, minute=at.minute)
