"""Takes commands from the stream and holds them until they are due, by delayed redelivery and at the end by a timer."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

from google.protobuf.message import DecodeError
from nats.aio.client import Client
from opentelemetry import metrics

from publisher_service.engine.due_timer import DueTimer
from publisher_service.engine.held_command import CommandKey, HeldCommand
from publisher_service.wire.commands import read_command
from servicekit.bus.delivery import Delivery
from servicekit.bus.pull import PullLoop
from servicekit.bus.streams import ConsumerSpec, StreamSpec, ensure_stream
from servicekit.clock import Clock
from servicekit.failpoints import declare, failpoint
from servicekit.faults import InvalidRequest
from servicekit.pg.clock import SteadyClock
from servicekit.pg.dead_letters import DeadLetters, DeadLettersFull, show_none
from servicekit.run.levels import Level
from servicekit.run.loops import wait
from servicekit.run.transient import is_transient
from servicekit.run.zeros import from_zero

_log = logging.getLogger(__name__)

_TAKEN = declare("publisher.intake.taken")
_PARKED = declare("publisher.intake.parked")

CONSUMER = "publisher"
"""The name under which dead letters of commands are listed."""

# Redelivery is some milliseconds late, and up to a second early after a restart of the server. So the last half second
# is held here.
_HELD_HERE = timedelta(milliseconds=500)
# The claim takes some milliseconds; the request itself is to start at the instant.
_CLAIM_AHEAD = timedelta(milliseconds=25)
# The first instant minus this lead is none that a datetime can hold.
_EARLIEST = datetime.min.replace(tzinfo=UTC) + _CLAIM_AHEAD
# Bounds the damage of a clock that has gone wrong.
_LONGEST_HOLD = timedelta(minutes=5)
_DATABASE_DOWN = timedelta(seconds=1)
_AT_ONCE = timedelta(milliseconds=1)
_HEARTBEAT = 10.0
# All that the stream gives out at a time (`max_ack_pending`). Due commands leave for a sender or a line at once, so a
# backlog of one account cannot keep out the commands of another.
_ROOM = 20_000
_SORTED_AT_ONCE = 200

_meter = metrics.get_meter(__name__)
_held = _meter.create_gauge("postflow.publish.held", description="Commands that this process holds until they are due")
_malformed = from_zero(
    _meter.create_counter(
        "postflow.publish.malformed", description="Commands parked as dead letters because they cannot be read"
    )
)


class CommandIntake:
    def __init__(
        self,
        *,
        connection: Client,
        stream: StreamSpec,
        specs: Sequence[ConsumerSpec],
        clock: Clock,
        steady: SteadyClock,
        dead_letters: DeadLetters,
    ) -> None:
        self._clock = clock
        self._steady = steady
        self._dead_letters = dead_letters
        show_none(CONSUMER)
        self._shown = Level(_held)
        self._arrived: list[tuple[PullLoop, Delivery]] = []
        self._some = asyncio.Event()
        self._unanswered: set[HeldCommand] = set()
        self._by_key: dict[CommandKey, HeldCommand] = {}
        self._pulls = [self._pull(connection, stream, spec) for spec in specs]

    async def run(self, stop: asyncio.Event, due: Callable[[list[HeldCommand]], None]) -> None:
        """Calls `due` with the commands whose time has come, until `stop`; then gives back the others."""
        timer: DueTimer[HeldCommand] = DueTimer(self._steady, due)
        async with asyncio.TaskGroup() as group:
            for pull in self._pulls:
                group.create_task(pull.run(stop))
            group.create_task(self._sort(timer, stop))
            group.create_task(self._keep_alive(stop))
        # Messages that were on their way when the pulling ended.
        for pull, delivery in self._arrived:
            await delivery.retry_in(_AT_ONCE)
            pull.finished()
        self._arrived.clear()
        for held in timer.release_all():
            await held.retry_in(_AT_ONCE)

    def _pull(self, connection: Client, stream: StreamSpec, spec: ConsumerSpec) -> PullLoop:
        arrived = self._arrived

        def receive(delivery: Delivery) -> None:
            arrived.append((pull, delivery))
            self._some.set()

        ensure = partial(ensure_stream, connection.jetstream(), stream)
        pull = PullLoop(connection, spec, receive, room=_ROOM, ensure_stream=ensure)
        return pull

    async def _sort(self, timer: DueTimer[HeldCommand], stop: asyncio.Event) -> None:
        while not (stop.is_set() and not self._arrived):
            await wait(self._some, 0.25)
            self._some.clear()
            batch = list(self._arrived)
            self._arrived.clear()
            if batch:
                await failpoint(_TAKEN)
            for index, (pull, delivery) in enumerate(batch):
                await self._take(timer, pull, delivery)
                if index % _SORTED_AT_ONCE == 0:
                    await asyncio.sleep(0)  # lets the loop send posts that are due meanwhile
            self._shown.set(len(timer))

    async def _take(self, timer: DueTimer[HeldCommand], pull: PullLoop, delivery: Delivery) -> None:
        try:
            command = read_command(delivery.payload)
        except (DecodeError, InvalidRequest) as error:
            await self._park(pull, delivery, error)
            return
        remaining = command.schedule_time - self._steady.now()
        if remaining > 2 * _HELD_HERE:
            await delivery.retry_in(min(remaining - _HELD_HERE, _LONGEST_HOLD))
            pull.finished()
            return
        held = HeldCommand(
            command=command,
            since=self._clock.monotonic(),
            delivery=delivery,
            on_release=partial(self._release, pull),
        )
        first = self._by_key.get(held.key)
        if first is not None and not first.is_being_claimed:
            # A copy of a command that waits here: during a backlog most commands are copies. All that it adds is that
            # Queue waits for an answer.
            first.command = replace(first.command, emission=max(first.command.emission, command.emission))
            await delivery.ack()
            pull.finished()
            return
        self._unanswered.add(held)
        self._by_key[held.key] = held
        timer.hold(max(command.schedule_time, _EARLIEST) - _CLAIM_AHEAD, held)

    def _release(self, pull: PullLoop, held: HeldCommand) -> None:
        self._unanswered.discard(held)
        if self._by_key.get(held.key) is held:
            del self._by_key[held.key]
        pull.finished()

    async def _park(self, pull: PullLoop, delivery: Delivery, error: Exception) -> None:
        try:
            await self._dead_letters.add(
                consumer=CONSUMER,
                subject=delivery.subject,
                reason="a publish command cannot be read",
                payload=delivery.payload,
            )
        except Exception as failure:
            if not (is_transient(failure) or isinstance(failure, DeadLettersFull)):
                raise
            _log.warning("a publish command can neither be read nor parked: %r", failure)
            await delivery.retry_in(_DATABASE_DOWN)
        else:
            _log.error("parked a publish command: %s", error)
            _malformed.add(1)
            await failpoint(_PARKED)
            await delivery.terminate()
        pull.finished()

    async def _keep_alive(self, stop: asyncio.Event) -> None:
        """Extends the ack deadline of commands that stay here for long, so that no other process gets them."""
        while not stop.is_set():
            await wait(stop, _HEARTBEAT)
            old = self._clock.monotonic() - _HEARTBEAT / 2
            for held in [held for held in self._unanswered if held.since < old]:
                if held.delivery is not None:
                    await held.delivery.in_progress()
