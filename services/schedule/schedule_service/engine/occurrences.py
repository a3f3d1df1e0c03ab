"""The occurrences of locked timers: their keys, and until when they may fire."""

from datetime import datetime

from civil.cron import Dst
from civil.zones import Zone, find_zone, tzdata_version
from jobkit.job import Job, Misfire
from schedule_service.adapters.postgres.zone_data import recorded_zone
from schedule_service.domain.timers.occurrence import Occurrence, occurrence_key
from servicekit.pg.database import Database

_UTC = "UTC"


class Occurrences:
    """Reads the current occurrence of a job, with the time zone data that its due time was computed with."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._zones: dict[tuple[str, str], Zone] = {}

    async def of(self, job: Job) -> Occurrence:
        assert job.due_time is not None, "a locked job has an occurrence"
        # A timer that fires once needs no zone, even if its row names one.
        zone = await self._zone(job.data["tzdata_version"], job.time_zone if job.interval else _UTC)
        key = occurrence_key(job.interval, zone, Dst(job.dst), job.due_time)
        # With new time zone data an occurrence that has fired already may come due a second time.
        has_fired = key == job.data["last_occurrence_key"]
        return Occurrence(
            due_time=job.due_time,
            key=None if has_fired else key,
            not_after=_not_after(job),
            traceparent=job.data["traceparent"],
        )

    async def _zone(self, release: str, time_zone: str) -> Zone:
        if release == tzdata_version() or time_zone == _UTC:
            return find_zone(time_zone)
        if (release, time_zone) not in self._zones:
            async with self._database.statement() as connection:
                self._zones[release, time_zone] = await recorded_zone(connection, release, time_zone)
        return self._zones[release, time_zone]


def _not_after(job: Job) -> datetime | None:
    """Returns the latest time at which a SKIP timer may fire.

    jobkit checks this before a first attempt only: an earlier worker may have died with the timer locked, or have
    stalled.
    """
    if job.misfire != Misfire.SKIP or job.due_time is None or job.misfire_after is None:
        return None
    return job.due_time + job.misfire_after
