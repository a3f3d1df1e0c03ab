"""Time zones, from the pinned `tzdata` package alone: the operating system's data may be a year older or newer.

*Time zone data* is the compiled rules of a zone (TZif): when its clocks change, and by how much. A *tzdata release*,
such as 2026f, is one edition of it for all zones. Governments decide, and every release changes some zones.
"""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cache, lru_cache
from importlib import resources
from io import BytesIO
from itertools import pairwise
from typing import NamedTuple, NoReturn
from zoneinfo import ZoneInfo

import tzdata  # type: ignore[import-untyped]

from civil.tzif import require_compiled_zone

DAY = timedelta(days=1)
ZERO = timedelta()

# Between these a datetime can hold the local time of every zone, with a year to spare on either side.
EARLIEST = datetime(3, 1, 1, tzinfo=UTC)
LATEST = datetime(9998, 1, 1, tzinfo=UTC)

_SECOND = timedelta(seconds=1)
_DAYS_BETWEEN_READINGS = 3

_NOT_A_PLACE = frozenset({"Factory"})
_LONGEST_SHOWN = 64


class UnknownZone(ValueError):
    """A name that is no IANA zone in this release. `suggestions` holds the names that were probably meant, if any."""

    def __init__(self, name: str, suggestions: tuple[str, ...] = ()) -> None:
        shown = name if len(name) <= _LONGEST_SHOWN else f"{name[:_LONGEST_SHOWN]}..."
        hint = f"; did you mean {' or '.join(suggestions)}?" if suggestions else ""
        super().__init__(f"{shown!r} is not an IANA time zone{hint}")
        self.name = name
        self.suggestions = suggestions


class Stretch(NamedTuple):
    """A period with one UTC offset: from `start` (included) to `end` (excluded)."""

    start: datetime
    end: datetime
    offset: timedelta
    before: timedelta

    @property
    def jump(self) -> timedelta:
        """Returns how far the clocks went forward at `start`: positive for a gap, negative for an overlap."""
        return self.offset - self.before


@dataclass(frozen=True, slots=True, kw_only=True)
class Zone:
    """A time zone; see `find_zone`. One name stands for different zones in different releases."""

    name: str
    data: bytes = field(repr=False)
    """The time zone data; empty if this release has no such zone."""
    _info: tzinfo = field(repr=False, compare=False)

    @property
    def is_known(self) -> bool:
        """Returns whether there is data. Without data every question about times raises UnknownZone."""
        return bool(self.data)

    def offset_at(self, instant: datetime) -> timedelta:
        return _offset_at(self._info, instant)

    def stretches(self, start: datetime, end: datetime) -> Iterator[Stretch]:
        """Yields the stretches that cover [start, end) (both in UTC), in order; the first and last are clipped.

        Stretches are also cut at the turn of a year, but never within a day after a jump, which is as far as the effect
        of any known jump reaches.
        """
        for year in range(start.year, end.year + 2):
            for stretch in _stretches(self._info, year):
                if start < end and start < stretch.end:
                    yield stretch if start < stretch.start and stretch.end <= end else _clipped(stretch, start, end)
                if end <= stretch.end:
                    return


@cache
def find_zone(name: str) -> Zone:
    """Returns the zone of that exact IANA name. Raises UnknownZone."""
    if name not in zone_names():
        raise UnknownZone(name, _suggestions(name))
    data = resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).read_bytes()
    return Zone(name=name, data=data, _info=_compiled(name, data))


def stored_zone(name: str) -> Zone:
    """Returns the zone of a name that was valid when it was stored.

    If the current release has dropped the name, the zone has no data, and its `is_known` is False.
    """
    return find_zone(name) if name in zone_names() else Zone(name=name, data=b"", _info=_NoData(name))


def zone_data(name: str) -> bytes:
    """Returns the data to store beside an answer, for `zone_from_data` to repeat it. Raises UnknownZone."""
    return find_zone(name).data


@lru_cache(maxsize=2048)
def zone_from_data(name: str, data: bytes) -> Zone:
    """Returns the zone of stored data, which may be of another release. Raises ValueError if it is no compiled zone."""
    if name in zone_names() and data == zone_data(name):
        return find_zone(name)
    return Zone(name=name, data=data, _info=_compiled(name, data))


@cache
def zone_names() -> frozenset[str]:
    return frozenset(resources.files("tzdata").joinpath("zones").read_text().split()) - _NOT_A_PLACE


def tzdata_version() -> str:
    """Returns the tzdata release that all answers are based on, such as "2026f"."""
    version: str = tzdata.IANA_VERSION
    return version


def in_utc(instant: datetime) -> datetime:
    assert instant.tzinfo is not None, "an instant is an aware datetime"
    return instant.astimezone(UTC)


class _NoData(tzinfo):
    """The zone info of a name without data: every question raises UnknownZone."""

    def __init__(self, name: str) -> None:
        self._name = name

    def utcoffset(self, _instant: datetime | None) -> NoReturn:
        raise UnknownZone(self._name)

    dst = tzname = utcoffset


def _compiled(name: str, data: bytes) -> ZoneInfo:
    require_compiled_zone(data)
    info = ZoneInfo.from_file(BytesIO(data), key=name)
    _changes(info, LATEST.year - 1)  # reads the footer's rule now: an offset of a day or more would raise later
    return info


def _offset_at(info: tzinfo, instant: datetime) -> timedelta:
    offset = instant.astimezone(info).utcoffset()
    assert offset is not None
    return offset


def _clipped(stretch: Stretch, start: datetime, end: datetime) -> Stretch:
    before = stretch.before if start < stretch.start else stretch.offset
    return Stretch(max(stretch.start, start), min(stretch.end, end), stretch.offset, before)


@lru_cache(maxsize=8192)
def _stretches(info: tzinfo, year: int) -> tuple[Stretch, ...]:
    """Returns the stretches from the cut at the turn of this UTC year to the cut at the next."""
    start, end = _cut(info, year), _cut(info, year + 1)
    changes = [change for y in range(start.year, year + 1) for change in _changes(info, y) if start < change[0] < end]
    points = [(start, _offset_at(info, start)), *changes, (end, ZERO)]
    before = [_offset_at(info, start - _SECOND), *(offset for _, offset in points)]
    return tuple(
        Stretch(at, until, offset, earlier)
        for ((at, offset), (until, _)), earlier in zip(pairwise(points), before, strict=False)
    )


def _cut(info: tzinfo, year: int) -> datetime:
    """Returns the turn of the year, or a change within the day before it."""
    turn = datetime(year, 1, 1, tzinfo=UTC)
    if _offset_at(info, turn - DAY) == _offset_at(info, turn):
        return turn
    return next((at for at, _ in _changes(info, year - 1) if turn - DAY < at), turn)


@lru_cache(maxsize=8192)
def _changes(info: tzinfo, year: int) -> tuple[tuple[datetime, timedelta], ...]:
    """Returns the changes of offset within a UTC year, its first instant excluded and the next year's included.

    zoneinfo does not list them, so offsets are read every three days. This is exact as long as no two changes are
    closer; the closest so far are a week apart, and a test checks the distance in every release.
    """
    start, end = datetime(year, 1, 1, tzinfo=UTC), datetime(year + 1, 1, 1, tzinfo=UTC)
    probes = [*(start + DAY * day for day in range(0, 365, _DAYS_BETWEEN_READINGS)), end]
    readings = [(probe, _offset_at(info, probe)) for probe in probes]
    return tuple(
        (_first_instant(info, offset, after=before, until=at), offset)
        for (before, previous), (at, offset) in pairwise(readings)
        if previous != offset
    )


def _first_instant(info: tzinfo, offset: timedelta, *, after: datetime, until: datetime) -> datetime:
    """Returns the second from which the zone has this offset."""
    seconds = range((until - after) // _SECOND)
    return after + _SECOND * bisect_left(seconds, 1, key=lambda n: _offset_at(info, after + _SECOND * n) == offset)


def _suggestions(name: str) -> tuple[str, ...]:
    return _names_by_spelling().get(_spelling(name), ()) if len(name) <= _LONGEST_SHOWN else ()


@cache
def _names_by_spelling() -> dict[str, tuple[str, ...]]:
    """Returns the names by their letters and by those of their last part: people write `new york`, `europe/berlin`."""
    found = defaultdict[str, set[str]](set)
    for name in zone_names():
        found[_spelling(name)].add(name)
        found[_spelling(name.rpartition("/")[2])].add(name)
    return {spelling: tuple(sorted(names)) for spelling, names in found.items()}


def _spelling(name: str) -> str:
    return re.sub(r"[^a-z0-9+-]|-(?!\d)", "", name.casefold())
