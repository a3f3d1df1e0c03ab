"""Dispatching slots to Publisher a little ahead of their time, and repeating their commands until they are answered.

Slots are claimed and committed first, then their commands are sent: the slot's row is the outbox of its commands. If a
command is lost after the commit, it is repeated, because the slot still lacks a durable answer. A command that waits in
the stream, or whose post waits in a line that moves, is not repeated: a backlog makes no copies.
"""

import asyncio
import logging
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from opentelemetry import metrics, trace
from opentelemetry.trace import SpanKind
from sqlalchemy.ext.asyncio import AsyncConnection

from queue_service.adapters.postgres import dispatch, held_up
from queue_service.adapters.postgres.stream import count_losses
from queue_service.application.outstanding import EARLY, Outstanding
from queue_service.domain.account import BEFORE_ALL, AccountKey, DueAccount
from queue_service.domain.command import (
    ANSWERED_DELAY,
    LONGEST_DELAY,
    UNSTORED_DELAY,
    Command,
    DueSlot,
    PlaceInLine,
    last_in_lines,
)
from queue_service.domain.policy import Policy
from queue_service.domain.stream import Room
from servicekit import failpoints
from servicekit.failpoints import failpoint
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.run.histograms import Histogram
from servicekit.run.telemetry import linked_trace
from servicekit.run.zeros import from_zero
from topology import PUBLISH

CLAIMED = failpoints.declare("queue.dispatch.claimed")
PUBLISHED = failpoints.declare("queue.dispatch.published")
EXPIRED = failpoints.declare("queue.dispatch.expired")

# The pause before slots are claimed again that are due, but were locked elsewhere or too many for the stream.
_SOON = timedelta(milliseconds=250)
# The pause between looks at a backlog, for each command in it: 10,000 are looked at every 4 s, which takes 35 ms.
_LOOK_PAUSE = timedelta(microseconds=400)
# Publisher's clock may be behind: it must not find a post of a disabled account in time.
_SURELY_LATE = timedelta(minutes=1)
_PAGE = 500

_log = logging.getLogger(__name__)
_tracer = trace.get_tracer(__name__)
_meter = metrics.get_meter(__name__)
_batches = Histogram(
    "postflow.queue.claim.size",
    scope=__name__,
    description="Publish commands in one claim",
    bounds=[1, 5, 10, 25, 50, 100, 250, 500, 1000],
)
_lateness = Histogram(
    "postflow.queue.dispatch.lateness",
    scope=__name__,
    unit="s",
    description="Lateness of the latest slot in a dispatched batch; 0 if it was dispatched ahead of its time",
    bounds=[0, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60, 600],
)
_repeated = from_zero(
    _meter.create_counter("postflow.queue.commands.repeated", description="Publish commands that were repeated")
)

_expired = _meter.create_counter(
    "postflow.queue.slots.expired", description="Slots of held-up accounts that were too late to be sent"
)


class Commands(Protocol):
    """The stream of commands; see `queue_service.adapters.command_stream`."""

    async def room(self) -> Room: ...

    async def send(self, commands: Sequence[Command]) -> list[Command]: ...


class HandOver:
    def __init__(
        self,
        *,
        database: Database,
        clock: DatabaseClock,
        commands: Commands,
        outstanding: Outstanding,
        policy: Policy,
        wake: asyncio.Event,
    ) -> None:
        """`wake` is set when `dispatch` should run next."""
        self._database = database
        self._clock = clock
        self._commands = commands
        self._outstanding = outstanding
        self._policy = policy
        self._wake = wake
        self._alarm: asyncio.TimerHandle | None = None
        # When the first slot was due, and how often the stream had lost commands.
        self._looked_at: tuple[datetime, int] | None = None
        self._look_again: datetime | None = None
        _repeated.add(0)
        _expired.add(0)

    async def dispatch(self) -> bool:
        """Dispatches a batch of slots that are due within the lead. Returns whether to call again at once."""
        async with self._database.session() as session:
            moment, due = await dispatch.next_due_time(session)
        now = self._clock.shown(moment)
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
        """Repeats commands that are lost, or whose answer is. Returns whether to call again at once."""
        async with self._database.session() as session:
            moment, due, losses = await dispatch.next_repeat_time(session, PUBLISH.name)
        now = self._clock.shown(moment)
        await self._outstanding.save(now=now)
        if due is None or due > now + EARLY or self._has_just_looked(due, losses, now):
            return False
        room = await self._commands.room()
        if not room.size:
            return False
        slots = await self._lost(losses, now)
        self._looked_at, self._look_again = (due, losses), now + self._outstanding.held * _LOOK_PAUSE
        # All that were found: the next look at a long backlog may be seconds away.
        has_sent = False
        while page := _fitting(slots, room, self._policy.batch):
            has_sent |= await self._send_again(page, losses, now)
            sent = set(page)
            slots = [each for each in slots if each not in sent]
            room = await self._commands.room()
        return has_sent

    async def miss_held_up(self) -> None:
        """Hands over the slots of disabled and disconnected accounts that are too late by now: Publisher ends them.

        Dispatch passes over these accounts. Those that are paused wait.
        """
        after: DueAccount | None = BEFORE_ALL
        while after is not None:
            async with self._database.read_session() as session:
                now = await self._clock.now(session.connection)
                before = now - _SURELY_LATE
                accounts, after = await held_up.find_expired(session, after, before=before, limit=_PAGE)
            while accounts and await self._claim_expired(accounts, before, now):
                pass

    async def _claim_expired(self, accounts: Sequence[AccountKey], before: datetime, now: datetime) -> bool:
        """Returns whether there may be more to claim."""
        room = await self._commands.room()
        accounts = [each for each in accounts if each[0] not in room.filled]
        limit = min(room.size, self._policy.batch)
        if not (accounts and limit):
            return False

        async def claim(tx: Transaction) -> tuple[list[Command], int]:
            commands = await held_up.claim_expired(tx, accounts, before=before, now=now, limit=limit)
            return commands, await count_losses(tx, PUBLISH.name) if commands else 0

        commands, losses = await self._database.run(claim)
        if commands:
            await failpoint(EXPIRED)
            _expired.add(len({each.slot_id for each in commands}))
            await self._send(commands, now, losses)
        return bool(commands)

    async def _lost(self, losses: int, now: datetime) -> list[DueSlot]:
        """Returns the slots whose commands have to be repeated now."""
        async with self._database.session() as session:
            near = await dispatch.find_due_repeats(session, until=now + EARLY)
            waiting = [each for each in near if each.is_answered and each.next_emit_at <= now < each.not_after]
            standing = await self._standing(session.connection, waiting, now) if waiting else set[DueSlot]()
        unanswered = [each for each in near if not each.is_answered and now < each.not_after]
        lost = standing | set(await self._outstanding.lost(unanswered, losses=losses, now=now))
        return [each for each in near if each.next_emit_at <= now and (each in lost or each.not_after <= now)]

    async def _standing(self, connection: AsyncConnection, slots: Sequence[DueSlot], now: datetime) -> set[DueSlot]:
        """Returns the answered slots whose line stands still, or has passed them over, and puts off the others."""
        places = await dispatch.find_places(connection, slots)
        in_turn = [each for each in places if each.is_in_turn(now)]
        if in_turn:
            await self._put_off(connection, in_turn, now)
        if standing := {each.account for each in places if not each.moves(now)}:
            await dispatch.advance_lines(connection, standing, now=now)
        return {each.slot for each in places} - {each.slot for each in in_turn}

    @staticmethod
    async def _put_off(connection: AsyncConnection, places: Sequence[PlaceInLine], now: datetime) -> None:
        """Puts off the slots, the last of each line for a short time only: it notices when the line stands still."""
        last = last_in_lines(places)
        others = list({each.slot for each in places} - set(last))
        await dispatch.put_off(connection, last, now=now, longest=ANSWERED_DELAY)
        if others:
            await dispatch.put_off(connection, others, now=now, longest=LONGEST_DELAY)

    async def _send_again(self, slots: Sequence[DueSlot], losses: int, now: datetime) -> bool:
        """Sends the next copies, unless another process does. Returns whether there were any."""

        async def claim_repeats(tx: Transaction) -> tuple[list[Command], set[tuple[str, str]]]:
            return await dispatch.claim_repeats(tx, slots, now=now)

        commands, overdue = await self._database.run(claim_repeats)
        _warn_of(overdue, commands)
        _repeated.add(len(commands))
        await self._send(commands, now, losses)
        return bool(commands)

    def _has_just_looked(self, due: datetime, losses: int, now: datetime) -> bool:
        """Returns whether the backlog was looked at shortly before; the longer it is, the rarer are the looks.

        Slots that have become due since, and before all others, are looked at at once, and so is everything after a
        loss of the stream.
        """
        if self._looked_at is None or self._look_again is None or now >= self._look_again:
            return False
        first, losses_then = self._looked_at
        return due >= first and losses == losses_then

    async def _claim_and_send(self, now: datetime, horizon: datetime) -> bool:
        room = await self._commands.room()
        if not room.size:
            return False

        async def claim(tx: Transaction) -> tuple[list[Command], int]:
            commands = await dispatch.claim(tx, now=now, horizon=horizon, room=room, policy=self._policy)
            return commands, await count_losses(tx, PUBLISH.name) if commands else 0

        commands, losses = await self._database.run(claim)
        if commands:
            await failpoint(CLAIMED)
            _batches.record(len(commands))
            late = now - min(each.schedule_time for each in commands)
            _lateness.record(late.total_seconds())
            await self._send(commands, now, losses)
            await failpoint(PUBLISHED)
        return bool(commands)

    async def _send(self, commands: Sequence[Command], now: datetime, losses: int) -> None:
        origins = (each.traceparent for each in commands if each.traceparent)
        with linked_trace(_tracer, "queue hand over", origins, kind=SpanKind.PRODUCER):
            missing = await self._commands.send(commands)
        self._outstanding.add_stored(missing, losses=losses)
        if missing:
            at = now + UNSTORED_DELAY
            await self._database.run(lambda tx: dispatch.repeat_soon(tx, missing, at=at))

    def _wake_in(self, delay: timedelta) -> None:
        """Wakes the loop after `delay`, because by itself it only runs every second."""
        if self._alarm:
            self._alarm.cancel()
        seconds = min(delay.total_seconds(), 1.0)
        self._alarm = asyncio.get_running_loop().call_later(seconds, self._wake.set)


def _fitting(slots: Sequence[DueSlot], room: Room, most: int) -> list[DueSlot]:
    """Returns the first of the slots whose commands the stream has room for."""
    return [each for each in slots if each.organization_id not in room.filled][: min(room.size, most)]


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
