"""What becomes of schedules, rules and timers whose zone has got another law since their times were announced."""

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
from schedule_service.domain.zone_changes.moved_times import HORIZON, MovedTime, first_moved, laws_differ

UNKNOWN = ""
"""The release of what was saved before releases were noted."""

# The occurrence in hand of a timer may be long over, when it is paused, or five years away.
_TIMERS_BEHIND, _TIMERS_AHEAD = timedelta(days=366), timedelta(days=6 * 366)


class Kind(StrEnum):
    """What follows the laws of zones; listed in this order."""

    ACCOUNT_SCHEDULE = "ACCOUNT_SCHEDULE"
    SCHEDULE_RULE = "SCHEDULE_RULE"
    TIMER = "TIMER"


class Law(NamedTuple):
    """A zone as one release of the database has it."""

    tzdata_version: str
    time_zone: str


class Place(NamedTuple):
    """Where something of a kind stands."""

    organization_id: str
    id: str


class ZoneChange(NamedTuple):
    """Something whose times have moved."""

    kind: Kind
    place: Place
    law: Law
    """That its times were announced with."""
    moved_times: tuple[MovedTime, ...]


Moved: TypeAlias = tuple[MovedTime, ...] | None
"""The first times that have moved; None: nothing has. Empty: something has, but nothing that can be listed."""

Announced = TypeVar("Announced", AccountSchedule, ScheduleRule)
Follower = TypeVar("Follower", AccountSchedule, ScheduleRule, Timer)


def zone_of(follower: AccountSchedule | ScheduleRule | Timer) -> Zone:
    match follower:
        case AccountSchedule():
            return follower.timetable.zone
        case ScheduleRule():
            return follower.terms.time_zone
        case Timer():
            return follower.zone


def can_have_moved(kind: Kind, old: Zone, new: Zone, *, now: datetime) -> bool:
    """Whether the times of anything of this kind may differ. The dearer question is asked only then."""
    if kind is Kind.TIMER:
        return laws_differ(old, new, start=now - _TIMERS_BEHIND, end=now + _TIMERS_AHEAD)
    return laws_differ(old, new, start=now, end=now + HORIZON)


def moved_schedule(schedule: AccountSchedule, law: Zone | None, *, now: datetime) -> Moved:
    """By its weekly slots, else by its send window, also while it is switched off: what was given out keeps its time.

    A law that nobody knows may have moved anything.
    """
    if law is None:
        return ()
    timetable = schedule.timetable
    for times in (timetable.weekly_slots, _edges(timetable.send_window)):
        if moved := first_moved(partial(times_of_week, times), law, timetable.zone, now=now):
            return moved
    return None


def moved_rule(rule: ScheduleRule, law: Zone | None, *, now: datetime) -> Moved:
    """Also while it is switched off: drafts that it brought about have its times."""
    if law is None:
        return ()
    return first_moved(partial(local_times, rule.terms), law, rule.terms.time_zone, now=now) or None


def moved_timer(timer: Timer, law: Zone | None, *, now: datetime) -> Moved:
    """By the occurrence that it waits for. Of a law that nobody knows it keeps the instant."""
    after = follow(timer, law, now=now)
    if timer.due_time is None or after.due_time == timer.due_time:
        return None
    assert law is not None, "without a law the occurrence stays"
    just_before = timer.due_time - datetime.resolution
    firing = next(firings(parse_cron(timer.cron), law, after=just_before, dst=timer.dst_policy))
    return (MovedTime(firing.nominal, timer.due_time, after.due_time),)


def is_in_hand(timer: Timer, *, now: datetime) -> bool:
    """It fires at this moment: the occurrence stays as it is, and the next one follows the law in force anyway."""
    return timer.state is TimerState.ACTIVE and timer.due_time is not None and timer.due_time <= now


def follow(timer: Timer, law: Zone | None, *, now: datetime) -> Timer:
    after = rescheduled(timer, law or timer.zone, timer.zone, now=now)
    # Who has it in hand need not lose it for nothing.
    return stamped(timer) if after.due_time == timer.due_time else after


def announced_anew(announced: Announced, *, now: datetime) -> Announced:
    return replace(announced, version=announced.version + 1, update_time=now, tzdata_version=tzdata_version())


def stamped(unmoved: Follower) -> Follower:
    """Its times are those that the law in force gives, too."""
    return replace(unmoved, tzdata_version=tzdata_version())


def _edges(window: SendWindow | None) -> list[WeeklySlot]:
    """When the window opens and closes, in the order of the week; the end of a day is the start of the next."""
    if window is None:
        return []
    opens, closes, days_on = window.start, window.end or time(), 0 if window.end else 1
    edges = [WeeklySlot(day=day, hour=opens.hour, minute=opens.minute) for day in window.days]
    edges += [WeeklySlot(day=(day + days_on) % 7, hour=closes.hour, minute=closes.minute) for day in window.days]
    return sorted(edges)
