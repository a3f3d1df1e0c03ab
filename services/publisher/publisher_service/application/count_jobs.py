"""Counts the posts that still have to move, are late, or need a person. Ended posts are too many to count."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from opentelemetry import metrics

from publisher_service.adapters.postgres import counts
from publisher_service.adapters.postgres.counts import Overdue
from servicekit.ops import Number
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database

# A post that starts within this time after its schedule_time is not overdue.
OVERDUE_AFTER = timedelta(minutes=1)

_MOVING = ("READY", "SENDING", "WAITING", "BLOCKED", "UNKNOWN")
_OVERDUE = ("SCHEDULED", "READY")
_LINES = ("IN_LINE", "ACCOUNT_NOT_CONNECTED", "ACCOUNT_ON_HOLD")

_meter = metrics.get_meter(__name__)
_moving = _meter.create_gauge("postflow.post_jobs.moving", description="Post jobs that still have to move, by state")
_attention = _meter.create_gauge(
    "postflow.post_jobs.needs_attention", description="Post jobs whose outcome a person has to find out"
)
_overdue = _meter.create_gauge(
    "postflow.post_jobs.overdue", description="Post jobs that have not started a minute after their time, by state"
)
_age = _meter.create_gauge(
    "postflow.post_jobs.overdue.age", unit="s", description="Time since the oldest overdue post job was due, by state"
)
_lines = _meter.create_gauge(
    "postflow.account_lines",
    description="Accounts with posts in line, by what these wait for",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Figures:
    now: datetime
    moving: Mapping[str, int]
    attention: int
    overdue: Mapping[str, Overdue]
    lines: Mapping[str, int]

    def age(self, state: str) -> float:
        oldest = self.overdue[state].oldest
        return (self.now - oldest).total_seconds() if oldest else 0.0


class CountJobs:
    def __init__(self, database: Database, clock: DatabaseClock) -> None:
        self._database = database
        self._clock = clock
        _show_zeros()

    async def step(self) -> None:
        figures = await self._count()
        _attention.set(figures.attention)
        for state in _MOVING:
            _moving.set(figures.moving.get(state, 0), {"state": state})
        for state in _OVERDUE:
            _overdue.set(figures.overdue[state].jobs, {"state": state})
            _age.set(figures.age(state), {"state": state})
        for reason in _LINES:
            _lines.set(figures.lines.get(reason, 0), {"reason": reason})

    async def numbers(self) -> list[Number]:
        """Returns the figures of the gauges, for the stats of the process."""
        return list(_numbers(await self._count()))

    async def _count(self) -> _Figures:
        async with self._database.read() as connection:
            now = await self._clock.now(connection)
            return _Figures(
                now=now,
                moving=await counts.moving_by_state(connection),
                attention=await counts.needing_attention(connection),
                overdue=await counts.overdue_by_state(connection, before=now - OVERDUE_AFTER),
                lines=await counts.lines_by_reason(connection),
            )


def _show_zeros() -> None:
    """Sets all gauges to zero: an alert on a gauge that does not exist yet never fires."""
    _attention.set(0)
    for state in _MOVING:
        _moving.set(0, {"state": state})
    for state in _OVERDUE:
        _overdue.set(0, {"state": state})
        _age.set(0, {"state": state})
    for reason in _LINES:
        _lines.set(0, {"reason": reason})


def _numbers(figures: _Figures) -> Iterator[Number]:
    for state in _MOVING:
        yield Number(name=f"post_jobs.{state.lower()}", value=figures.moving.get(state, 0))
    yield Number(name="post_jobs.needs_attention", value=figures.attention)
    for state in _OVERDUE:
        yield Number(name=f"post_jobs.overdue.{state.lower()}", value=figures.overdue[state].jobs)
        yield Number(name=f"post_jobs.overdue.age.{state.lower()}", value=figures.age(state), unit="s")
    for reason in _LINES:
        yield Number(name=f"account_lines.{reason.lower()}", value=figures.lines.get(reason, 0))
