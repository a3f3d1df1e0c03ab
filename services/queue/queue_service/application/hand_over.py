"""Dispatching slots to Publisher a little ahead of their time, and repeating their commands until they are answered.

Slots are claimed and committed first, then their commands are sent: the slot's row is the outbox of its commands. If a
command is lost after the commit, it is repeated, because the slot still lacks a durable answer.
"""

import asyncio
import logging
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from opentelemetry import metrics, trace
from opentelemetry.trace import SpanKind

from queue_service.adapters.postgres import dispatch
from queue_service.domain.command import UNSTORED_DELAY, Command
from queue_service.domain.policy import Policy
from queue_service.domain.stream import Room
from servicekit import failpoints
from servicekit.failpoints import failpoint
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.run.telemetry import linked_trace
from servicekit.run.zeros import from_zero

CLAIMED = failpoints.declare("queue.dispatch.claimed")
PUBLISHED = failpoints.declare("queue.dispatch.published")

# The pause before slots are claimed again that are due, but were locked elsewhere or too many for the stream.
_SOON = timedelta(milliseconds=250)

_log = logging.getLogger(__name__)
_tracer = trace.get_tracer(__name__)
_meter = metrics.get_meter(__name__)
_batches = _meter.create_histogram(
    "postflow.queue.claim.size",
    description="Publish commands in one claim",
    explicit_bucket_boundaries_advisory=[1, 5, 10, 25, 50, 100, 250, 500, 1000],
)
_lateness = _meter.create_histogram(
    "postflow.queue.dispatch.lateness",
    unit="s",
    description="Lateness of the latest slot in a dispatched batch; 0 if it was dispatched ahead of its time",
    explicit_bucket_boundaries_advisory=[0, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60, 600],
)
_repeated = from_zero(
    _meter.create_counter("postflow.queue.commands.repeated", description="Publish commands that were repeated")
)


class Commands(Protocol):
    """The stream of commands; see `queue_service.adapters.command_stream`."""

    async def room(self) -> Room: ...

    async def send(self, commands: Sequence[Command]) -> list[Command]: ...


class HandOver:
    def __init__(
        self, *, database: Database, clock: DatabaseClock, commands: Commands, policy: Policy, wake: asyncio.Event
    ) -> None:
        """`wake` is set when `dispatch` should run next."""
        self._database = database
        self._clock = clock
        self._commands = commands
        self._policy = policy
        self._wake = wake
        self._alarm: asyncio.TimerHandle | None = None
        _repeated.add(0)

    async def dispatch(self) -> bool:
        """Dispatches a batch of slots that are due within the lead. Returns whether to call again at once."""
        async with self._database.statement() as connection:
            now = await self._clock.now(connection)
            due = await dispatch.next_due_time(connection)
        horizon = now + self._policy.lead
        if due is None:
            return False
        if due <= horizon:
            if await self._claim_and_send(now, horizon):
                return True
            due = horizon + _SOON
        self._wake_in(due - horizon)
        return False

    async def repeat(self) -> bool:
        """Repeats a batch of commands whose answer is overdue. Returns whether to call again at once."""
        async with self._database.statement() as connection:
            now = await self._clock.now(connection)
            due = await dispatch.next_repeat_time(connection)
        if due is None or due > now:
            return False
        room = await self._commands.room()
        if not room.size:
            return False

        async def claim_repeats(tx: Transaction) -> tuple[list[Command], set[tuple[str, str]]]:
            return await dispatch.claim_repeats(tx.connection, now=now, room=room, policy=self._policy)

        commands, overdue = await self._database.run(claim_repeats)
        _warn_of(overdue, commands)
        _repeated.add(len(commands))
        await self._send(commands, now)
        return bool(commands)

    async def _claim_and_send(self, now: datetime, horizon: datetime) -> bool:
        room = await self._commands.room()
        if not room.size:
            return False

        async def claim(tx: Transaction) -> list[Command]:
            return await dispatch.claim(tx.connection, now=now, horizon=horizon, room=room, policy=self._policy)

        commands = await self._database.run(claim)
        if commands:
            await failpoint(CLAIMED)
            _batches.record(len(commands))
            late = now - min(each.schedule_time for each in commands)
            _lateness.record(max(late.total_seconds(), 0.0))
            await self._send(commands, now)
            await failpoint(PUBLISHED)
        return bool(commands)

    async def _send(self, commands: Sequence[Command], now: datetime) -> None:
        origins = (each.traceparent for each in commands if each.traceparent)
        with linked_trace(_tracer, "queue hand over", origins, kind=SpanKind.PRODUCER):
            missing = await self._commands.send(commands)
        if missing:
            at = now + UNSTORED_DELAY
            await self._database.run(lambda tx: dispatch.repeat_soon(tx.connection, missing, at=at))

    def _wake_in(self, delay: timedelta) -> None:
        """Wakes the loop after `delay`, because by itself it only runs every second."""
        if self._alarm:
            self._alarm.cancel()
        seconds = min(delay.total_seconds(), 1.0)
        self._alarm = asyncio.get_running_loop().call_later(seconds, self._wake.set)


def _warn_of(overdue: Collection[tuple[str, str]], commands: Sequence[Command]) -> None:
    """Logs slots that have just become overdue; each slot is logged once."""
    slots = {(each.organization_id, each.slot_id): each for each in commands}
    for key in overdue:
        slot = slots[key]
        _log.warning(
            "slot %s of account %s of %s is overdue: its latest time was %s, and Publisher has not reported its end",
            slot.slot_id,
            slot.social_account_id,
            slot.organization_id,
            slot.not_after,
        )
