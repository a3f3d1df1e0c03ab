"""Counts the posts that still have to move, are late, or need a person. Ended posts are too many to count."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from opentelemetry import metrics

from publisher_service.adapters.postgres import counts
from publisher_service.adapters.postgres.counts import Moving, Overdue
from publisher_service.adapters.postgres.credentials import count_expiring
from publisher_service.adapters.postgres.jobs import LINE_LABELS
from publisher_service.domain.hold import Scope
from servicekit.clock import Clock
from servicekit.ops import Number
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database

# However many posts there are, counting them uses no more than this share of a core; but an operator sees what was so
# not long ago.
_SHARE = 0.005
_LONGEST_REST = 300.0
# A post that starts within this time after its schedule_time is not overdue.
OVERDUE_AFTER = timedelta(minutes=1)

_MOVING = ("READY", "SENDING", "WAITING", "BLOCKED", "UNKNOWN")
_OVERDUE = ("SCHEDULED", "READY")
_LINES = LINE_LABELS
_PARKED = ("DAILY_CAP", "PROVIDER_QUOTA", "SPACING")

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
_holds = _meter.create_gauge("postflow.holds", description="Holds that are in force, by scope")
_on_hold = _meter.create_gauge(
    "postflow.post_jobs.on_hold", description="Due post jobs that a hold keeps, by its scope"
)
_lag = _meter.create_gauge(
    "postflow.hold_releases.lag", unit="s", description="Time since posts of an ended hold were to be freed"
)

_parked = _meter.create_gauge(
    "postflow.post_jobs.parked", description="Post jobs that wait for a limit of their account, by the limit"
)
_expiring = _meter.create_gauge(
    "postflow.publish.accounts_expiring",
    description="Accounts that soon can post no more unless a person connects them",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Figures:
    now: datetime
    moving: Moving
    attention: int
    overdue: Mapping[str, Overdue]
    lines: Mapping[str, int]
    holds: Mapping[str, int]
    next_release: datetime | None
    parked: Mapping[str, int]
    expiring: int

    @property
    def release_lag(self) -> float:
        return max((self.now - self.next_release).total_seconds(), 0.0) if self.next_release else 0.0

    def age(self, state: str) -> float:
        oldest = self.overdue[state].oldest
        return (self.now - oldest).total_seconds() if oldest else 0.0


class CountJobs:
    def __init__(self, database: Database, clock: DatabaseClock, system: Clock) -> None:
        self._database = database
        self._clock = clock
        self._system = system
        self._rest_end = system.monotonic()
        _show_zeros()

    async def step(self) -> None:
        began = self._system.monotonic()
        if began < self._rest_end:
            return
        figures = await self._count()
        self._rest_end = began + min((self._system.monotonic() - began) / _SHARE, _LONGEST_REST)
        _attention.set(figures.attention)
        for state in _MOVING:
            _moving.set(figures.moving.by_state.get(state, 0), {"state": state})
        for scope in Scope:
            _holds.set(figures.holds.get(scope, 0), {"scope": scope})
            _on_hold.set(figures.moving.by_reason.get(f"{scope}_ON_HOLD", 0), {"scope": scope})
        _lag.set(figures.release_lag)
        for state in _OVERDUE:
            _overdue.set(figures.overdue[state].jobs, {"state": state})
            _age.set(figures.age(state), {"state": state})
        for reason in _LINES:
            _lines.set(figures.lines.get(reason, 0), {"reason": reason})
        for reason in _PARKED:
            _parked.set(figures.parked.get(reason, 0), {"reason": reason})
        _expiring.set(figures.expiring)

    async def numbers(self) -> list[Number]:
        """Returns the figures of the gauges, for the stats of the process."""
        return list(_numbers(await self._count()))

    async def _count(self) -> _Figures:
        async with self._database.read() as connection:
            now = await self._clock.now(connection)
            return _Figures(
                now=now,
                moving=await counts.moving(connection),
                attention=await counts.needing_attention(connection),
                overdue=await counts.overdue_by_state(connection, before=now - OVERDUE_AFTER),
                lines=await counts.lines_by_reason(connection),
                holds=await counts.holds_by_scope(connection),
                next_release=await counts.next_release(connection),
                parked=await counts.parked_by_reason(connection),
                expiring=await count_expiring(connection, most=counts.COUNTED_AT_MOST),
            )


def _show_zeros() -> None:
    """Sets all gauges to zero: an alert on a gauge that does not exist yet never fires."""
    _attention.set(0)
    for state in _MOVING:
        _moving.set(0, {"state": state})
    for scope in Scope:
        _holds.set(0, {"scope": scope})
        _on_hold.set(0, {"scope": scope})
    _lag.set(0)
    _expiring.set(0)
    for state in _OVERDUE:
        _overdue.set(0, {"state": state})
        _age.set(0, {"state": state})
    for reason in _LINES:
        _lines.set(0, {"reason": reason})
    for reason in _PARKED:
        _parked.set(0, {"reason": reason})


def _numbers(figures: _Figures) -> Iterator[Number]:
    for state in _MOVING:
        yield Number(name=f"post_jobs.{state.lower()}", value=figures.moving.by_state.get(state, 0))
    for scope in Scope:
        yield Number(name=f"holds.{scope.lower()}", value=figures.holds.get(scope, 0))
        on_hold = figures.moving.by_reason.get(f"{scope}_ON_HOLD", 0)
        yield Number(name=f"post_jobs.on_hold.{scope.lower()}", value=on_hold)
    yield Number(name="hold_releases.lag", value=figures.release_lag, unit="s")
    yield Number(name="post_jobs.needs_attention", value=figures.attention)
    for state in _OVERDUE:
        yield Number(name=f"post_jobs.overdue.{state.lower()}", value=figures.overdue[state].jobs)
        yield Number(name=f"post_jobs.overdue.age.{state.lower()}", value=figures.age(state), unit="s")
    for reason in _LINES:
        yield Number(name=f"account_lines.{reason.lower()}", value=figures.lines.get(reason, 0))
    for reason in _PARKED:
        yield Number(name=f"post_jobs.parked.{reason.lower()}", value=figures.parked.get(reason, 0))
    yield Number(name="accounts.expiring", value=figures.expiring)
