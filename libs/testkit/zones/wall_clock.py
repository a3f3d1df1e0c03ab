"""Reads the wall clock of every zone straight from tzdata, sharing no code with civil or zoneinfo.

Minutes and seconds count from 1970; wall-clock times count as if the clock showed UTC.
"""

import calendar
import re
import struct
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import cache
from importlib import resources
from itertools import pairwise
from typing import NamedTuple

from hypothesis import strategies as st

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY = 1440
WEEK = 7 * DAY
_LAST_YEAR = 2100


class Change(NamedTuple):
    """A change of offset; both offsets are in seconds, the instant in seconds since 1970."""

    at: int
    before: int
    after: int


class WallClock:
    """The clock of one zone."""

    def __init__(self, compiled: bytes) -> None:
        listed, footer = _read(compiled)
        ruled = _changes_by_rule(footer, since=listed[-1].at, offset=listed[-1].after)
        self.changes = [change for change in (*listed, *ruled) if change.before != change.after]
        self._at = [change.at for change in self.changes]
        self._offsets = [listed[0].before, *(change.after for change in self.changes)]

    def wall(self, minute: int) -> int:
        """Returns the wall-clock minute at that minute of UTC."""
        return minute + self._offsets[bisect_right(self._at, minute * 60)] // 60

    def walls(self, minutes: range) -> list[int]:
        """Returns `wall` of each minute, computed for all minutes between two changes at a time."""
        shown: list[int] = []
        at = minutes.start
        while at < minutes.stop:
            past = bisect_right(self._at, at * 60)
            # A minute in the middle of which clocks change still shows the former offset.
            end = min(-(-self._at[past] // 60), minutes.stop) if past < len(self._at) else minutes.stop
            offset = self._offsets[past] // 60
            shown += range(at + offset, end + offset)
            at = end
        return shown


class Shown(NamedTuple):
    """One occurrence of a weekly time: the minute of UTC, the wall-clock time then, and the requested one."""

    minute: int
    wall: int
    nominal: int


@cache
def clock(name: str) -> WallClock:
    return WallClock(_compiled(name))


@cache
def distinct_zones() -> tuple[str, ...]:
    """Returns one name for each set of identical zones."""
    return tuple(sorted({_compiled(name): name for name in sorted(_names(), reverse=True)}.values()))


def seconds(year: int) -> int:
    return int((datetime(year, 1, 1, tzinfo=UTC) - EPOCH).total_seconds())


def instant_of(minute: int) -> datetime:
    return EPOCH + timedelta(minutes=minute)


def weekly_times(wanted: Collection[int], zone: WallClock, after: int, until: int) -> list[Shown]:
    """Returns when those minutes of the week (since Sunday) occur, later than `after` and up to `until`.

    Applies the policy in a walk over every minute. The walk is 30 hours longer at both ends, because a jump can span a
    day.
    """
    walk = range(after - 30 * 60, until + 30 * 60)
    walls = zone.walls(walk)
    first_shown = first_minutes(walk, walls)
    dates = {wall // DAY for wall in first_shown}
    jumped_over = {
        skipped: later - earlier - 1
        for earlier, later in pairwise(walls)
        if later > earlier + 1
        for skipped in range(earlier + 1, later)
        if skipped not in first_shown
    }
    found: dict[int, Shown] = {}
    for skipped, length in jumped_over.items():
        if (skipped + 4 * DAY) % WEEK in wanted and skipped // DAY in dates:
            minute = first_shown[skipped + length]
            found[minute] = Shown(minute, skipped + length, skipped)
    for wall, minute in first_shown.items():
        if (wall + 4 * DAY) % WEEK in wanted:
            found[minute] = Shown(minute, wall, wall)
    return [found[minute] for minute in sorted(found) if after < minute <= until]


def first_minutes(walk: range, walls: Sequence[int]) -> dict[int, int]:
    """Maps each wall-clock minute to the first minute of the walk that shows it."""
    return dict(zip(reversed(walls), reversed(walk), strict=True))


def changes_by_kind(first_year: int, last_year: int) -> dict[Change, list[str]]:
    """Groups the zones by change: those with equal offsets before and after the same instant behave alike around it."""
    kinds = defaultdict[Change, list[str]](list)
    for name in distinct_zones():
        for change in clock(name).changes:
            if seconds(first_year) <= change.at < seconds(last_year + 1):
                kinds[change].append(name)
    return kinds


@st.composite
def moments(draw: st.DrawFn) -> tuple[str, int]:
    """Draws a zone and a minute, half of the time near one of its changes."""
    name = draw(st.sampled_from(distinct_zones()))
    near = [change.at // 60 for change in clock(name).changes if seconds(1973) <= change.at < seconds(2037)]
    anywhere = st.integers(seconds(1973) // 60, seconds(2037) // 60)
    if not near:
        return name, draw(anywhere)
    return name, draw(anywhere | st.builds(int.__add__, st.sampled_from(near), st.integers(-3 * DAY, 2 * DAY)))


def _names() -> list[str]:
    names = resources.files("tzdata").joinpath("zones").read_text().split()
    return [name for name in names if name != "Factory"]


def _read(compiled: bytes) -> tuple[list[Change], str]:
    """Returns the changes that a compiled zone lists, after one for the beginning of time, and its rule (RFC 9636)."""

    def counts(at: int) -> tuple[int, ...]:
        assert compiled[at : at + 4] == b"TZif"
        return struct.unpack_from(">6l", compiled, at + 20)

    utc, standard, leaps, changes, types, letters = counts(0)
    header = 44 + changes * 5 + types * 6 + letters + leaps * 8 + standard + utc
    utc, standard, leaps, changes, types, letters = counts(header)
    body = header + 44
    kinds = body + changes * 9
    offsets = [int(struct.unpack_from(">l", compiled, kinds + 6 * n)[0]) for n in range(types)]
    instants = [-(2**60), *struct.unpack_from(f">{changes}q", compiled, body)]
    after = [offsets[0], *(offsets[kind] for kind in compiled[body + changes * 8 : kinds])]
    before = [offsets[0], *after[:-1]]
    footer = compiled[kinds + types * 6 + letters + leaps * 12 + standard + utc :].decode().strip()
    return [Change(*change) for change in zip(instants, before, after, strict=True)], footer


def _changes_by_rule(footer: str, since: int, offset: int) -> Iterator[Change]:
    """Yields the changes of a rule such as `<-02>2<-01>,M3.5.0/-1,M10.5.0/0`: two offsets, two local times."""
    name, clock_time = r"(?:<[^>]+>|[A-Za-z]+)", r"[+-]?\d+(?::\d+)?"
    rule = re.fullmatch(
        rf"{name}({clock_time}){name}({clock_time})?,M([\d.]+)(?:/({clock_time}))?,M([\d.]+)(?:/({clock_time}))?",
        footer,
    )
    if rule is None:
        assert "," not in footer
        return
    west, west_in_summer, begins, begins_at, ends, ends_at = rule.groups()
    standard = -_clock_seconds(west)
    summer = -_clock_seconds(west_in_summer) if west_in_summer else standard + 3600
    for year in range(1970, _LAST_YEAR + 1):
        turns = [
            Change(_ruled_day(year, begins) + _clock_seconds(begins_at or "2") - standard, standard, summer),
            Change(_ruled_day(year, ends) + _clock_seconds(ends_at or "2") - summer, summer, standard),
        ]
        for change in sorted(turns):
            if change.at > since and change.before == offset:
                yield change
                offset = change.after


def _ruled_day(year: int, rule: str) -> int:
    """Returns the second at which the day month.week.weekday starts in UTC; week 5 is the last."""
    month, week, weekday = map(int, rule.split("."))
    days = [day for day in calendar.Calendar(6).itermonthdates(year, month) if day.month == month]
    chosen = [day for day in days if day.isoweekday() % 7 == weekday]
    return (chosen[min(week, len(chosen)) - 1] - date(1970, 1, 1)).days * 86_400


def _clock_seconds(text: str) -> int:
    hours, _, minutes = text.lstrip("+-").partition(":")
    return (int(hours) * 3600 + int(minutes or 0) * 60) * (-1 if text.startswith("-") else 1)


def _compiled(name: str) -> bytes:
    return resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).read_bytes()
