"""The outbox: events to announce, written in the transaction that makes them true."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp
from opentelemetry import trace
from sqlalchemy import text

from postflow.bus.v1 import bus_pb2
from servicekit.ids import IdSource
from servicekit.pg.database import Transaction
from servicekit.run.telemetry import traceparent
from servicekit.timestamps import timestamp

MOST_BYTES = 512 * 1024
"""The limit of an announcement. The stream accepts a megabyte; a refused message would stay in the outbox forever."""

_SUBJECT = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")

INSERT = "insert into outbox (event_id, subject, payload, create_time)"
"""The head of each statement that stores announcements; it must return the positions."""
_INSERT = text(f"""
    {INSERT}
    select event_id, subject, payload, cast(:now as timestamptz)
    from unnest(cast(:event_ids as text[]), cast(:event_subjects as text[]), cast(:event_payloads as bytea[]))
        as event (event_id, subject, payload)
    returning position
""")  # noqa: S608 - a constant


@dataclass(frozen=True, slots=True)
class OutboxRow:
    """A row for the relay. `payload` is an envelope of one event; `position` is 0 until the row is stored."""

    position: int
    event_id: str
    subject: str
    payload: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Announcement:
    """An event that is about to be committed."""

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
        # INSERT ... SELECT numbers rows in the order of the arrays: the smallest position is the first row's.
        positions = sorted(position for (position,) in result)
        self.stored(tx, [replace(row, position=position) for row, position in zip(rows, positions, strict=True)])

    def rows(self, announcements: Sequence[Announcement], *, now: datetime) -> list[OutboxRow]:
        """Returns the rows, for a statement that stores them itself together with what they announce."""
        current = current_traceparent()
        occur_time = timestamp(now)
        return [self._row(each, current, occur_time) for each in announcements]

    @staticmethod
    def parameters(rows: Sequence[OutboxRow]) -> dict[str, list[str] | list[bytes]]:
        return {
            "event_ids": [row.event_id for row in rows],
            "event_subjects": [row.subject for row in rows],
            "event_payloads": [row.payload for row in rows],
        }

    def stored(self, tx: Transaction, rows: Sequence[OutboxRow]) -> None:
        """Offers rows to the relay after the commit of the transaction that has written them."""
        tx.after_commit(lambda: self._offer(rows))

    def _row(self, each: Announcement, current: str, occur_time: Timestamp) -> OutboxRow:
        event = bus_pb2.Event(
            id=self._ids.new(),
            type=each.message.DESCRIPTOR.full_name,
            organization_id=each.organization_id,
            aggregate_id=each.aggregate_id,
            occur_time=occur_time,
            payload=each.message.SerializeToString(),
            traceparent=each.traceparent or current,
        )
        payload = bus_pb2.Envelope(events=[event]).SerializeToString()
        # Refused here, where the caller gets the error, and not by the server after the commit.
        if len(payload) > MOST_BYTES or not _SUBJECT.fullmatch(each.subject):
            raise ValueError(f"cannot announce {event.type} of {len(payload)} bytes on {each.subject!r}")
        return OutboxRow(0, event.id, each.subject, payload)


def current_traceparent() -> str:
    """Returns the current trace context if it is sampled; unsampled work carries none."""
    return traceparent() if trace.get_current_span().get_span_context().trace_flags.sampled else ""
