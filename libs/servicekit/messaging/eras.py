"""Eras: which marks of outbox rows are still valid after a stream has lost messages.

A mark names an era and a sequence. All marks of the current era are valid. When the stream turns out to have lost
messages, the era is closed with the highest sequence that is left, in one small statement, and a new one begins: later
messages cannot be confused with lost ones, although the stream uses the same sequences again. The rows above that
sequence are published again page by page. The era records the progress, so that another process can continue.

Two eras of one stream have the same creation time. It is compared with a tolerance, since releases round differently.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import accumulate, pairwise
from typing import Protocol

from google.protobuf.message import DecodeError
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from postflow.bus.v1 import bus_pb2
from servicekit.bus.stream_view import StreamLook
from servicekit.pg.database import Database
from servicekit.pg.outbox import PAGE_BYTES, OutboxRow, stored_row
from servicekit.pg.session import Statement

_TOLERANCE = timedelta(milliseconds=1)
_TURNS = 3
_TOP = 2**62
_EVER = (datetime(1, 1, 2, tzinfo=UTC), datetime(9999, 12, 30, tzinfo=UTC))
_FORGOTTEN_AFTER = timedelta(days=2)

_LOCK = text("select pg_advisory_xact_lock(hashtext('outbox era'))")
_LOCK_SHARED = text("select pg_advisory_xact_lock_shared(hashtext('outbox era'))")
_ALL = text("select era_time, stream_created, kept, healed from outbox_era order by era_time")
# Marks of an unrecorded era: from before there were eras, or by a release without them.
_UNKNOWN = text("""
    select stream_time from outbox
    where stream_sequence is not null and stream_time > :above and stream_time < :below
    order by stream_time limit 1
""")
_ADOPT = text("""
    insert into outbox_era (era_time, stream_created) values (:era_time, :stream_created) on conflict do nothing
""")
_CLOSE = text("""
    update outbox_era
    set kept = bound.kept, healed = bound.kept, close_time = coalesce(close_time, clock_timestamp())
    from (
        select era_time, case when stream_created = :created then cast(:kept as bigint) else 0 end as kept
        from outbox_era
    ) as bound
    where outbox_era.era_time = bound.era_time and (outbox_era.kept is null or outbox_era.kept > bound.kept)
""")
_OPEN = text("""
    insert into outbox_era (era_time, stream_created)
    select case when exists (select from outbox_era where era_time = made) then clock_timestamp() else made end, made
    from (select cast(:created as timestamptz) as made) as stream
    where not exists (select from outbox_era where kept is null)
""")
_FORGET = text("""
    delete from outbox_era
    where kept is not null and healed is null and close_time < clock_timestamp() - cast(:age as interval)
        and not exists (
            select from outbox where stream_sequence is not null and outbox.stream_time = outbox_era.era_time
        )
""")
_NEWEST = text("""
    with era as (
        select era_time, least(kept, :at_most) as top
        from unnest(cast(:era_times as timestamptz[]), cast(:kept as bigint[])) as era (era_time, kept)
    ),
    newest as (
        select max(last.stream_sequence) as stream_sequence from era cross join lateral (
            select stream_sequence from outbox
            where stream_sequence is not null and stream_time = era.era_time and stream_sequence <= era.top
            order by stream_sequence desc limit 1
        ) as last
    )
    select outbox.stream_sequence, array_agg(outbox.event_id) as event_ids
    from newest cross join era cross join lateral (
        select stream_sequence, event_id from outbox
        where stream_sequence is not null and stream_time = era.era_time
            and stream_sequence = newest.stream_sequence and stream_sequence <= era.top
    ) as outbox
    group by outbox.stream_sequence
""")
_LOST = text("""
    select stream_sequence, position, event_id, subject, payload, found from (
        select page.*, count(*) over () as found,
            sum(octet_length(payload)) over (order by stream_sequence, position) - octet_length(payload) as bytes_before
        from (
            select stream_sequence, position, event_id, subject, payload from outbox
            where stream_sequence is not null and stream_time = :era_time and stream_sequence > :healed
            order by stream_sequence, position limit :limit
        ) as page
    ) as page
    where bytes_before < :bytes order by stream_sequence, position
""")
_REMARK = text("""
    update outbox set
        stream_time = case when stored.sequence is not null then cast(:current as timestamptz) end,
        stream_sequence = stored.sequence
    from unnest(cast(:positions as bigint[]), cast(:sequences as bigint[])) as stored (position, sequence)
    where outbox.position = stored.position and outbox.stream_time = :era_time and outbox.stream_sequence > :healed
""")
_ADVANCE = text("""
    update outbox_era set healed = :further
    where era_time = :era_time and healed = :healed
        and exists (select from outbox_era where era_time = :current and kept is null)
""")
# Locks the era before the rows: an era that is being closed accepts no more marks.
_MARK = Statement("""
    with era as materialized (
        select era_time from outbox_era where era_time = :era_time and kept is null for share
    ),
    marked as (
        update outbox set stream_time = era.era_time, stream_sequence = stored.sequence
        from era, unnest(cast(:positions as bigint[]), cast(:sequences as bigint[])) as stored (position, sequence)
        where outbox.position = stored.position and outbox.stream_sequence is null
    )
    select count(*) from era
""")


class StreamInDoubt(Exception):
    """The answers of the stream cannot be relied on yet."""


class EraOver(StreamInDoubt):
    """Another process has found a loss: the stream must be compared before anything is marked."""


class NothingStored(StreamInDoubt):
    """The stream has acknowledged none of the events."""


class Stream(Protocol):
    """The questions to the stream that an outbox is carried to."""

    async def look(self) -> StreamLook: ...

    async def payload(self, sequence: int) -> bytes | None:
        """Returns the message with this sequence, or None if it is missing."""
        ...


@dataclass(frozen=True, slots=True)
class Era:
    """A period of marks.

    `kept` is the highest sequence that the stream still has, None while it has lost nothing. Rows above `healed` have
    yet to be published again; None: nothing is left to do.
    """

    era_time: datetime
    stream_created: datetime
    kept: int | None
    healed: int | None


@dataclass(frozen=True, slots=True)
class LostPage:
    """Rows of a closed era that the stream has lost, in the order of their sequences."""

    era: Era
    rows: Sequence[OutboxRow]
    further: int | None
    """The `healed` of the era after this page; None: it is the last."""


class Eras:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def compare(self, stream: Stream) -> Era:
        """Compares the stream with the existing marks, and returns the era of new marks.

        Everything that is missing belongs to a closed era afterwards.
        """
        for _ in range(_TURNS):
            look = await stream.look()
            eras = await self._adopted(look.created)
            same = [era for era in eras if _same(era.stream_created, look.created)]
            created = same[0].stream_created if same else look.created
            kept = await self._kept(stream, look, same)
            current = [era for era in eras if era.kept is None]
            if kept is None and current and all(era in same for era in current):
                return current[-1]
            await self._turn_over(eras, created, kept)
        raise StreamInDoubt("the stream kept changing while it was compared")

    async def unhealed(self) -> Era | None:
        """Returns the oldest era that may have rows to publish again."""
        async with self._database.statement() as connection:
            return next((era for era in await _load(connection) if era.healed is not None), None)

    async def lost(self, era: Era, limit: int) -> LostPage:
        """Returns the next rows of an era to publish again: about `limit` events."""
        async with self._database.statement() as connection:
            parameters = {"era_time": era.era_time, "healed": era.healed, "limit": limit, "bytes": PAGE_BYTES}
            found = (await connection.execute(_LOST, parameters)).all()
        rows = _page([stored_row(*row[1:-1]) for row in found], limit)
        # A page may end within a message: the next page has its other rows, when those of this page are marked.
        is_last = not found or len(rows) == found[0].found < limit
        return LostPage(era, rows, None if is_last else found[len(rows) - 1].stream_sequence - 1)

    async def republished(self, page: LostPage, current: Era, stored: Sequence[tuple[int, int]]) -> None:
        """Marks the page and advances the era. Rows that the stream refused count as unpublished."""
        sequences = dict(stored)
        step = {"era_time": page.era.era_time, "healed": page.era.healed, "current": current.era_time}
        positions = [row.position for row in page.rows]
        async with self._database.transaction() as tx:
            await tx.connection.execute(_LOCK_SHARED)
            if not (await tx.connection.execute(_ADVANCE, step | {"further": page.further})).rowcount:
                raise EraOver("another process has continued, or the stream has lost messages again")
            marks = {"positions": positions, "sequences": [sequences.get(position) for position in positions]}
            await tx.connection.execute(_REMARK, step | marks)

    async def mark(self, era: Era, stored: Sequence[tuple[int, int]]) -> None:
        """Marks rows with their sequences, in the order of positions, so that two processes cannot deadlock."""
        positions, sequences = zip(*sorted(stored), strict=True)
        marks = {"era_time": era.era_time, "positions": list(positions), "sequences": list(sequences)}
        async with self._database.session() as session:
            if not await session.fetch_value(_MARK, marks):
                raise EraOver("another process has found that the stream lost messages")

    async def _adopted(self, created: datetime) -> list[Era]:
        """Records eras that only marks mention, and returns all eras."""
        async with self._database.statement() as connection:
            eras = await _load(connection)
            while (unknown := await _unknown(connection, eras)) is not None:
                known = [*(era.stream_created for era in eras), created]
                stream_created = next((each for each in known if _same(each, unknown)), unknown)
                await connection.execute(_ADOPT, {"era_time": unknown, "stream_created": stream_created})
                eras = await _load(connection)
            return eras

    async def _turn_over(self, seen: Sequence[Era], created: datetime, kept: int | None) -> None:
        """Closes eras that have lost messages, unless another process was faster."""
        async with self._database.transaction() as tx:
            await tx.connection.execute(_LOCK)
            if _marks(await _load(tx.connection)) == _marks(seen):
                await tx.connection.execute(_CLOSE, {"created": created, "kept": kept})
                await tx.connection.execute(_OPEN, {"created": created})
                await tx.connection.execute(_FORGET, {"age": _FORGOTTEN_AFTER})

    async def _kept(self, stream: Stream, look: StreamLook, eras: Sequence[Era]) -> int | None:
        """Returns the highest sequence that still holds its message; None: the newest does, 0: none does.

        Searches backwards in growing steps, then halves the distance: a few dozen looks at any size.
        """
        newest = await self._newest(eras, _TOP)
        if newest is None or await _holds(stream, look, newest):
            return None
        lost, step = newest[0], 1
        while lost > step and (row := await self._newest(eras, lost - step)) and not await _holds(stream, look, row):
            lost, step = row[0], step * 2
        there = max(lost - step, 0)
        while lost - there > 1:
            middle = (there + lost) // 2
            row = await self._newest(eras, middle)
            if row is None or row[0] <= there or await _holds(stream, look, row):
                there = middle
            else:
                lost = row[0]
        return there

    async def _newest(self, eras: Sequence[Era], at_most: int) -> "_Newest | None":
        """Returns the newest valid mark up to this sequence."""
        kept = [_TOP if era.kept is None else era.kept for era in eras]
        marks = {"era_times": [era.era_time for era in eras], "kept": kept, "at_most": at_most}
        async with self._database.statement() as connection:
            row = (await connection.execute(_NEWEST, marks)).one_or_none()
        return (row.stream_sequence, row.event_ids) if row else None


_Newest = tuple[int, Sequence[str]]
"""A sequence and the events of its message."""


def _page(rows: Sequence[OutboxRow], limit: int) -> Sequence[OutboxRow]:
    """Returns the first rows, up to the one that reaches the limit of events."""
    reached = bisect_left(list(accumulate(row.events for row in rows)), limit)
    return rows[: reached + 1]


async def _load(connection: AsyncConnection) -> list[Era]:
    return [Era(*row) for row in await connection.execute(_ALL)]


async def _unknown(connection: AsyncConnection, eras: Sequence[Era]) -> datetime | None:
    """Returns an unrecorded era. Searches between the known ones, to skip the dead index entries of their rows."""
    bounds = [_EVER[0], *(era.era_time for era in eras), _EVER[1]]
    for above, below in pairwise(bounds):
        found: datetime | None = (await connection.execute(_UNKNOWN, {"above": above, "below": below})).scalar()
        if found is not None:
            return found
    return None


def _same(one: datetime, other: datetime) -> bool:
    return abs(one - other) <= _TOLERANCE


def _marks(eras: Sequence[Era]) -> list[tuple[datetime, int | None]]:
    """Returns the validity of marks, on which the progress of healing has no influence."""
    return [(era.era_time, era.kept) for era in eras]


async def _holds(stream: Stream, look: StreamLook, newest: _Newest) -> bool:
    """Returns whether the stream holds these events, or its limits have discarded them, which is no loss."""
    sequence, event_ids = newest
    return sequence < look.first_sequence or _contains(await stream.payload(sequence), event_ids)


def _contains(payload: bytes | None, event_ids: Iterable[str]) -> bool:
    try:
        there = {event.id for event in bus_pb2.Envelope.FromString(payload or b"").events}
    except DecodeError:  # another publisher's, under a reused sequence
        return False
    return there.issuperset(event_ids)
