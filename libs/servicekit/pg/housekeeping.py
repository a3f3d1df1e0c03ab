"""Deletes what has served its time, oldest first and a bounded number of rows at a time, until nothing old is left."""

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
    """Dead letters that nobody has redriven or archived are never deleted."""

    outbox: timedelta = timedelta(days=1)  # after the event was appended, and never before the stream has it
    inbox: timedelta = timedelta(days=7)
    request_ledger: timedelta = timedelta(hours=24)
    redriven_letters: timedelta = timedelta(days=7)
    archived_letters: timedelta = timedelta(days=30)


# A pass goes through the outbox by position. What the stream has not acknowledged stays and does not end the pass; nor
# does what the stream has lost, which stays until it was published again.
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
    # Replicas clean up at the same time: each takes rows that the other has not.
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
        self._after = 0  # the position up to which this pass has seen the outbox

    async def step(self) -> bool:
        """True: there is more to delete."""
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
