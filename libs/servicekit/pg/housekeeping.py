"""Deletes what has served its time, oldest first and a bounded number of rows at a time."""

from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import text

from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database

_BATCH = 5000


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    outbox: timedelta = timedelta(days=1)
    inbox: timedelta = timedelta(days=7)
    request_ledger: timedelta = timedelta(hours=24)
    dead_letter: timedelta = timedelta(days=7)


# The oldest rows are looked at, not the whole table: a table without old rows costs one short index scan.
_OUTBOX = text(f"""
    delete from outbox where position in (
        select position from (
            select position, create_time, stream_sequence from outbox order by position limit {_BATCH}
        ) as oldest
        where stream_sequence is not null and create_time < :cutoff
    )
""")
_BY_AGE = {
    "inbox": text("delete from inbox where receive_time < :cutoff"),
    "request_ledger": text("delete from request_ledger where create_time < :cutoff"),
    "dead_letter": text("delete from dead_letter where create_time < :cutoff"),
}


class Housekeeping:
    def __init__(self, database: Database, clock: DatabaseClock, retention: Retention) -> None:
        self._database = database
        self._clock = clock
        self._retention = retention

    async def step(self) -> bool:
        """True: there is more to delete."""
        async with self._database.read() as connection:
            now = await self._clock.now(connection)
            deleted = await connection.execute(_OUTBOX, {"cutoff": now - self._retention.outbox})
            for table, statement in _BY_AGE.items():
                await connection.execute(statement, {"cutoff": now - getattr(self._retention, table)})
        return deleted.rowcount >= _BATCH
