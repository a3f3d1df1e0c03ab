"""Counts slots by state and organization, accounts that are held up, and what Publisher has not confirmed yet.

A million live slots take a part of a second to count, so they are counted in the background, the more rarely the longer
it takes; `GetStats` shows the last figures.
"""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from opentelemetry import metrics

from queue_service.adapters.postgres import counts
from queue_service.adapters.postgres.counts import Live, Pending
from queue_service.domain.policy import Policy
from queue_service.domain.slot import LIVE, SlotState
from servicekit.ops import Number
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database

# Counting takes at most this share of the time.
_SHARE = 0.01
_REASONS = ("paused", "disconnected", "disabled")

_meter = metrics.get_meter(__name__)
_live = _meter.create_gauge("postflow.queue.slots.live", description="Slots that still have to be sent, by state")
_held_up = _meter.create_gauge(
    "postflow.queue.accounts.held_up",
    description="Accounts with scheduled slots that are not dispatched, by reason",
)
_holds = _meter.create_gauge(
    "postflow.queue.holds.pending", description="Pauses and resumptions that Publisher has not confirmed yet"
)
_take_backs = _meter.create_gauge(
    "postflow.queue.take_backs.pending", description="Slots that were asked back from Publisher without an answer yet"
)


class Stream(Protocol):
    @property
    def outstanding(self) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Figures:
    live: Live
    dispatched: int
    held_up: Mapping[str, int]
    pending: Pending
    estimates: Mapping[str, int]

    @property
    def scheduled(self) -> int:
        return max(self.live.slots - self.dispatched, 0)


class CountSlots:
    def __init__(self, *, database: Database, clock: DatabaseClock, commands: Stream, policy: Policy) -> None:
        self._database = database
        self._clock = clock
        self._commands = commands
        self._policy = policy
        self._figures: _Figures | None = None
        self._again_at = float("-inf")
        self._show(None)

    async def __call__(self) -> None:
        """Counts again, unless the last count took long and was made shortly before."""
        started = _now()
        if started < self._again_at:
            return
        self._figures = await self._count()
        self._again_at = _now() + (_now() - started) / _SHARE
        self._show(self._figures)

    async def numbers(self) -> list[Number]:
        """Returns the figures of the last count, and makes the first one."""
        if self._figures is None:
            await self()
        assert self._figures is not None
        return [Number(name="commands.outstanding", value=self._commands.outstanding), *_numbers(self._figures)]

    async def _count(self) -> _Figures:
        async with self._database.read_session() as session:
            now = await self._clock.now(session)
            return _Figures(
                live=await counts.count_live(session),
                dispatched=await counts.count_dispatched(session, horizon=now + self._policy.lead),
                held_up=await counts.count_held_up(session),
                pending=await counts.count_pending(session),
                estimates=await counts.estimate_by_state(session),
            )

    @staticmethod
    def _show(figures: _Figures | None) -> None:
        """Sets the gauges, to 0 before the first count: an alert on a gauge that does not exist yet never fires."""
        _live.set(figures.scheduled if figures else 0, {"state": "SCHEDULED"})
        _live.set(figures.dispatched if figures else 0, {"state": "DISPATCHED"})
        for reason in _REASONS:
            _held_up.set(figures.held_up[reason] if figures else 0, {"reason": reason})
        _holds.set(figures.pending.holds if figures else 0)
        _take_backs.set(figures.pending.take_backs if figures else 0)


def _numbers(figures: _Figures) -> Iterator[Number]:
    yield Number(name="slots.scheduled", value=figures.scheduled)
    yield Number(name="slots.dispatched", value=figures.dispatched)
    for state in SlotState:
        if state not in LIVE:
            yield Number(name=f"slots.{state.lower()}.estimate", value=figures.estimates.get(state, 0))
    for organization, slots in figures.live.by_organization.items():
        yield Number(name=f"slots.live.{organization}", value=slots)
    for reason in _REASONS:
        yield Number(name=f"accounts.held_up.{reason}", value=figures.held_up[reason])
    yield Number(name="holds.pending", value=figures.pending.holds)
    yield Number(name="take_backs.pending", value=figures.pending.take_backs)


def _now() -> float:
    return asyncio.get_running_loop().time()
