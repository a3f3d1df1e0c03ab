"""The search for the times of weekly slots. Queue knows which of them are taken."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice

from civil.weekly import Occurrence, occurrences
from civil.zones import EARLIEST, LATEST
from schedule_service.domain.calendars.account_schedule import Timetable
from servicekit.faults import InvalidField

NOTICE = timedelta(seconds=60)
"""The least time from now to a slot that can be allocated."""

HORIZON = timedelta(days=730)
"""The longest period of a search."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """A search for the first `count` times at or after `start` and before `end`, of a category or, if it is empty, of
    none, everywhere or only inside the send window."""

    start: datetime
    end: datetime
    count: int
    category_id: str | None = None  # None: of any category
    inside_window_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotTimes:
    times: tuple[Occurrence, ...]
    searched_until: datetime
    """How far the search went: no time lies between the last one and this; equal to it if `count` was reached."""


def search(
    *,
    after: datetime | None,
    before: datetime | None,
    count: int,
    category_id: str | None = None,
    inside_window_only: bool = False,
    now: datetime,
) -> Search:
    """Returns the search between the given ends; by default from now + the notice, as far as a search reaches."""
    start = now + NOTICE if after is None else after
    require_in_reach(start, "after")
    horizon = start + HORIZON
    end = horizon if before is None else min(before, horizon)
    if end <= start:
        begin = "`after`" if after else f"now + {NOTICE.seconds} s, where a search without `after` begins"
        raise InvalidField("before", f"must be later than {begin}")
    return Search(start=start, end=end, count=count, category_id=category_id, inside_window_only=inside_window_only)


def require_in_reach(instant: datetime, field: str) -> None:
    """Raises InvalidField near the ends of the calendar, where a search would not fit."""
    if not EARLIEST <= instant <= LATEST - HORIZON:
        raise InvalidField(field, f"must be an instant of the years {EARLIEST.year} to {LATEST.year - 3}")


def slot_times(timetable: Timetable, wanted: Search) -> SlotTimes:
    slots = timetable.slots_of(wanted.category_id) if timetable.enabled else ()
    after, until = _just_before(wanted.start), _just_before(wanted.end)
    window = timetable.send_window if wanted.inside_window_only else None
    times = tuple(islice(occurrences(slots, timetable.zone, after=after, until=until, within=window), wanted.count))
    is_full = len(times) == wanted.count
    return SlotTimes(times=times, searched_until=times[-1].instant if is_full else wanted.end)


def _just_before(instant: datetime) -> datetime:
    return instant - timedelta.resolution
