"""The relay publishes the outbox to the stream, and publishes rows again that the stream turns out to have lost.

Rows that were just committed come from memory (`offer`); a sweep finds those that a dead process left behind. Rows stay
for a day after the stream acknowledged them, so that a stream that lost its tail, or everything, gets them again.

A row's mark (an era and a sequence) is only valid while sequences grow. So nothing is marked on a connection before the
stream has been compared with the newest marks: otherwise new rows would take the sequences of lost ones and hide the
loss. `servicekit.messaging.eras` keeps the two apart.

New rows come first, then rows of dead processes, then lost rows: a page at a time, at a bounded rate, by one process
for all. Nothing is published inside a transaction: a page that was not marked is published again.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime, timedelta

from opentelemetry import metrics
from sqlalchemy import text

from servicekit.bus.publisher import Publisher
from servicekit.failpoints import declare, failpoint
from servicekit.messaging.envelopes import envelopes, outgoing
from servicekit.messaging.eras import Era, EraOver, Eras, LostPage, NothingStored, Stream, StreamInDoubt
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database
from servicekit.pg.outbox import PAGE_BYTES, OutboxRow, stored_row
from servicekit.pg.turn import Turn
from servicekit.run.loops import wait
from servicekit.run.transient import is_transient
from servicekit.run.zeros import from_zero

_log = logging.getLogger(__name__)

_PUBLISHED = declare("relay.published")

# For as long a single event waits. A pass costs 0.3 ms, which at 100 posts a second is one post's in five.
_LINGER = 0.05
_WAKE_PERIOD = 0.5
_LOOK_PERIOD = 2.0
_VERIFY_PERIOD = 30.0
_LEFT_BEHIND = timedelta(seconds=2)
_MOST_PER_PASS = 1000
_MOST_IN_MEMORY = 20_000
_MOST_BYTES_IN_MEMORY = 32 * 1024 * 1024
# Events a second. Consumers read them from the same stream: faster, and new events would queue behind them.
_REPUBLISH_RATE = 5000

_meter = metrics.get_meter(__name__)
_age = _meter.create_gauge(
    "postflow.outbox.age", unit="s", description="Age of the oldest event that the stream has not acknowledged"
)
_again = from_zero(
    _meter.create_counter(
        "postflow.outbox.republished", description="Events published again because the stream had lost them"
    )
)

_OLDEST = text("select create_time from outbox where stream_sequence is null order by position limit 1")
_LEFTOVERS = text("""
    select position, event_id, subject, payload, found from (
        select page.*, count(*) over () as found,
            sum(octet_length(payload)) over (order by position) - octet_length(payload) as bytes_before
        from (
            select position, event_id, subject, payload from outbox
            where stream_sequence is null and position > :after and create_time < :before
            order by position limit :limit
        ) as page
    ) as page
    where bytes_before < :bytes order by position
""")


class Relay:
    """Publishes the outbox of one database.

    `connections` returns the reconnect count. The stream can only have lost messages across a reconnect.

    Its queries share the connections for writing, so that no list of a client, which holds a reader, holds up an event.
    """

    def __init__(
        self,
        *,
        database: Database,
        clock: DatabaseClock,
        publisher: Publisher,
        stream: Stream,
        connections: Callable[[], int],
        republish_rate: int = _REPUBLISH_RATE,
    ) -> None:
        self.name = "outbox relay"
        self._database = database
        self._clock = clock
        self._publisher = publisher
        self._stream = stream
        self._connections = connections
        self._republish_rate = republish_rate
        self._eras = Eras(database)
        self._turn = Turn(database, "sweep")
        self._offered: list[OutboxRow] = []
        self._offered_events = 0
        self._offered_bytes = 0
        self._some = asyncio.Event()
        self._era: Era | None = None
        self._verified: int | None = None
        self._highest = 0
        self._next_verify = 0.0
        self._next_look = 0.0
        self._has_more = False
        self._swept = 0
        self._refused = False
        self._lost = False
        self._republished = 0
        self._next_republish = 0.0
        self._trouble = ""

    def offer(self, rows: Sequence[OutboxRow]) -> None:
        """Takes rows that have just been committed; beyond a limit they are left to the sweep."""
        if self._offered_events < _MOST_IN_MEMORY and self._offered_bytes < _MOST_BYTES_IN_MEMORY:
            self._offered.extend(rows)
            self._offered_events += _events(rows)
            self._offered_bytes += sum(len(row.payload) for row in rows)
        self._some.set()

    async def run(self, stop: asyncio.Event) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                watcher = group.create_task(self._wake_when(stop))
                while not stop.is_set():
                    await self._attempt(self._pass)
                    await self._rest(stop)
                watcher.cancel()
        finally:
            await self._attempt(self._turn.give_back)

    async def flush(self) -> None:
        """Publishes the rows that are left at the end of a process."""
        while self._offered and await self._attempt(self._carry_offered):
            _log.debug("%s: flushed", self.name)

    async def verify(self) -> None:
        """Checks whether the stream still has what it acknowledged; lost rows are then published again."""
        connections = self._connections()
        self._era = await self._eras.compare(self._stream)
        self._highest, self._verified = 0, connections
        self._lost, self._next_republish = True, 0.0
        self._next_verify = _now() + _VERIFY_PERIOD

    async def _rest(self, stop: asyncio.Event) -> None:
        if self._trouble:  # new rows are no reason for an immediate retry
            self._next_look = 0.0
            await wait(stop, _WAKE_PERIOD)
            return
        until_republish = max(self._next_republish - _now(), 0) if self._lost else _WAKE_PERIOD
        await wait(self._some, 0 if self._has_more else min(until_republish, _WAKE_PERIOD))
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
        await self._verified_era()
        # Rows offered meanwhile wait for the next pass: under load there are always some, and the rest needs a turn.
        for _ in range(0, len(self._offered), _MOST_PER_PASS):
            await self._carry_offered()
        if before and await self._turn.take():
            await self._carry_leftovers(before)
        if self._lost and _now() >= self._next_republish:
            await self._carry_lost()

    async def _carry_offered(self) -> None:
        era = await self._verified_era()
        taken, self._offered = self._offered[:_MOST_PER_PASS], self._offered[_MOST_PER_PASS:]
        self._offered_events -= _events(taken)
        self._offered_bytes -= sum(len(row.payload) for row in taken)
        await self._eras.mark(era, await self._publish(taken))

    async def _look(self) -> datetime | None:
        """Returns the time before which rows were left behind, if there are any."""
        async with self._database.statement() as connection:
            oldest: datetime | None = (await connection.execute(_OLDEST)).scalar()
            now = await self._clock.now(connection) if oldest else None
        self._next_look = _now() + _LOOK_PERIOD
        if now is None or oldest is None:
            _age.set(0.0)
            self._are_refused(False)
            return None
        _age.set((now - oldest).total_seconds())
        before = now - _LEFT_BEHIND
        return before if oldest < before else None

    async def _carry_leftovers(self, before: datetime) -> None:
        era = await self._verified_era()
        page = {"before": before, "after": self._swept, "limit": _MOST_PER_PASS, "bytes": PAGE_BYTES}
        async with self._database.statement() as connection:
            found = list(await connection.execute(_LEFTOVERS, page))
        rows = [stored_row(*row[:-1]) for row in found]
        try:
            if rows:
                await self._eras.mark(era, await self._publish(rows))
            self._are_refused(False)
        except NothingStored:  # possibly forever; neither new nor lost events wait for these
            self._are_refused(True)
        self._swept = 0
        if found and (len(found) < found[0].found or len(found) == _MOST_PER_PASS):
            self._swept = rows[-1].position
            if not self._refused:
                self._next_look, self._has_more = 0.0, True

    def _are_refused(self, refused: bool) -> None:
        if refused and not self._refused:
            _log.warning("%s: the stream refuses the oldest events: retrying", self.name)
        if self._refused and not refused:
            _log.info("%s: the stream accepts the oldest events again", self.name)
        self._refused = refused

    async def _carry_lost(self) -> None:
        """Publishes a page of lost rows, in no more than half of the time, even if database and stream are slow."""
        began = _now()
        unhealed = await self._eras.unhealed()
        if unhealed is None:
            self._lost = False
        elif not await self._turn.take():
            self._next_republish = began + _LOOK_PERIOD
        else:
            page = await self._eras.lost(unhealed, _MOST_PER_PASS)
            await self._republish(page)
            ended = _now()
            self._next_republish = max(began + _events(page.rows) / self._republish_rate, ended + (ended - began))

    async def _republish(self, page: LostPage) -> None:
        if page.rows and not self._republished:
            _log.warning("the stream has lost acknowledged events: publishing them again")
        era = await self._verified_era()
        stored = await self._publish(page.rows) if page.rows else []
        await self._eras.republished(page, era, stored)
        positions = {position for position, _ in stored}
        count = _events(row for row in page.rows if row.position in positions)
        _again.add(count)
        self._republished += count
        if page.further is None and self._republished:
            _log.info("%d events that the stream had lost were published again", self._republished)
            self._republished = 0

    async def _verified_era(self) -> Era:
        if self._connections() != self._verified or self._era is None:
            await self.verify()
        assert self._era is not None
        return self._era

    async def _publish(self, rows: Sequence[OutboxRow]) -> list[tuple[int, int]]:
        """Publishes rows; returns position and sequence of those that the stream has, at least one."""
        packed = list(envelopes(rows))
        answers = await self._publisher.publish([outgoing(envelope) for envelope in packed])
        await failpoint(_PUBLISHED)
        fresh = [answer.sequence for answer in answers if answer and not answer.duplicate]
        if self._connections() != self._verified or (fresh and min(fresh) <= self._highest):
            self._verified = None
            raise StreamInDoubt("the stream may have lost messages meanwhile: comparing first")
        self._highest = max(fresh, default=self._highest)
        stored = [
            (row.position, answer.sequence)
            for envelope, answer in zip(packed, answers, strict=True)
            if answer
            for row in envelope
        ]
        if not stored:
            raise NothingStored(f"none of {len(rows)} events was acknowledged")
        return stored

    async def _attempt(self, step: Callable[[], Awaitable[None]]) -> bool:
        """Runs a step. Returns False if database or stream is unreachable: a later pass finds the rows."""
        try:
            await step()
        except Exception as error:
            if not isinstance(error, StreamInDoubt) and not is_transient(error):
                raise
            if isinstance(error, EraOver):
                self._verified = None
            trouble = type(error).__name__
            if trouble != self._trouble:
                _log.warning("%s: waiting for the stream or the database: %r", self.name, error)
            self._trouble = trouble
            return False
        if self._trouble:
            _log.info("%s: working again", self.name)
        self._trouble = ""
        return True


def _events(rows: Iterable[OutboxRow]) -> int:
    return sum(row.events for row in rows)


def _now() -> float:
    return asyncio.get_running_loop().time()
