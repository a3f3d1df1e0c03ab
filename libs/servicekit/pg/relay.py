"""The relay: carries the outbox to the stream, and carries it again when the stream turns out to have lost it.

What was just committed comes from memory (`offer`); what a dead process left behind is found by a sweep. Rows stay for
a day after the stream acknowledged them, so that a stream which lost its tail, or everything, gets them again.

A row's mark (the stream's creation time and the sequence) is only worth something while sequences grow. So nothing is
marked on a connection on which the stream has not been compared with the newest marks first: otherwise new rows would
take the numbers of lost ones, and the loss could not be seen any more.
"""

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from google.protobuf.message import DecodeError
from opentelemetry import metrics
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from postflow.bus.v1 import bus_pb2
from servicekit.bus.publisher import Outgoing, Publisher
from servicekit.failpoints import declare, failpoint
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database
from servicekit.pg.outbox import OutboxRow
from servicekit.run.loops import wait
from servicekit.run.transient import is_transient

log = logging.getLogger(__name__)

_PUBLISHED = declare("relay.published")

_LINGER = 0.02
_WAKE_PERIOD = 0.5
_LOOK_PERIOD = 2.0
_VERIFY_PERIOD = 30.0
_LEFT_BEHIND = timedelta(seconds=2)
_MOST_PER_PASS = 1000
_MOST_IN_MEMORY = 20_000
_MOST_BYTES_IN_MEMORY = 32 * 1024 * 1024
_MOST_PER_ENVELOPE = 50
_ENVELOPE_BYTES = 256 * 1024

_meter = metrics.get_meter("servicekit.pg")
_age = _meter.create_gauge(
    "postflow.outbox.age", unit="s", description="Age of the oldest event that the stream has not acknowledged"
)
_again = _meter.create_counter(
    "postflow.outbox.republished", description="Events published again because the stream had lost them"
)

_OLDEST = text("select create_time from outbox where stream_sequence is null order by position limit 1")
# Locked until they are marked: the sweeps of several processes share the work.
_LEFTOVERS = text("""
    select position, event_id, subject, payload from outbox
    where stream_sequence is null and create_time < :before
    order by position limit :limit for update skip locked
""")
_MARK = text("""
    update outbox set stream_time = :stream_time, stream_sequence = stored.sequence
    from unnest(cast(:positions as bigint[]), cast(:sequences as bigint[])) as stored (position, sequence)
    where outbox.position = stored.position and outbox.stream_sequence is null
""")
_OTHER_STREAM = text("""
    update outbox set stream_sequence = null, stream_time = null
    where stream_sequence is not null and (stream_time < :stream_time or stream_time > :stream_time)
""")
_LOST_TAIL = text("""
    update outbox set stream_sequence = null, stream_time = null
    where stream_sequence is not null and stream_time = :stream_time and stream_sequence > :sequence
""")
_NEWEST = text("""
    select stream_sequence, array_agg(event_id) as event_ids from outbox
    where stream_sequence is not null and stream_time = :stream_time and stream_sequence = (
        select stream_sequence from outbox
        where stream_sequence is not null and stream_time = :stream_time and stream_sequence < :below
        order by stream_sequence desc limit 1 offset :skip
    )
    group by stream_sequence
""")


class Stream(Protocol):
    """What the relay asks of the stream that it writes to."""

    async def created(self) -> datetime: ...

    async def payload(self, sequence: int) -> bytes | None:
        """The message with this sequence, None when it is not there."""
        ...


class Relay:
    """`connections` counts the connections to the stream's server so far: what was lost, was lost between two."""

    def __init__(
        self,
        *,
        database: Database,
        clock: DatabaseClock,
        publisher: Publisher,
        stream: Stream,
        connections: Callable[[], int],
    ) -> None:
        self.name = "outbox relay"
        self._database = database
        self._clock = clock
        self._publisher = publisher
        self._stream = stream
        self._connections = connections
        self._offered: list[OutboxRow] = []
        self._offered_bytes = 0
        self._some = asyncio.Event()
        self._stream_time: datetime | None = None
        self._verified: int | None = None
        self._highest = 0
        self._next_verify = 0.0
        self._next_look = 0.0
        self._has_more = False
        self._trouble = ""

    def offer(self, rows: Sequence[OutboxRow]) -> None:
        """Rows that have just been committed. Beyond a bound they are left to the sweep."""
        if len(self._offered) < _MOST_IN_MEMORY and self._offered_bytes < _MOST_BYTES_IN_MEMORY:
            self._offered.extend(rows)
            self._offered_bytes += sum(len(row.payload) for row in rows)
        self._some.set()

    async def run(self, stop: asyncio.Event) -> None:
        async with asyncio.TaskGroup() as group:
            watcher = group.create_task(self._wake_when(stop))
            while not stop.is_set():
                await self._attempt(self._pass)
                await self._rest(stop)
            watcher.cancel()

    async def flush(self) -> None:
        """At the end of a process: what was committed and not yet carried."""
        while self._offered and await self._attempt(self._carry_offered):
            log.debug("%s: flushed", self.name)

    async def verify(self) -> None:
        """Finds out whether the stream still has what it acknowledged, and marks the rest to be published again."""
        connections = self._connections()
        created = await self._stream.created()
        async with self._database.read() as connection:
            lost = (await connection.execute(_OTHER_STREAM, {"stream_time": created})).rowcount
        sequence = await self._last_kept(created)
        if sequence is not None:
            async with self._database.read() as connection:
                tail = await connection.execute(_LOST_TAIL, {"stream_time": created, "sequence": sequence})
            lost += tail.rowcount
        if lost:
            log.warning("the stream has lost %d acknowledged events: publishing them again", lost)
            _again.add(lost)
            self._look_now()
        self._stream_time, self._highest = created, 0
        self._verified = connections
        self._next_verify = _now() + _VERIFY_PERIOD

    async def _rest(self, stop: asyncio.Event) -> None:
        if self._trouble:  # new rows are no reason to try again at once
            self._next_look = 0.0
            await wait(stop, _WAKE_PERIOD)
            return
        await wait(self._some, 0 if self._has_more else _WAKE_PERIOD)
        if self._offered:
            await wait(stop, _LINGER)

    async def _wake_when(self, stop: asyncio.Event) -> None:
        await stop.wait()
        self._some.set()

    async def _pass(self) -> None:
        self._some.clear()
        self._has_more = False
        before = await self._look() if _now() >= self._next_look else None
        if _now() >= self._next_verify:
            self._verified = None
        await self._verify_connection()
        while self._offered:
            await self._carry_offered()
        if before:
            await self._carry_leftovers(before)

    async def _carry_offered(self) -> None:
        await self._verify_connection()
        taken, self._offered = self._offered[:_MOST_PER_PASS], self._offered[_MOST_PER_PASS:]
        self._offered_bytes -= sum(len(row.payload) for row in taken)
        stored = await self._publish(taken)
        async with self._database.read() as connection:
            await self._mark(connection, stored)

    async def _look(self) -> datetime | None:
        """When rows are left behind that no memory holds: the time before which they were written."""
        async with self._database.read() as connection:
            oldest: datetime | None = (await connection.execute(_OLDEST)).scalar()
            now = await self._clock.now(connection) if oldest else None
        self._next_look = _now() + _LOOK_PERIOD
        if now is None or oldest is None:
            _age.set(0.0)
            return None
        _age.set((now - oldest).total_seconds())
        before = now - _LEFT_BEHIND
        return before if oldest < before else None

    async def _carry_leftovers(self, before: datetime) -> None:
        await self._verify_connection()
        async with self._database.transaction() as tx:
            found = await tx.connection.execute(_LEFTOVERS, {"before": before, "limit": _MOST_PER_PASS})
            rows = [OutboxRow(*row) for row in found]
            await self._mark(tx.connection, await self._publish(rows))
        if len(rows) == _MOST_PER_PASS:
            self._look_now()

    def _look_now(self) -> None:
        self._next_look, self._has_more = 0.0, True

    async def _verify_connection(self) -> None:
        if self._connections() != self._verified:
            await self.verify()

    async def _publish(self, rows: Sequence[OutboxRow]) -> list[tuple[int, int]]:
        """Position and sequence of each row that the stream has."""
        envelopes = list(_pack(rows))
        answers = await self._publisher.publish([_outgoing(envelope) for envelope in envelopes])
        await failpoint(_PUBLISHED)
        fresh = [answer.sequence for answer in answers if answer and not answer.duplicate]
        if self._connections() != self._verified or (fresh and min(fresh) <= self._highest):
            self._verified = None
            raise StreamInDoubt("the stream may have lost messages meanwhile: comparing before going on")
        self._highest = max(fresh, default=self._highest)
        stored = [
            (row.position, answer.sequence)
            for envelope, answer in zip(envelopes, answers, strict=True)
            if answer
            for row in envelope
        ]
        if len(stored) < len(rows) and not stored:
            raise StreamInDoubt(f"none of {len(rows)} events was acknowledged")
        return stored

    async def _mark(self, connection: AsyncConnection, stored: Sequence[tuple[int, int]]) -> None:
        if not stored:
            return
        positions, sequences = zip(*stored, strict=True)
        await connection.execute(
            _MARK, {"stream_time": self._stream_time, "positions": list(positions), "sequences": list(sequences)}
        )

    async def _last_kept(self, created: datetime) -> int | None:
        """The highest sequence that still holds what was put there; None: the newest is in place, 0: none is."""
        below, skip, first = 2**62, 0, True
        while True:
            row = await self._newest(created, below, skip)
            if row is None:
                return None if first else 0
            sequence, event_ids = row
            if _holds(await self._stream.payload(sequence), event_ids):
                return None if first else sequence
            below, skip, first = sequence, max(1, skip * 2), False

    async def _newest(self, created: datetime, below: int, skip: int) -> tuple[int, list[str]] | None:
        """The newest sequence below a bound, `skip` rows further down if there are so many, with all events there."""
        async with self._database.read() as connection:
            for offset in dict.fromkeys((skip, 0)):
                found = await connection.execute(_NEWEST, {"stream_time": created, "below": below, "skip": offset})
                if row := found.one_or_none():
                    return row.stream_sequence, row.event_ids
        return None

    async def _attempt(self, step: Callable[[], Awaitable[None]]) -> bool:
        """False when the database or the stream is away: the rows are safe, and a later pass finds them."""
        try:
            await step()
        except Exception as error:
            if not isinstance(error, StreamInDoubt) and not is_transient(error):
                raise
            trouble = type(error).__name__
            if trouble != self._trouble:
                log.warning("%s: waiting for the stream or the database: %r", self.name, error)
            self._trouble = trouble
            return False
        if self._trouble:
            log.info("%s: working again", self.name)
        self._trouble = ""
        return True


class StreamInDoubt(Exception):
    """What the stream answered cannot be relied on yet."""


def _now() -> float:
    return asyncio.get_running_loop().time()


def _pack(rows: Iterable[OutboxRow]) -> Iterator[list[OutboxRow]]:
    """Groups rows of one subject, keeping their order."""
    open_packs: dict[str, tuple[list[OutboxRow], int]] = {}
    for row in rows:
        pack, size = open_packs.get(row.subject, ([], 0))
        if pack and (len(pack) == _MOST_PER_ENVELOPE or size + len(row.payload) > _ENVELOPE_BYTES):
            yield pack
            pack, size = [], 0
        pack.append(row)
        open_packs[row.subject] = (pack, size + len(row.payload))
    for pack, _ in open_packs.values():
        yield pack


def _outgoing(pack: Sequence[OutboxRow]) -> Outgoing:
    """Encoded messages of one type joined end to end are one message with the fields of all: no need to decode."""
    return Outgoing(pack[0].subject, b"".join(row.payload for row in pack), _message_id(pack))


def _message_id(pack: Sequence[OutboxRow]) -> str:
    """Names exactly these events: the same rows packed differently must not pass for a duplicate."""
    if len(pack) == 1:
        return pack[0].event_id
    return hashlib.blake2b(" ".join(row.event_id for row in pack).encode(), digest_size=16).hexdigest()


def _holds(payload: bytes | None, event_ids: Iterable[str]) -> bool:
    try:
        there = {event.id for event in bus_pb2.Envelope.FromString(payload or b"").events}
    except DecodeError:  # somebody else's, under a number that was ours
        return False
    return there.issuperset(event_ids)
