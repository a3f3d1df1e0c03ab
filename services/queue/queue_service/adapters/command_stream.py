"""The stream of publish commands: sends them, checks how many more fit, and notices when any were lost."""

import asyncio
import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from enum import StrEnum

from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.api import StreamInfo
from nats.js.errors import NotFoundError
from opentelemetry import metrics

from queue_service.domain.command import Command, SentCommand
from queue_service.domain.stream import NO_ROOM, Holding, Room, StreamMark
from queue_service.wire.commands import publish_command
from servicekit.bus.publisher import Publisher
from servicekit.bus.streams import StreamSpec, ensure_stream, removed_messages
from servicekit.run import is_transient
from servicekit.run.loops import backoff
from servicekit.run.zeros import from_zero
from topology import PUBLISH, organization_of

_LOOK_PERIOD = 0.25
# While no command is outstanding there is nothing to lose.
_IDLE_LOOK_PERIOD = 1.0
_LOOK_TIMEOUT = 2.0
_WARN_PERIOD = 60.0
# Upper bound of the bytes that a command occupies in a stream with a byte limit; 450 were measured.
_COMMAND_BYTES = 1024

# Lists of more removed messages than this are not asked for: megabytes. It takes hundreds of thousands of posts to be
# sent while the oldest command stays; until that one goes, commands behind it count as held.
_MOST_REMOVED = 500_000

_UNBOUNDED = 1_000_000_000

_log = logging.getLogger(__name__)
_meter = metrics.get_meter(__name__)
_sent = from_zero(
    _meter.create_counter("postflow.queue.commands", description="Publish commands that the stream has stored")
)
_unstored = from_zero(
    _meter.create_counter(
        "postflow.queue.commands.unstored", description="Publish commands that the stream did not acknowledge"
    )
)
_outstanding = _meter.create_gauge(
    "postflow.queue.commands.outstanding", description="Publish commands in the stream, as last seen by this process"
)
_held_back = _meter.create_gauge("postflow.queue.held.back", description="1 while no commands are sent, by reason")


class Hold(StrEnum):
    """The reason why no commands are sent."""

    UNREACHABLE = "AWAY"
    # The limit of outstanding commands is reached.
    OUTSTANDING = "OUTSTANDING"
    # The stream has reached a limit that its operator has set.
    STREAM_FULL = "STREAM_FULL"
    # The stream has refused commands, or has not acknowledged them.
    UNSTORED = "UNSTORED"


_MEANING = {
    Hold.UNREACHABLE: "the stream is unreachable",
    Hold.OUTSTANDING: "Publisher has as many as it may have",
    Hold.STREAM_FULL: "the stream is full",
    Hold.UNSTORED: "the stream does not store them",
}


class CommandStream:
    def __init__(
        self,
        connection: Client,
        publisher: Publisher,
        *,
        limit: int,
        max_attempts: int,
        stream: StreamSpec = PUBLISH,
        share: float = 0.5,
    ) -> None:
        """`limit` bounds the outstanding commands, because a consumer that holds many more becomes slow. One
        organization may have a `share` of it.
        """
        self._connection = connection
        self._publisher = publisher
        self._limit = limit
        self._share = max(int(limit * share), 1)
        self._max_attempts = max_attempts
        self._stream = stream
        self._room = limit
        self._held = 0
        # Outstanding commands by organization; None while all of them together are below the share of one organization.
        self._held_by: Counter[str] | None = None
        self._checked_at = float("-inf")
        self._connections = -1
        self._mark: StreamMark | None = None
        self._first = 0
        self._losses = 0
        self._stored: list[SentCommand] = []
        self._refusals = 0
        self._again_at = float("-inf")
        self._hold: Hold | None = None
        self._warned: dict[Hold, float] = {}
        for counter in (_sent, _unstored):
            counter.add(0)
        for hold in Hold:
            _held_back.set(0, {"reason": hold})

    async def room(self) -> Room:
        """Returns how many commands may be sent; none while the stream is unreachable.

        Commands sent since the stream was last checked count as outstanding.
        """
        if not await self._refresh(_LOOK_PERIOD):
            return self._hold_back(Hold.UNREACHABLE)
        if _now() < self._again_at:
            return self._hold_back(Hold.UNSTORED)
        if self._held >= self._limit:
            return self._hold_back(Hold.OUTSTANDING)
        if self._room <= 0:
            return self._hold_back(Hold.STREAM_FULL)
        self._hold_back(None)
        held_by = self._held_by or Counter[str]()
        filled = frozenset(organization for organization, held in held_by.items() if held >= self._share)
        return Room(min(self._limit - self._held, self._room), filled)

    @property
    def outstanding(self) -> int:
        """The number of commands that the stream holds, as last seen."""
        return self._held

    async def mark(self) -> StreamMark | None:
        """Returns the stream's creation time and last sequence; None while it is unreachable."""
        return self._mark if await self._refresh(_LOOK_PERIOD if self._held else _IDLE_LOOK_PERIOD) else None

    @property
    def losses(self) -> int:
        """Counts the losses of stored commands that this process has noticed."""
        return self._losses

    async def send(self, commands: Sequence[Command]) -> list[Command]:
        """Sends the commands. Returns those that the stream has not acknowledged."""
        before = self._mark
        answers = await self._publisher.publish([publish_command(each, self._max_attempts) for each in commands])
        missing = [each for each, answer in zip(commands, answers, strict=True) if answer is None]
        stored = [answer.sequence for answer in answers if answer is not None]
        self._stored += [
            SentCommand(
                each.organization_id,
                each.slot_id,
                each.emission,
                each.channel,
                each.destination,
                answer.sequence,
            )
            for each, answer in zip(commands, answers, strict=True)
            if answer is not None
        ]
        if before and stored:
            # The stream has assigned this sequence before: it has lost its tail, and new commands take its place.
            self._losses += min(stored) <= before.last_sequence
            self._mark = StreamMark(before.create_time, max(stored))
        self._count(each for each, answer in zip(commands, answers, strict=True) if answer is not None)
        self._answered(missing)
        return missing

    def take_stored(self) -> list[SentCommand]:
        """Returns where the stream has stored the commands sent since the last call."""
        stored, self._stored = self._stored, []
        return stored

    async def holding(self) -> Holding | None:
        """Returns which commands the stream holds; None while it is unreachable."""
        if not self._connection.is_connected:
            return None
        js = self._connection.jetstream(timeout=_LOOK_TIMEOUT)
        try:
            # Asked first: what is acknowledged by now has left the stream, or never will.
            floor = await _ack_floor(js)
            state = (await js.stream_info(PUBLISH.name)).state
            if 0 < (state.num_deleted or 0) <= _MOST_REMOVED:
                state = await removed_messages(js, PUBLISH.name)
        except NotFoundError:
            return None
        except Exception as error:
            if not is_transient(error):
                raise
            return None
        first = max(state.first_seq, floor + 1) if floor else state.first_seq
        return Holding(first, state.last_seq, frozenset(state.deleted or ()))

    @property
    def first_sequence(self) -> int:
        """The first sequence that the stream holds, as last seen; 0 before that."""
        return self._first

    def _count(self, stored: Iterable[Command]) -> None:
        added = Counter(each.organization_id for each in stored)
        _sent.add(added.total())
        self._held += added.total()
        self._room -= added.total()
        if self._held_by is not None:
            self._held_by.update(added)
        elif self._held >= self._share:
            self._checked_at = float("-inf")  # from here on the counts by organization are needed

    def _answered(self, missing: Sequence[Command]) -> None:
        if not missing:
            self._refusals = 0
            return
        _unstored.add(len(missing))
        if self._connection.is_connected:
            self._again_at = _now() + backoff(self._refusals)
            self._refusals += 1

    async def _refresh(self, period: float) -> bool:
        """Checks the stream if the last check is older than `period` or was made over another connection.

        Returns whether the stream is reachable.
        """
        if not self._connection.is_connected:
            return False
        connections = self._connection.stats["reconnects"]
        if connections == self._connections and _now() - self._checked_at < period:
            return True
        before = self._mark
        try:
            info = await self._look()
        except Exception as error:
            if not is_transient(error):
                raise
            return False
        self._checked_at, self._connections = _now(), connections
        self._update_counts(info, before)
        return True

    async def _look(self) -> StreamInfo:
        js = self._connection.jetstream(timeout=_LOOK_TIMEOUT)
        try:
            info = await js.stream_info(PUBLISH.name)
        except NotFoundError:
            info = await ensure_stream(js, self._stream)
        if info.state.messages < self._share:
            return info
        return await js.stream_info(PUBLISH.name, subjects_filter=PUBLISH.subjects[0])

    def _update_counts(self, info: StreamInfo, before: StreamMark | None) -> None:
        """Records the result of a check. `info` may lack commands stored after the mark `before` was taken."""
        self._held = info.state.messages
        self._first = info.state.first_seq
        _outstanding.set(self._held)
        self._room = _room_of(info)
        self._held_by = None
        if info.state.subjects is not None:
            self._held_by = Counter()
            for subject, held in info.state.subjects.items():
                self._held_by[organization_of(subject)] += held
        assert info.created is not None
        mark = StreamMark(info.created, info.state.last_seq)
        has_lost = before is not None and mark.has_lost_since(before)
        if has_lost:
            self._losses += 1
            self._again_at = float("-inf")
        self._mark = mark if has_lost or self._mark is None else max(mark, self._mark)

    def _hold_back(self, hold: Hold | None) -> Room:
        if hold is self._hold:
            return NO_ROOM
        if self._hold:
            _held_back.set(0, {"reason": self._hold})
        if hold:
            _held_back.set(1, {"reason": hold})
            self._warn(hold)
        self._hold = hold
        return NO_ROOM

    def _warn(self, hold: Hold) -> None:
        """Logs a reason once a minute at most. A busy Publisher is normal, so OUTSTANDING is not logged."""
        if hold is Hold.OUTSTANDING or _now() < self._warned.get(hold, float("-inf")) + _WARN_PERIOD:
            return
        self._warned[hold] = _now()
        _log.warning("sending no publish commands: %s (%d outstanding)", _MEANING[hold], self._held)


async def _ack_floor(js: JetStreamContext) -> int:
    """Returns a sequence up to which no durable of Publisher gives out anything any more.

    A server that was restored from copies may hold messages that were acknowledged before, and gives them to nobody.
    """
    consumers = await js.consumers_info(PUBLISH.name)
    return min((each.ack_floor.stream_seq if each.ack_floor else 0 for each in consumers), default=0)


def _room_of(info: StreamInfo) -> int:
    """Returns how many more commands the operator's limits allow."""
    state, config = info.state, info.config
    most, most_bytes = config.max_msgs or 0, config.max_bytes or 0
    return min(
        most - state.messages if most > 0 else _UNBOUNDED,
        (most_bytes - state.bytes) // _COMMAND_BYTES if most_bytes > 0 else _UNBOUNDED,
    )


def _now() -> float:
    return asyncio.get_running_loop().time()
