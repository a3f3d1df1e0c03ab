"""The relay: carries the outbox to the stream, and carries it again when the stream turns out to have lost it.

What was just committed comes from memory (`offer`); what a dead process left behind is found by a sweep. Rows stay for
a day after the stream acknowledged them, so that a stream which lost its tail, or everything, gets them again.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Protocol

from opentelemetry import metrics
from sqlalchemy import text

from postflow.bus.v1 import bus_pb2
from servicekit.bus.publisher import Outgoing, Publisher
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database
from servicekit.pg.outbox import OutboxRow
from servicekit.run.transient import is_transient

log = logging.getLogger(__name__)

_LINGER = 0.02
_SWEEP_PERIOD = 1.0
_VERIFY_PERIOD = 30.0
_LEFT_BEHIND = timedelta(seconds=2)
_MOST_PER_PASS = 1000
_MOST_IN_MEMORY = 20_000
_MOST_PER_ENVELOPE = 50
_ENVELOPE_BYTES = 256 * 1024

_meter = metrics.get_meter("servicekit.pg")
_age = _meter.create_gauge(
    "postflow.outbox.age", unit="s", description="Age of the oldest event that the stream has not acknowledged"
)
_again = _meter.create_counter(
    "postflow.outbox.republished", description="Events published again because the stream had lost them"
)

_LEFTOVERS = text("""
    select position, event_id, subject, payload, create_time from outbox
    where stream_sequence is null order by position limit :limit
""")
_MARK = text("""
    update outbox set stream_time = :stream_time, stream_sequence = stored.sequence
    from unnest(cast(:positions as bigint[]), cast(:sequences as bigint[])) as stored (position, sequence)
    where outbox.position = stored.position
""")
_OTHER_STREAM = text("""
    update outbox set stream_sequence = null, stream_time = null
    where stream_sequence is not null and stream_time is distinct from :stream_time
""")
_LOST_TAIL = text("""
    update outbox set stream_sequence = null, stream_time = null
    where stream_sequence > :sequence
""")
_NEWEST = text("""
    select stream_sequence, event_id from outbox
    where stream_sequence is not null and stream_sequence < :below
    order by stream_sequence desc limit 1 offset :skip
""")


class Stream(Protocol):
    """What the relay asks of the stream that it writes to."""

    async def created(self) -> datetime: ...

    async def payload(self, sequence: int) -> bytes | None:
        """The message with this sequence, None when it is not there."""
        ...


class Relay:
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
        self._some = asyncio.Event()
        self._stream_time: datetime | None = None

    def offer(self, rows: Sequence[OutboxRow]) -> None:
        """Rows that have just been committed. Beyond a bound they are left to the sweep."""
        if len(self._offered) < _MOST_IN_MEMORY:
            self._offered.extend(rows)
        self._some.set()

    async def run(self, stop: asyncio.Event) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._periodically(stop, self._sweep, _SWEEP_PERIOD))
            group.create_task(self._watch(stop))
            group.create_task(self._forward(stop))

    async def flush(self) -> None:
        """At the end of a process: what was committed and not yet carried."""
        while self._offered and await self._attempt(partial(self._carry, self._take())):
            log.debug("%s: flushed", self.name)

    async def _forward(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            if await _within(self._some, 0.25):
                await asyncio.sleep(_LINGER)
                self._some.clear()
                while self._offered:
                    await self._attempt(partial(self._carry, self._take()))

    def _take(self) -> list[OutboxRow]:
        taken, self._offered = self._offered[:_MOST_PER_PASS], self._offered[_MOST_PER_PASS:]
        return taken

    async def _sweep(self) -> None:
        async with self._database.read() as connection:
            now = await self._clock.now(connection)
            found = (await connection.execute(_LEFTOVERS, {"limit": _MOST_PER_PASS})).all()
        _age.set((now - found[0].create_time).total_seconds() if found else 0.0)
        old = [OutboxRow(*row[:4]) for row in found if row.create_time < now - _LEFT_BEHIND]
        if old:
            await self._carry(old)

    async def _carry(self, rows: Sequence[OutboxRow]) -> None:
        if self._stream_time is None:
            self._stream_time = await self._stream.created()
        envelopes = list(_pack(rows))
        answers = await self._publisher.publish([_outgoing(envelope) for envelope in envelopes])
        positions: list[int] = []
        sequences: list[int] = []
        for envelope, answer in zip(envelopes, answers, strict=True):
            if answer is not None:
                positions += [row.position for row in envelope]
                sequences += [answer.sequence] * len(envelope)
        if positions:
            async with self._database.read() as connection:
                await connection.execute(
                    _MARK, {"stream_time": self._stream_time, "positions": positions, "sequences": sequences}
                )

    async def _watch(self, stop: asyncio.Event) -> None:
        """Verifies at once after every (re)connection, and every half minute."""
        seen, waited = -1, 0.0
        while not stop.is_set():
            if self._connections() != seen or waited >= _VERIFY_PERIOD:
                connections = self._connections()
                if await self._attempt(self.verify):
                    seen, waited = connections, 0.0
            await _within(stop, 0.5)
            waited += 0.5

    async def verify(self) -> None:
        """Finds out whether the stream still has what it acknowledged, and marks the rest to be published again."""
        created = await self._stream.created()
        lost = 0
        async with self._database.read() as connection:
            lost += (await connection.execute(_OTHER_STREAM, {"stream_time": created})).rowcount
        self._stream_time = created
        if (sequence := await self._last_kept()) is not None:
            async with self._database.read() as connection:
                lost += (await connection.execute(_LOST_TAIL, {"sequence": sequence})).rowcount
        if lost:
            log.warning("the stream has lost %d acknowledged events: publishing them again", lost)
            _again.add(lost)

    async def _last_kept(self) -> int | None:
        """The highest sequence that still holds what was put there; None when the newest is in place, -1 when none is."""
        below, skip, first = 2**62, 0, True
        while True:
            async with self._database.read() as connection:
                row = (await connection.execute(_NEWEST, {"below": below, "skip": skip})).one_or_none()
                if row is None and skip:
                    row = (await connection.execute(_NEWEST, {"below": below, "skip": 0})).one_or_none()
            if row is None:
                return None if first else -1
            if _holds(await self._stream.payload(row.stream_sequence), row.event_id):
                return None if first else row.stream_sequence
            below, skip, first = row.stream_sequence, max(1, skip * 2), False

    async def _periodically(self, stop: asyncio.Event, step: Callable[[], Awaitable[None]], period: float) -> None:
        while not await _within(stop, period):
            await self._attempt(step)

    async def _attempt(self, step: Callable[[], Awaitable[object]]) -> bool:
        """False when the database or the stream is away: the rows are safe, and the next pass finds them."""
        try:
            await step()
        except Exception as error:
            if not is_transient(error):
                raise
            log.warning("%s: the stream or the database is away: %r", self.name, error)
        else:
            return True
        return False


async def _within(event: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True


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
    return Outgoing(pack[0].subject, b"".join(row.payload for row in pack), pack[0].event_id)


def _holds(payload: bytes | None, event_id: str) -> bool:
    if payload is None:
        return False
    return any(event.id == event_id for event in bus_pb2.Envelope.FromString(payload).events)
