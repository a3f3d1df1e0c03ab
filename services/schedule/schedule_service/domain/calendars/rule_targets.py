"""The times at which the rules of a brand want a draft to go out.

A rule names local times; start, end and exclusions are about *their* dates. So the times are chosen first, and then
found on the clock, with the policy of weekly slots: a time that the clocks jump over is shifted forward by the length
of the jump, of a time that they show twice the first counts, a time on a date that does not exist is dropped, and of
two that come to lie at one instant the unshifted one is kept.
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
"""How far a listing reaches unless told otherwise."""

LONGEST_HORIZON = timedelta(days=366)

_LAST_YEAR = LATEST.year - 3


class RuleTarget(NamedTuple):
    """Compares as listings are ordered: by the instant, then by the key."""

    instant: datetime
    """In UTC."""
    key: str
    """The same for ever, wherever a new law moves the instant."""
    offset: timedelta
    shift: timedelta
    rule: ScheduleRule

    @property
    def local(self) -> datetime:
        """What the wall shows at the instant, naive."""
        return (self.instant + self.offset).replace(tzinfo=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """The targets from `start` on and before `end`; of those at `start` the ones with keys behind `behind`."""

    start: datetime
    end: datetime
    behind: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetPage:
    targets: tuple[RuleTarget, ...]
    rest: Span | None
    """Where the next page looks; None: there is none."""
    skipped: tuple[ScheduleRule, ...]
    """In a zone that is no more: nobody can tell their targets."""


def span(*, after: datetime | None, horizon: timedelta | None, now: datetime) -> Span:
    """What a caller asks for who may leave out either."""
    start = now if after is None else after
    if not EARLIEST.year <= start.year <= _LAST_YEAR:
        raise InvalidField("after", f"must be an instant of the years {EARLIEST.year} to {_LAST_YEAR}")
    return Span(start=start, end=start + (HORIZON if horizon is None else horizon))


def page_of(rules: Iterable[ScheduleRule], wanted: Span, *, size: int) -> TargetPage:
    """The first `size` targets of the span; no more of them are computed than are shown, and one."""
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
    """Those of one rule from `start` on and before `end`, in time order and lazily."""
    if not rule.terms.enabled:
        return
    first, past = _walls(rule.terms.time_zone, start, end)
    nominal = local_times(rule.terms, first, past)
    for asked, found in _on_the_clock(nominal, rule.terms.time_zone):
        if found.instant >= end:
            return
        if found.instant >= start:
            yield RuleTarget(found.instant, _key(rule, asked), found.offset, found.shift, rule)


def _walls(zone: Zone, start: datetime, end: datetime) -> tuple[datetime, datetime]:
    """Between these local times (naive) lie all that can come to lie between the instants.

    Where clocks went forward just before `start`, a time from before it may be shifted behind it; where they went back
    just before `end`, they had been further than they are. A jump reaches a day at most.
    """
    first, past = ([(at + zone.offset_at(seen)).replace(tzinfo=None) for seen in (at - DAY, at)] for at in (start, end))
    return min(first), max(past)


def local_times(terms: Terms, first: datetime, past: datetime) -> Iterator[datetime]:
    """The local times (naive) that the rule asks for from `first` on and before `past`."""
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
                # On to the next date at once: an rrule may name every minute of a year that is excluded.
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
    """The local times (naive) of slots in the order of the week, from `first` on and before `past`."""
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


def _on_the_clock(nominal: Iterable[datetime], zone: Zone) -> Iterator[tuple[datetime, Resolved]]:
    """Where the local times, given in order, come to lie, in time order."""
    shifted: deque[tuple[datetime, Resolved]] = deque()
    for asked in nominal:
        found = resolve(asked, zone)
        if found is None:
            continue
        if found.shift:
            # Others that come later by the wall may lie earlier.
            shifted.append((asked, found))
            continue
        while shifted and shifted[0][1].instant < found.instant:
            yield shifted.popleft()
        if shifted and shifted[0][1].instant == found.instant:
            shifted.popleft()
        yield asked, found
    yield from shifted


def _key(rule: ScheduleRule, nominal: datetime) -> str:
    return f"{rule.id}/{nominal.isoformat('/', 'minutes')}"
