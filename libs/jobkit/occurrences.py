"""Computes when a recurring job is due, and the key of each occurrence: pure functions of the row."""

from collections.abc import Iterator
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple

from civil.cron import Cron, Dst, Firing, firings, parse_cron
from civil.zones import Zone, find_zone, in_utc
from jobkit.job import Job


def first_due(
    interval: str, time_zone: str = "UTC", dst: str = Dst.CRON, *, after: datetime, repeat_until: datetime | None = None
) -> datetime | None:
    """Returns the `due_time` and `sleep_until` of a new recurring row, or None if it never occurs.

    Raises ValueError (InvalidCron, UnknownZone) for values that no worker could read.
    """
    calendar = _calendar(interval, time_zone, dst)
    found = next((firing.instant for firing in calendar.firings(after)), None)
    return None if found is None or (repeat_until is not None and found > repeat_until) else found


def require_calendar(interval: str, time_zone: str, dst: str) -> None:
    """Raises ValueError (InvalidCron, UnknownZone) for values that no worker could read."""
    _calendar(interval, time_zone, dst)


def occurrence_key(job: Job) -> str:
    """Returns the key of the job's current occurrence: unique within the job, and the same in every attempt.

    It is the nominal local time of a cron firing, with "/2" for the second pass of an hour that the clocks repeat, or
    else the due time in UTC: of a one-time job, of an `@every`, and of a time at which the expression does not fire.
    """
    due = occurrence_time(job)
    calendar = calendar_of(job)
    if calendar is not None and calendar.cron.every is None:
        firing = next(calendar.firings(due - datetime.resolution), None)
        if firing is not None and firing.instant == due:
            return firing.key
    return f"{due.replace(tzinfo=None).isoformat()}Z"


def occurrence_time(job: Job) -> datetime:
    """Returns the nominal time of the current occurrence, in UTC. Raises ValueError if there is none."""
    due = job.due_time or job.sleep_until
    if due is None:
        raise ValueError("a finished job has no current occurrence")
    if due.tzinfo is None:
        raise ValueError(f"the due time has no zone: {due}")
    return in_utc(due)


class Calendar(NamedTuple):
    """The parsed schedule of a recurring job."""

    cron: Cron
    zone: Zone
    dst: Dst

    def firings(self, after: datetime) -> Iterator[Firing]:
        return firings(self.cron, self.zone, after=after, dst=self.dst)


def calendar_of(job: Job) -> Calendar | None:
    """Returns the schedule of a recurring job, None for a one-time job. Raises ValueError."""
    return _calendar(job.interval, job.time_zone, job.dst) if job.interval else None


@lru_cache(maxsize=4096)
def _calendar(interval: str, time_zone: str, dst: str) -> Calendar:
    cron = parse_cron(interval)
    return Calendar(cron, find_zone(cron.zone_name or time_zone), Dst(dst))
