"""Messages that a consumer could not apply: kept with the reason until a person redrives or archives them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from opentelemetry import metrics
from sqlalchemy import RowMapping, text
from sqlalchemy.ext.asyncio import AsyncConnection

from servicekit.ids import IdSource
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction

MOST_OPEN = 100_000
"""The number of open letters that a database holds; further messages stay in their stream."""

_COLUMNS = """id, organization_id, consumer, subject, reason, length(payload) as size, create_time, state, redrives,
    redrive_time, end_time"""
_IS_FULL = text(
    "select 1 from dead_letter where state = 'OPEN' order by consumer, create_time, id offset :most limit 1"
)
_INSERT = text("""
    insert into dead_letter (id, organization_id, consumer, subject, reason, payload, create_time)
    values (:id, :organization_id, :consumer, :subject, :reason, :payload, :now)
""")
_LIST = text(f"""
    select {_COLUMNS}, substring(payload for :payload_bytes) as payload
    from dead_letter
    where (create_time, id) > (cast(:after_time as timestamptz), cast(:after_id as text))
      and (:organization_id = '' or organization_id = :organization_id)
      and (:consumer = '' or consumer = :consumer)
      and state = any(cast(:states as text[]))
    order by create_time, id limit :limit
""")  # noqa: S608 - a constant
_GET = text(f"""
    select {_COLUMNS}, payload from dead_letter where id = any(cast(:ids as text[])) order by create_time, id
""")  # noqa: S608 - a constant
_COUNT = text("""
    select consumer, count(*) from dead_letter
    where state = 'OPEN' and (:organization_id = '' or organization_id = :organization_id)
    group by consumer
""")
_REDRIVEN = text("""
    update dead_letter set state = 'REDRIVEN', redrives = redrives + 1, redrive_time = :now, end_time = :now
    where id = :id and state <> 'REDRIVEN' returning id
""")
_FAILED_AGAIN = text("""
    update dead_letter set reason = :reason, redrives = redrives + 1, redrive_time = :now
    where id = :id and state <> 'REDRIVEN'
""")
_ARCHIVE = text("""
    update dead_letter set state = 'ARCHIVED', end_time = :now
    where id = any(cast(:ids as text[])) and state = 'OPEN'
      and (:organization_id = '' or organization_id = :organization_id)
    returning id
""")
_BEGINNING = (datetime.fromisoformat("0001-01-01T00:00:00+00:00"), "")

_meter = metrics.get_meter(__name__)
_open = _meter.create_gauge(
    "postflow.dead_letters.open", description="Dead letters that nobody has redriven or archived"
)


class DeadLetterState(StrEnum):
    OPEN = "OPEN"
    REDRIVEN = "REDRIVEN"
    ARCHIVED = "ARCHIVED"


class DeadLettersFull(Exception):
    """Too many letters are open: a message that should be parked stays in its stream."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    id: str
    organization_id: str  # empty if the message could not be read
    consumer: str
    subject: str
    reason: str
    payload: bytes
    size: int  # of the whole payload, in bytes
    create_time: datetime
    state: DeadLetterState
    redrives: int
    redrive_time: datetime | None
    end_time: datetime | None  # when it was redriven or archived


class DeadLetters:
    def __init__(self, database: Database, clock: DatabaseClock, ids: IdSource, *, most_open: int = MOST_OPEN) -> None:
        self._database = database
        self._clock = clock
        self._ids = ids
        self._most_open = most_open

    async def add(self, *, consumer: str, subject: str, reason: str, payload: bytes) -> None:
        async with self._database.transaction() as tx:
            now = await self._clock.now(tx.connection)
            await self.add_in(tx, consumer=consumer, subject=subject, reason=reason, payload=payload, now=now)

    async def add_in(
        self,
        tx: Transaction,
        *,
        consumer: str,
        subject: str,
        reason: str,
        payload: bytes,
        now: datetime,
        organization_id: str = "",
    ) -> None:
        """Adds a letter in the caller's transaction, so that it is written once."""
        if (await tx.connection.execute(_IS_FULL, {"most": self._most_open - 1})).first():
            raise DeadLettersFull(f"{self._most_open} dead letters are open: redrive or archive them")
        await tx.connection.execute(
            _INSERT,
            {
                "id": self._ids.new(),
                "organization_id": organization_id,
                "consumer": consumer,
                "subject": subject,
                "reason": reason,
                "payload": payload,
                "now": now,
            },
        )

    async def list(
        self,
        *,
        limit: int = 100,
        after: tuple[datetime, str] | None = None,
        organization_id: str = "",
        consumer: str = "",
        states: Sequence[DeadLetterState] = tuple(DeadLetterState),
        payload_bytes: int = 65_536,
    ) -> Sequence[DeadLetter]:
        """Returns letters, oldest first, with at most `payload_bytes` of each payload."""
        after_time, after_id = after or _BEGINNING
        question = {
            "limit": limit,
            "after_time": after_time,
            "after_id": after_id,
            "organization_id": organization_id,
            "consumer": consumer,
            "states": list(states),
            "payload_bytes": payload_bytes,
        }
        async with self._database.read() as connection:
            return [_letter(row) for row in (await connection.execute(_LIST, question)).mappings()]

    async def get(self, ids: Sequence[str]) -> Sequence[DeadLetter]:
        """Returns the letters that exist, with their whole payloads."""
        async with self._database.read() as connection:
            return [_letter(row) for row in (await connection.execute(_GET, {"ids": list(ids)})).mappings()]

    async def count_open(self, organization_id: str = "") -> Mapping[str, int]:
        async with self._database.read() as connection:
            return await count_open(connection, organization_id)

    async def redriven_in(self, tx: Transaction, letter_id: str, *, now: datetime) -> bool:
        """Closes a letter in the transaction that applies it. Returns False if it has been redriven meanwhile."""
        return (await tx.connection.execute(_REDRIVEN, {"id": letter_id, "now": now})).first() is not None

    async def redriven(self, letter_id: str) -> None:
        async with self._database.transaction() as tx:
            await self.redriven_in(tx, letter_id, now=await self._clock.now(tx.connection))

    async def failed_again(self, letter_id: str, reason: str) -> None:
        async with self._database.transaction() as tx:
            now = await self._clock.now(tx.connection)
            await tx.connection.execute(_FAILED_AGAIN, {"id": letter_id, "reason": reason, "now": now})

    async def archive(self, ids: Sequence[str], organization_id: str = "") -> Sequence[str]:
        """Archives open letters, and returns the ids of those that were open."""
        async with self._database.transaction() as tx:
            now = await self._clock.now(tx.connection)
            answer = await tx.connection.execute(
                _ARCHIVE, {"ids": list(ids), "organization_id": organization_id, "now": now}
            )
            return [letter_id for (letter_id,) in answer]


async def count_open(connection: AsyncConnection, organization_id: str = "") -> Mapping[str, int]:
    counts = (await connection.execute(_COUNT, {"organization_id": organization_id})).mappings()
    return {row["consumer"]: row["count"] for row in counts}


class OpenLetters:
    """The gauge of open letters, which is 0 for a consumer that has none left."""

    def __init__(self) -> None:
        self._shown: set[str] = set()

    async def observe(self, connection: AsyncConnection) -> None:
        counts = await count_open(connection)
        self._shown |= counts.keys()
        for consumer in self._shown:
            _open.set(counts.get(consumer, 0), {"consumer": consumer})


def show_none(consumer: str) -> None:
    """Shows 0 from the start, so that an alarm sees the first letter of a consumer as a change."""
    _open.set(0, {"consumer": consumer})


def _letter(row: RowMapping) -> DeadLetter:
    fields = dict(row)
    return DeadLetter(**fields | {"state": DeadLetterState(fields["state"])})
