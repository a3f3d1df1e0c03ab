"""The targets of a brand: the times at which its rules want a draft to be posted.

A rule names local times, and its start, end and excluded dates apply to their local dates. So the local times are
chosen first and then resolved to instants, with the policy of weekly slots: a time that the clocks skip is shifted
forward by the length of the gap, a time that they repeat occurs only the first time, a time on a date that does not
exist is dropped, and of two times at one instant the unshifted one is kept.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from heapq import merge
from itertools import islice
from typing import NamedTuple

from civil.recurrence import nominal_times
from civil.wall_clock import Resolved, resolve
from civil.weekly import WeeklySlot
from civil.zones import DAY, EARLIEST, LATEST, Zone
from schedule_service.domain.calendars.schedule_rule import ScheduleRule, Terms, recurrence
from servicekit.faults import InvalidField

HORIZON = timedelta(days=30)
"""The default length of a listing."""

LONGEST_HORIZON = timedelta(days=366)

_LAST_YEAR = LATEST.year - 3


class RuleTarget(NamedTuple):
    """A time for a draft. Targets compare in the order of listings: by instant, then by key."""

    instant: datetime
    """In UTC."""
    key: str
    """Stays the same when new time zone data moves the instant."""
    offset: timedelta
    shift: timedelta
    rule: ScheduleRule

    @property
    def local(self) -> datetime:
        """The wall-clock time at the instant, naive."""
        return (self.instant + self.offset).replace(tzinfo=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Selects the targets from `start` until before `end`; at `start`, only those with keys after `behind`."""

    start: datetime
    end: datetime
    behind: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetPage:
    targets: tuple[RuleTarget, ...]
    rest: Span | None
    """The span of the next page; None: this is the last page."""
    skipped: tuple[ScheduleRule, ...]
    """Rules whose zone tzdata has dropped, so that their targets are unknown."""


def span(*, after: datetime | None, horizon: timedelta | None, now: datetime) -> Span:
    """Returns the span of a listing: by default 30 days from now."""
    start = now if after is None else after
    if not EARLIEST.year <= start.year <= _LAST_YEAR:
        raise InvalidField("after", f"must be an instant of the years {EARLIEST.year} to {_LAST_YEAR}")
    return Span(start=start, end=start + (HORIZON if horizon is None else horizon))


def page_of(rules: Iterable[ScheduleRule], wanted: Span, *, size: int) -> TargetPage:
    """Returns the first `size` targets of the span. Computes only one more, to see whether another page follows."""
    rules = tuple(rules)
    skipped = tuple(rule for rule in rules if not rule.terms.time_zone.is_known)
    known = (rule for rule in rules if rule.terms.time_zone.is_known)
    merged = merge(*(targets(rule, start=wanted.start, end=wanted.end) for rule in known))
    behind = (target for target in merged if target.instant > wanted.start or target.key > wanted.behind)
    found = tuple(islice(behind, size + 1))
    shown = found[:size]
    if found == shown:
        return TargetPage(targets=shown, rest=None, skipped=skipped)
    last = shown[-1]
    rest = Span(start=last.instant, end=wanted.end, behind=last.key)
    return TargetPage(targets=shown, rest=rest, skipped=skipped)


def targets(rule: ScheduleRule, *, start: datetime, end: datetime) -> Iterator[RuleTarget]:
    """Yields the targets of one rule from `start` until before `end`, lazily and in time order."""
    if not rule.terms.enabled:
        return
    first, past = _local_bounds(rule.terms.time_zone, start, end)
    for nominal, found in _resolved(local_times(rule.terms, first, past), rule.terms.time_zone):
        if found.instant >= end:
            return
        if found.instant >= start:
            yield RuleTarget(found.instant, _key(rule, nominal), found.offset, found.shift, rule)


def _local_bounds(zone: Zone, start: datetime, end: datetime) -> tuple[datetime, datetime]:
    """Returns bounds (naive) of all local times that can resolve to an instant between `start` and `end`.

    If the clocks went forward just before `start`, an earlier local time may be shifted past it; if they went back just
    before `end`, they had already shown a later time. A jump is at most a day long.
    """
    first, past = ([(at + zone.offset_at(seen)).replace(tzinfo=None) for seen in (at - DAY, at)] for at in (start, end))
    return min(first), max(past)


def local_times(terms: Terms, first: datetime, past: datetime) -> Iterator[datetime]:
    """Yields the local times (naive) that the rule asks for, from `first` until before `past`."""
    if terms.start_date:
        first = max(first, datetime.combine(terms.start_date, time()))
    if terms.end_date:
        past = min(past, datetime.combine(terms.end_date, time.max))
    if first >= past:
        return
    dates = terms.excluded_dates
    excluded = frozenset(dates[bisect_left(dates, first.date()) : bisect_right(dates, past.date())])
    while first < past:
        for nominal in _recurring(terms, first, past):
            if nominal.date() in excluded:
                # Skip the whole date: an rrule may name every minute of an excluded year.
                first = _next_midnight(nominal.date(), excluded)
                break
            yield nominal
        else:
            return


def _next_midnight(day: date, excluded: Collection[date]) -> datetime:
    while day in excluded:
        day += DAY
    return datetime.combine(day, time())


def _recurring(terms: Terms, first: datetime, past: datetime) -> Iterator[datetime]:
    if terms.rrule:
        return nominal_times(recurrence(terms), first=first, until=past)
    return times_of_week(terms.weekly_slots, first, past)


def times_of_week(slots: Iterable[WeeklySlot], first: datetime, past: datetime) -> Iterator[datetime]:
    """Yields the local times (naive) of slots in the order of the week, from `first` until before `past`."""
    times: dict[int, list[time]] = defaultdict(list)
    for slot in slots:
        times[slot.day].append(time(slot.hour, slot.minute))
    day = first.date()
    while day <= past.date():
        for at in times[day.isoweekday() % 7]:
            nominal = datetime.combine(day, at)
            if first <= nominal < past:
                yield nominal
        day += DAY


def _resolved(nominals: Iterable[datetime], zone: Zone) -> Iterator[tuple[datetime, Resolved]]:
    """Resolves local times, given in order, and yields them in the order of their instants."""
    shifted: deque[tuple[datetime, Resolved]] = deque()
    for nominal in nominals:
        found = resolve(nominal, zone)
        if found is None:
            continue
        if found.shift:
            # A later local time may have an earlier instant.
            shifted.append((nominal, found))
            continue
        while shifted and shifted[0][1].instant < found.instant:
            yield shifted.popleft()
        if shifted and shifted[0][1].instant == found.instant:
            shifted.popleft()
        yield nominal, found
    yield from shifted


def _key(rule: ScheduleRule, nominal: datetime) -> str:
    return f"{rule.id}/{nominal.isoformat('/', 'minutes')}"
