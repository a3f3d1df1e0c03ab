"""The outbox: facts to announce, written in the transaction that made them true."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from google.protobuf.message import Message
from opentelemetry import trace
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from sqlalchemy import text

from postflow.bus.v1 import bus_pb2
from servicekit.ids import IdSource
from servicekit.pg.database import Transaction

_PROPAGATOR = TraceContextTextMapPropagator()

INSERT_ROWS = """
    insert into outbox (event_id, subject, payload, create_time)
    select event_id, subject, payload, cast(:now as timestamptz)
    from unnest(cast(:event_ids as text[]), cast(:event_subjects as text[]), cast(:event_payloads as bytea[]))
        as event (event_id, subject, payload)
    returning position
"""
_INSERT = text(INSERT_ROWS)


@dataclass(frozen=True, slots=True)
class OutboxRow:
    """A row as the relay needs it: `payload` is an envelope of one event, `position` is 0 until the row is stored."""

    position: int
    event_id: str
    subject: str
    payload: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Announcement:
    """A fact that is about to be committed."""

    subject: str
    organization_id: str
    aggregate_id: str
    message: Message
    traceparent: str = ""


class Outbox:
    """Writes announcements; `offer` gets the stored rows once the transaction has committed."""

    def __init__(self, ids: IdSource, offer: Callable[[Sequence[OutboxRow]], None]) -> None:
        self._ids = ids
        self._offer = offer

    async def append(self, tx: Transaction, announcements: Sequence[Announcement], *, now: datetime) -> None:
        if not announcements:
            return
        rows = self.rows(announcements, now=now)
        result = await tx.connection.execute(_INSERT, self.parameters(rows) | {"now": now})
        self.stored(tx, rows, [position for (position,) in result])

    def rows(self, announcements: Sequence[Announcement], *, now: datetime) -> list[OutboxRow]:
        """For a statement that stores the rows itself, together with what they announce."""
        current = current_traceparent()
        seconds, micros = divmod(int(now.timestamp() * 1_000_000), 1_000_000)
        return [self._row(each, current, seconds, micros * 1000) for each in announcements]

    @staticmethod
    def parameters(rows: Sequence[OutboxRow]) -> dict[str, list[str] | list[bytes]]:
        return {
            "event_ids": [row.event_id for row in rows],
            "event_subjects": [row.subject for row in rows],
            "event_payloads": [row.payload for row in rows],
        }

    def stored(self, tx: Transaction, rows: Sequence[OutboxRow], positions: Sequence[int]) -> None:
        """INSERT ... SELECT numbers its rows in the order of the arrays, so the smallest position is the first row's."""
        placed = [
            OutboxRow(position, row.event_id, row.subject, row.payload)
            for position, row in zip(sorted(positions), rows, strict=True)
        ]
        tx.after_commit(lambda: self._offer(placed))

    def _row(self, each: Announcement, current: str, seconds: int, nanos: int) -> OutboxRow:
        event = bus_pb2.Event(
            id=self._ids.new(),
            type=each.message.DESCRIPTOR.full_name,
            organization_id=each.organization_id,
            aggregate_id=each.aggregate_id,
            payload=each.message.SerializeToString(),
            traceparent=each.traceparent or current,
        )
        event.occur_time.seconds = seconds
        event.occur_time.nanos = nanos
        return OutboxRow(0, event.id, each.subject, bus_pb2.Envelope(events=[event]).SerializeToString())


def current_traceparent() -> str:
    """The trace context in force, if it is sampled; nothing otherwise, so that unsampled work carries no weight."""
    if not trace.get_current_span().get_span_context().trace_flags.sampled:
        return ""
    carrier: dict[str, str] = {}
    _PROPAGATOR.inject(carrier)
    return carrier.get("traceparent", "")
