"""The outbox: events to announce, written in the transaction that makes them true.

A row holds the events of one subject from one transaction, up to 50 of them: a row per event would cost a batch of
posts more than anything else that it writes, twice, because the relay marks what the stream has.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp
from opentelemetry import trace

from postflow.bus.v1 import bus_pb2
from servicekit.ids import IdSource
from servicekit.pg.database import Transaction
from servicekit.pg.session import Statement
from servicekit.record import record
from servicekit.run.telemetry import traceparent
from servicekit.timestamps import timestamp

MOST_BYTES = 512 * 1024
"""The limit of an announcement. The stream accepts a megabyte; a refused message would stay in the outbox forever."""

MOST_EVENTS = 50
"""The limit of events that share a row or a message."""
PACK_BYTES = 256 * 1024
"""The size from which events share no row or message."""

PAGE_BYTES = 2 * 1024 * 1024
"""The size of the rows that are read together. They have up to 512 KiB each, so a thousand may not fit into memory."""

_SUBJECT = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")

_INSERT = Statement("""
    insert into outbox (event_id, subject, payload, create_time)
    select event_id, subject, payload, :now
    from unnest(cast(:event_ids as text[]), cast(:subjects as text[]), cast(:payloads as bytea[]))
        as event (event_id, subject, payload)
    returning position
""")


@record(frozen=True, slots=True, kw_only=False)
class OutboxRow:
    """A row for the relay: an envelope, and the id of its first event. `position` is 0 until the row is stored."""

    position: int
    event_id: str
    subject: str
    payload: bytes
    events: int = 1


@record(frozen=True, slots=True, kw_only=True)
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
        if announcements:
            await self.store(tx, self.packed(announcements, now=now), now=now)

    async def store(self, tx: Transaction, rows: Sequence[OutboxRow], *, now: datetime) -> None:
        values = {
            "event_ids": [row.event_id for row in rows],
            "subjects": [row.subject for row in rows],
            "payloads": [row.payload for row in rows],
            "now": now,
        }
        # INSERT ... SELECT numbers rows in the order of the arrays: the smallest position is the first row's.
        positions = sorted(position for (position,) in await tx.fetch(_INSERT, values))
        stored = [replace(row, position=position) for row, position in zip(rows, positions, strict=True)]
        tx.after_commit(lambda: self._offer(stored))

    def packed(self, announcements: Sequence[Announcement], *, now: datetime) -> list[OutboxRow]:
        """Returns rows of up to 50 events, in the order of the first announcement of each."""
        packs: list[_Pack] = []
        open_packs: dict[str, _Pack] = {}
        current, occur_time = current_traceparent(), timestamp(now)
        for each in announcements:
            payload = each.message.SerializeToString()
            pack = open_packs.get(each.subject)
            if pack is None or not pack.has_room(len(payload)):
                pack = open_packs[each.subject] = _Pack(each.subject)
                packs.append(pack)
            pack.add(self._ids.new(), each, payload, current, occur_time)
        return [pack.row() for pack in packs]


class _Pack:
    """Events of one subject that will share a row, written in place: an envelope copies events that exist already."""

    def __init__(self, subject: str) -> None:
        self._subject = subject
        self._envelope = bus_pb2.Envelope()
        self._events = self._envelope.events
        self._first = ""
        self._count = 0
        self._size = 0

    def has_room(self, size: int) -> bool:
        return self._count < MOST_EVENTS and self._size + size <= PACK_BYTES

    def add(self, event_id: str, each: Announcement, payload: bytes, current: str, occur_time: Timestamp) -> None:
        event = self._events.add()
        event.id = event_id
        event.type = each.message.DESCRIPTOR.full_name
        event.organization_id = each.organization_id
        event.aggregate_id = each.aggregate_id
        event.occur_time.CopyFrom(occur_time)
        event.payload = payload
        if origin := each.traceparent or current:
            event.traceparent = origin
        self._first = self._first or event_id
        self._count += 1
        self._size += len(payload)

    def row(self) -> OutboxRow:
        payload = self._envelope.SerializeToString()
        # Refused here, where the caller gets the error, and not by the server after the commit.
        if len(payload) > MOST_BYTES or not _SUBJECT.fullmatch(self._subject):
            raise ValueError(f"cannot announce {self._events[0].type} of {len(payload)} bytes on {self._subject!r}")
        return OutboxRow(0, self._first, self._subject, payload, self._count)


def stored_row(position: int, event_id: str, subject: str, payload: bytes) -> OutboxRow:
    """Returns a row as a process finds it in the database."""
    return OutboxRow(position, event_id, subject, payload, len(bus_pb2.Envelope.FromString(payload).events))


def current_traceparent() -> str:
    """Returns the current trace context if it is sampled; unsampled work carries none."""
    return traceparent() if trace.get_current_span().get_span_context().trace_flags.sampled else ""
