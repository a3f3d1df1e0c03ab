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
    delete from outbox where position = any(array(
        select position from (
            select position, create_time, stream_sequence from outbox order by position limit {_BATCH}
        ) as oldest
        where stream_sequence is not null and create_time < :cutoff
    ))
""")  # noqa: S608 - a constant
_AGE = {"inbox": "receive_time", "request_ledger": "create_time", "dead_letter": "create_time"}
_BY_AGE = {
    table: text(f"""
        delete from {table} where ctid = any(array(
            select ctid from {table} where {age} < :cutoff order by {age} limit {_BATCH}
        ))
    """)  # noqa: S608 - constants
    for table, age in _AGE.items()
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
            counts = [
                (await connection.execute(statement, {"cutoff": now - getattr(self._retention, table)})).rowcount
                for table, statement in {"outbox": _OUTBOX, **_BY_AGE}.items()
            ]
        return max(counts) >= _BATCH
