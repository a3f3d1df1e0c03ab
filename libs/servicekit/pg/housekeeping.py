"""Deletes expired rows, oldest first and a bounded number at a time, until none is left."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import TextClause, text
from sqlalchemy.ext.asyncio import AsyncConnection

from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database
from servicekit.pg.dead_letters import OpenLetters

_BATCH = 5000


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """The ages at which rows expire. Open dead letters are never deleted."""

    outbox: timedelta = timedelta(days=1)  # after the event was appended, and not before the stream has it
    inbox: timedelta = timedelta(days=7)
    request_ledger: timedelta = timedelta(hours=24)
    redriven_letters: timedelta = timedelta(days=7)
    archived_letters: timedelta = timedelta(days=30)


# A pass goes through the outbox by position. Rows that the stream has not acknowledged, or has lost, stay and do not
# end the pass.
_OUTBOX = text(f"""
    with oldest as materialized (
        select position, create_time, stream_time, stream_sequence from outbox
        where position > :after order by position limit {_BATCH}
    ), gone as (
        delete from outbox where position = any(array(
            select position from outbox where position = any(array(
                select position from oldest where stream_sequence is not null and create_time < :cutoff and not exists (
                    select from outbox_era where era_time = oldest.stream_time and oldest.stream_sequence > healed
                )
            )) for update skip locked
        ))
    )
    select coalesce(max(position), 0), count(*) = {_BATCH} and bool_and(create_time < :cutoff) from oldest
""")  # noqa: S608 - a constant


def _by_age(table: str, age: str, condition: str = "true") -> TextClause:
    # Replicas clean up concurrently: each takes other rows.
    return text(f"""
        delete from {table} where ctid = any(array(
            select ctid from {table} where {age} < :cutoff and {condition}
            order by {age} limit {_BATCH} for update skip locked
        ))
    """)  # noqa: S608 - constants


_BY_AGE: Mapping[str, TextClause] = {
    "inbox": _by_age("inbox", "receive_time"),
    "request_ledger": _by_age("request_ledger", "create_time"),
    "redriven_letters": _by_age("dead_letter", "end_time", "end_time is not null and state = 'REDRIVEN'"),
    "archived_letters": _by_age("dead_letter", "end_time", "end_time is not null and state = 'ARCHIVED'"),
}


class Housekeeping:
    def __init__(self, database: Database, clock: DatabaseClock, retention: Retention) -> None:
        self._database = database
        self._clock = clock
        self._retention = retention
        self._open_letters = OpenLetters()
        self._after = 0  # the position that this pass over the outbox has reached

    async def step(self) -> bool:
        """Deletes a batch of each table. Returns whether there is more to delete."""
        async with self._database.statement() as connection:
            now = await self._clock.now(connection)
            more = await self._outbox(connection, now - self._retention.outbox)
            for name, statement in _BY_AGE.items():
                cutoff = now - getattr(self._retention, name)
                more |= (await connection.execute(statement, {"cutoff": cutoff})).rowcount >= _BATCH
            if not more:
                await self._open_letters.observe(connection)
        return more

    async def _outbox(self, connection: AsyncConnection, cutoff: datetime) -> bool:
        answer = await connection.execute(_OUTBOX, {"after": self._after, "cutoff": cutoff})
        seen, more = answer.one()
        self._after = seen if more else 0
        return bool(more)
