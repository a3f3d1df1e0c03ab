"""Takes commands from the stream and holds them until they are due: far ones by delayed redelivery, near ones here."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial

from google.protobuf.message import DecodeError
from nats.aio.client import Client
from opentelemetry import metrics

from publisher_service.engine.timer import DueTimer
from publisher_service.engine.work import Wish, Work
from publisher_service.wire.commands import read_command
from servicekit.bus.delivery import Delivery
from servicekit.bus.pull import PullLoop
from servicekit.bus.streams import ConsumerSpec, StreamSpec, ensure_stream
from servicekit.clock import Clock
from servicekit.faults import InvalidRequest
from servicekit.pg.clock import SteadyClock
from servicekit.pg.dead_letters import DeadLetters, DeadLettersFull, show_none
from servicekit.run.loops import wait
from servicekit.run.transient import is_transient
from servicekit.run.zeros import from_zero

log = logging.getLogger(__name__)

CONSUMER = "publisher"
"""As which its dead letters are listed."""

# The stream's redelivery is some milliseconds late, and up to a second early after a restart: the end is ours.
_HELD_HERE = timedelta(milliseconds=500)
# A claim takes its milliseconds; the request itself starts at the instant.
CLAIM_AHEAD = timedelta(milliseconds=25)
# Bounds what a clock that has gone wrong can do to a command.
_LONGEST_HOLD = timedelta(minutes=5)
_AWAY = timedelta(seconds=1)
_AT_ONCE = timedelta(milliseconds=1)
_HEARTBEAT = 10.0
# All that the stream gives out at a time (`max_ack_pending`): what is due leaves for a sender or a line at once, so
# that no heap of one account keeps another's command out.
_ROOM = 20_000
_SORTED_AT_ONCE = 200

_meter = metrics.get_meter(__name__)
_held = _meter.create_gauge("postflow.publish.held", description="Commands that this process holds for their instant")
_malformed = from_zero(
    _meter.create_counter("postflow.publish.malformed", description="Commands put into the dead letters")
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
        self._arrived: list[tuple[PullLoop, Delivery]] = []
        self._some = asyncio.Event()
        self._in_hand: set[Work] = set()
        self._waiting: dict[Wish, Work] = {}
        self._pulls = [self._pull(connection, stream, spec) for spec in specs]

    async def run(self, stop: asyncio.Event, due: Callable[[list[Work]], None]) -> None:
        """Calls `due` with the commands whose time has come, until `stop`; gives back the others then."""
        timer: DueTimer[Work] = DueTimer(self._steady, due)
        async with asyncio.TaskGroup() as group:
            for pull in self._pulls:
                group.create_task(pull.run(stop))
            group.create_task(self._sort(timer, stop))
            group.create_task(self._keep_alive(stop))
        # What was still on its way when the pulling ended.
        for pull, delivery in self._arrived:
            await delivery.retry_in(_AT_ONCE)
            pull.finished()
        self._arrived.clear()
        for work in timer.release_all():
            await work.again(_AT_ONCE)

    def _pull(self, connection: Client, stream: StreamSpec, spec: ConsumerSpec) -> PullLoop:
        arrived = self._arrived

        def receive(delivery: Delivery) -> None:
            arrived.append((pull, delivery))
            self._some.set()

        ensure = partial(ensure_stream, connection.jetstream(), stream)
        pull = PullLoop(connection, spec, receive, room=_ROOM, ensure_stream=ensure)
        return pull

    async def _sort(self, timer: DueTimer[Work], stop: asyncio.Event) -> None:
        while not (stop.is_set() and not self._arrived):
            await wait(self._some, 0.25)
            self._some.clear()
            batch = list(self._arrived)
            self._arrived.clear()
            for index, (pull, delivery) in enumerate(batch):
                await self._take(timer, pull, delivery)
                if index % _SORTED_AT_ONCE == 0:
                    await asyncio.sleep(0)  # posts are due meanwhile
            _held.set(len(timer))

    async def _take(self, timer: DueTimer[Work], pull: PullLoop, delivery: Delivery) -> None:
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
        work = Work(command=command, since=self._clock.monotonic(), delivery=delivery, left=partial(self._left, pull))
        held = self._waiting.get(work.wish)
        if held is not None and not held.is_taken:
            # A copy of what waits here: under a backlog these would be most of the work. What is left of it is that
            # somebody waits for an answer.
            held.command = replace(held.command, emission=max(held.command.emission, command.emission))
            await delivery.ack()
            pull.finished()
            return
        self._in_hand.add(work)
        self._waiting[work.wish] = work
        timer.hold(command.schedule_time - CLAIM_AHEAD, work)

    def _left(self, pull: PullLoop, work: Work) -> None:
        self._in_hand.discard(work)
        if self._waiting.get(work.wish) is work:
            del self._waiting[work.wish]
        pull.finished()

    async def _park(self, pull: PullLoop, delivery: Delivery, error: Exception) -> None:
        try:
            await self._dead_letters.add(
                consumer=CONSUMER,
                subject=delivery.subject,
                reason="a publish command cannot be read",
                payload=delivery.payload,
            )
        except Exception as away:
            if not (is_transient(away) or isinstance(away, DeadLettersFull)):
                raise
            log.warning("a publish command can neither be read nor parked: %r", away)
            await delivery.retry_in(_AWAY)
        else:
            log.error("parked a publish command: %s", error)
            _malformed.add(1)
            await delivery.terminate()
        pull.finished()

    async def _keep_alive(self, stop: asyncio.Event) -> None:
        """Tells the stream about what has been in hand for long, so that nobody else gets it meanwhile."""
        while not stop.is_set():
            await wait(stop, _HEARTBEAT)
            old = self._clock.monotonic() - _HEARTBEAT / 2
            for work in [work for work in self._in_hand if work.since < old]:
                if work.delivery is not None:
                    await work.delivery.in_progress()
