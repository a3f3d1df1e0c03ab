"""Messages that a consumer cannot take: kept with the reason, so that the consumer goes on and a person can look."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import text

from servicekit.ids import IdSource
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction

_INSERT = text("""
    insert into dead_letter (id, consumer, subject, reason, payload, create_time)
    values (:id, :consumer, :subject, :reason, :payload, :now)
""")
_LIST = text(
    "select id, consumer, subject, reason, payload, create_time from dead_letter order by create_time, id limit :limit"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    id: str
    consumer: str
    subject: str
    reason: str
    payload: bytes
    create_time: datetime


class DeadLetters:
    def __init__(self, database: Database, clock: DatabaseClock, ids: IdSource) -> None:
        self._database = database
        self._clock = clock
        self._ids = ids

    async def add(self, *, consumer: str, subject: str, reason: str, payload: bytes) -> None:
        async with self._database.transaction() as tx:
            now = await self._clock.now(tx.connection)
            await self.add_in(tx, consumer=consumer, subject=subject, reason=reason, payload=payload, now=now)

    async def add_in(
        self, tx: Transaction, *, consumer: str, subject: str, reason: str, payload: bytes, now: datetime
    ) -> None:
        """In a transaction of the caller's, for a letter that must be written once."""
        await tx.connection.execute(
            _INSERT,
            {
                "id": self._ids.new(),
                "consumer": consumer,
                "subject": subject,
                "reason": reason,
                "payload": payload,
                "now": now,
            },
        )

    async def list(self, *, limit: int = 100) -> Sequence[DeadLetter]:
        async with self._database.read() as connection:
            return [DeadLetter(**row) for row in (await connection.execute(_LIST, {"limit": limit})).mappings()]
