"""The SQL of due timers: jobkit's store of them, and one statement that writes the outcome of a batch."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from civil.zones import tzdata_version
from jobkit.job import Job, JobUpdate, Lock
from jobkit.stores.columns import SqlColumns
from jobkit.stores.sql import SqlStore
from schedule_service.domain.timers.occurrence import Fired, Occurrence
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database

_COLUMNS = SqlColumns(
    id="job_id",
    interval="cron",
    dst="dst_policy",
    misfire="misfire_policy",
    misfire_after="skip_after",
    pace="catch_up_interval",
    last_error=None,
    locked_by=None,
    data=("organization_id", "id", "last_occurrence_key", "tzdata_version", "traceparent"),
)

_DEALT_EVERY = 4
_POOL = 10_000
_DEAL = text(f"""
    select job_id from (
        select job_id, sleep_until, row_number() over (
            partition by organization_id order by sleep_until, job_id
        ) as turn
        from (
            select job_id, organization_id, sleep_until from timer
            where sleep_until <= :now order by sleep_until, job_id limit {_POOL}
        ) as pool
    ) as dealt
    where turn <= :limit
    order by turn, sleep_until, job_id limit :limit
""")

# The limit equals the number of changes. It makes the planner expect one row, and look each timer up by its key.
_SETTLE = text("""
    update timer set
        due_time = c.due_time, sleep_until = c.sleep_until, attempts = c.attempts, finish_time = c.finish_time,
        fence = c.fence + 1,
        fire_count = timer.fire_count + (c.occurrence_key is not null)::int,
        last_fire_time = case when c.occurrence_key is null then timer.last_fire_time else :now end,
        last_occurrence_key = coalesce(c.occurrence_key, timer.last_occurrence_key),
        tzdata_version = case when timer.due_time is distinct from c.due_time
            then :tzdata_version else timer.tzdata_version end
    from (
        select * from unnest(cast(:ids as bigint[]), cast(:fences as bigint[]), cast(:keys as text[]),
            cast(:due_times as timestamptz[]), cast(:sleep_untils as timestamptz[]), cast(:attempts as integer[]),
            cast(:finish_times as timestamptz[])) with ordinality
            as one (job_id, fence, occurrence_key, due_time, sleep_until, attempts, finish_time, place)
        limit :count
    ) as c
    where timer.job_id = c.job_id and timer.fence = c.fence
    returning c.place, timer.organization_id, timer.id, timer.topic, timer.cron, timer.time_zone,
        case when c.occurrence_key is not null then timer.payload end as payload
""")
_REMOVE = text("""
    delete from timer using (
        select * from unnest(cast(:ids as bigint[]), cast(:fences as bigint[])) with ordinality
            as one (job_id, fence, place)
        limit :count
    ) as c
    where timer.job_id = c.job_id and timer.fence = c.fence
    returning c.place, timer.organization_id, timer.id, timer.topic, timer.payload
""")


@dataclass(frozen=True, slots=True, kw_only=True)
class SettledBatch:
    """The timers that were written: those whose locks still held."""

    locks: frozenset[Lock]
    fired: list[Fired]
    zones: frozenset[str]
    """Zones in which the next times of recurring timers were computed."""
    skipped: int
    """The number of occurrences that did not fire because they were too late."""


class DueTimers:
    """Locks the timers that have waited longest, and shares full batches between organizations.

    While batches are full, every fourth one takes turns among the organizations of the oldest due timers. An
    organization with few timers therefore does not wait for the thousands of another, and the other three batches cost
    no more than usual.
    """

    def __init__(self, database: Database, clock: DatabaseClock) -> None:
        self._database = database
        self._clock = clock
        self._oldest = timer_jobs(database, clock)
        self._full_batches = 0

    async def lock_next(self, now: datetime, lock_until: datetime, limit: int) -> list[Job]:
        is_dealt = self._full_batches % _DEALT_EVERY == 1
        jobs = await (await self._dealt(now, limit) if is_dealt else self._oldest).lock_next(now, lock_until, limit)
        self._full_batches = self._full_batches + 1 if len(jobs) == limit else 0
        return jobs

    async def _dealt(self, now: datetime, limit: int) -> SqlStore:
        async with self._database.statement() as connection:
            dealt = await connection.execute(_DEAL, {"now": now, "limit": limit})
            return timer_jobs(self._database, self._clock, only=dealt.scalars().all())


def timer_jobs(database: Database, clock: DatabaseClock, *, only: Sequence[int] | None = None) -> SqlStore:
    """Returns jobkit's store of all timers, or only of these."""
    condition = "true" if only is None else "job_id = any(cast(:only as bigint[]))"
    parameters = {} if only is None else {"only": only}
    return SqlStore(
        database.engine, "timer", columns=_COLUMNS, condition=condition, parameters=parameters, clock=clock.now
    )


async def settle_timers(
    connection: AsyncConnection, changes: Sequence[tuple[Lock, JobUpdate, Occurrence | None]], *, now: datetime
) -> SettledBatch:
    """Writes when the timers fire next, and fires the occurrences that have a key and are not too late."""
    locks = [lock for lock, _, _ in changes]
    occurrences = [each for _, _, each in changes]
    updates = [update for _, update, _ in changes]
    in_time = _in_time(occurrences, now)
    rows = await connection.execute(
        _SETTLE,
        {
            **_keys(locks),
            "keys": [each.key if each else None for each in in_time],
            "due_times": [update.due_time for update in updates],
            "sleep_untils": [update.sleep_until for update in updates],
            "attempts": [update.attempts for update in updates],
            "finish_times": [update.finish_time for update in updates],
            "now": now,
            "tzdata_version": tzdata_version(),
        },
    )
    written = rows.all()
    return SettledBatch(
        locks=_held(locks, written),
        fired=_fired(in_time, written, now),
        # A timer without a next time has finished, or is faulty: its zone may not exist.
        zones=frozenset(row.time_zone for row in written if row.cron and updates[row.place - 1].sleep_until),
        skipped=_skipped(occurrences, in_time, written),
    )


async def remove_timers(
    connection: AsyncConnection, removals: Sequence[tuple[Lock, Occurrence | None]], *, now: datetime
) -> SettledBatch:
    """Deletes the timers, and fires the occurrences that have a key and are not too late."""
    locks = [lock for lock, _ in removals]
    occurrences = [each for _, each in removals]
    in_time = _in_time(occurrences, now)
    written = (await connection.execute(_REMOVE, _keys(locks))).all()
    return SettledBatch(
        locks=_held(locks, written),
        fired=_fired(in_time, written, now),
        zones=frozenset(),
        skipped=_skipped(occurrences, in_time, written),
    )


def _in_time(occurrences: Sequence[Occurrence | None], now: datetime) -> list[Occurrence | None]:
    return [None if each and each.is_too_late(now) else each for each in occurrences]


def _skipped(
    occurrences: Sequence[Occurrence | None], in_time: Sequence[Occurrence | None], written: Sequence[Row[Any]]
) -> int:
    return sum(occurrences[row.place - 1] is not in_time[row.place - 1] for row in written)


def _keys(locks: Sequence[Lock]) -> dict[str, object]:
    return {"ids": [lock.id for lock in locks], "fences": [lock.fence for lock in locks], "count": len(locks)}


def _held(locks: Sequence[Lock], written: Sequence[Row[Any]]) -> frozenset[Lock]:
    return frozenset(locks[row.place - 1] for row in written)


def _fired(occurrences: Sequence[Occurrence | None], written: Sequence[Row[Any]], now: datetime) -> list[Fired]:
    """Returns the firings in the order of the locks, which is that of the due times."""
    return [
        Fired(
            organization_id=row.organization_id,
            timer_id=row.id,
            topic=row.topic,
            payload=row.payload,
            occurrence_key=occurrence.key,
            due_time=occurrence.due_time,
            fire_time=now,
        )
        for row in sorted(written, key=lambda row: int(row.place))
        if (occurrence := occurrences[row.place - 1]) and occurrence.key is not None
    ]
