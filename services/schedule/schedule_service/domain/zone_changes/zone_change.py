"""Changes that a new tzdata release makes to schedules, rules and timers announced with an older one."""

from dataclasses import replace
from datetime import datetime, time, timedelta
from enum import StrEnum
from functools import partial
from typing import NamedTuple, TypeAlias, TypeVar

from civil.cron import firings, parse_cron
from civil.weekly import WeeklySlot
from civil.windows import SendWindow
from civil.zones import Zone, tzdata_version
from schedule_service.domain.calendars.account_schedule import AccountSchedule
from schedule_service.domain.calendars.rule_targets import local_times, times_of_week
from schedule_service.domain.calendars.schedule_rule import ScheduleRule
from schedule_service.domain.timers.timer import Timer, TimerState, rescheduled
from schedule_service.domain.zone_changes.moved_times import HORIZON, MovedTime, first_moved, zones_differ
from schedule_service.domain.zone_release import ZoneRelease

# The current occurrence of a timer may be long past, when it is paused, or five years away.
_TIMERS_BEHIND, _TIMERS_AHEAD = timedelta(days=366), timedelta(days=6 * 366)


class Kind(StrEnum):
    """Kinds of rows that depend on time zone data, in the order of listings."""

    ACCOUNT_SCHEDULE = "ACCOUNT_SCHEDULE"
    SCHEDULE_RULE = "SCHEDULE_RULE"
    TIMER = "TIMER"


class Place(NamedTuple):
    """The key of a schedule, rule or timer among those of its kind."""

    organization_id: str
    id: str


class ZoneChange(NamedTuple):
    """A schedule, rule or timer whose times have moved."""

    kind: Kind
    place: Place
    zone_release: ZoneRelease
    """The zone and the tzdata release that its times were announced with."""
    moved_times: tuple[MovedTime, ...]


Moved: TypeAlias = tuple[MovedTime, ...] | None
"""The first times that have moved; None: none has. Empty: some have moved, but they cannot be listed."""

Announceable = TypeVar("Announceable", AccountSchedule, ScheduleRule)
Dependent = TypeVar("Dependent", AccountSchedule, ScheduleRule, Timer)


def zone_of(dependent: AccountSchedule | ScheduleRule | Timer) -> Zone:
    match dependent:
        case AccountSchedule():
            return dependent.timetable.zone
        case ScheduleRule():
            return dependent.terms.time_zone
        case Timer():
            return dependent.zone


def can_have_moved(kind: Kind, old: Zone, new: Zone, *, now: datetime) -> bool:
    """Returns whether times of this kind may differ at all: a cheap check before the rows are examined."""
    if kind is Kind.TIMER:
        return zones_differ(old, new, start=now - _TIMERS_BEHIND, end=now + _TIMERS_AHEAD)
    return zones_differ(old, new, start=now, end=now + HORIZON)


def moved_schedule(schedule: AccountSchedule, old_zone: Zone | None, *, now: datetime) -> Moved:
    """Compares the weekly slots, then the edges of the send window.

    A disabled schedule counts too, because slots already given out keep their times. If the old zone is unknown, any
    time may have moved.
    """
    if old_zone is None:
        return ()
    timetable = schedule.timetable
    for times in (timetable.weekly_slots, _edges(timetable.send_window)):
        if moved := first_moved(partial(times_of_week, times), old_zone, timetable.zone, now=now):
            return moved
    return None


def moved_rule(rule: ScheduleRule, old_zone: Zone | None, *, now: datetime) -> Moved:
    """Compares the targets of a rule. A disabled rule counts too: drafts made for its targets keep their times."""
    if old_zone is None:
        return ()
    return first_moved(partial(local_times, rule.terms), old_zone, rule.terms.time_zone, now=now) or None


def moved_timer(timer: Timer, old_zone: Zone | None, *, now: datetime) -> Moved:
    """Compares the occurrence that the timer waits for. If the old zone is unknown, it keeps its instant."""
    after = with_current_zone(timer, old_zone, now=now)
    if timer.due_time is None or after.due_time == timer.due_time:
        return None
    assert old_zone is not None, "without the old zone the occurrence keeps its instant"
    just_before = timer.due_time - datetime.resolution
    firing = next(firings(parse_cron(timer.cron), old_zone, after=just_before, dst=timer.dst_policy))
    return (MovedTime(firing.nominal, timer.due_time, after.due_time),)


def is_due(timer: Timer, *, now: datetime) -> bool:
    """Returns whether the timer is about to fire. If so, this occurrence stays, and the next uses the current data."""
    return timer.state is TimerState.ACTIVE and timer.due_time is not None and timer.due_time <= now


def with_current_zone(timer: Timer, old_zone: Zone | None, *, now: datetime) -> Timer:
    after = rescheduled(timer, old_zone or timer.zone, timer.zone, now=now)
    # An engine that holds the timer keeps its lock when nothing moved.
    return with_current_release(timer) if after.due_time == timer.due_time else after


def reannounced(announced: Announceable, *, now: datetime) -> Announceable:
    return replace(announced, version=announced.version + 1, update_time=now, tzdata_version=tzdata_version())


def with_current_release(unmoved: Dependent) -> Dependent:
    """Returns it as announced with the current tzdata release, in which its times are the same."""
    return replace(unmoved, tzdata_version=tzdata_version())


def _edges(window: SendWindow | None) -> list[WeeklySlot]:
    """Returns when the window opens and closes, in the order of the week; the end of a day is the start of the next."""
    if window is None:
        return []
    opens, closes, days_on = window.start, window.end or time(), 0 if window.end else 1
    edges = [WeeklySlot(day=day, hour=opens.hour, minute=opens.minute) for day in window.days]
    edges += [WeeklySlot(day=(day + days_on) % 7, hour=closes.hour, minute=closes.minute) for day in window.days]
    return sorted(edges)
