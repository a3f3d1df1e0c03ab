"""Statements on `publish_stream`: the last known state of the stream PUBLISH, in one row that all processes share."""

from dataclasses import dataclass

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from queue_service.domain.stream import ROUNDING, StreamMark
from servicekit.pg.session import Session, Statement

_FIND = "select create_time, last_sequence, losses, is_recovering from publish_stream where name = :name"
_FIND_STREAM = text(_FIND)
_LOCK_STREAM = text(f"{_FIND} for update")
# A process that checked the stream earlier than another one must not set the mark back.
_SAVE_MARK = text("""
    insert into publish_stream as p (name, create_time, last_sequence, losses, is_recovering)
    values (:name, :create_time, :last_sequence, 0, false)
    on conflict (name) do update set last_sequence = excluded.last_sequence
    where p.create_time between excluded.create_time - cast(:rounding as interval)
            and excluded.create_time + cast(:rounding as interval)
        and p.last_sequence < excluded.last_sequence
""")
_SAVE_LOSS = text("""
    update publish_stream set
        create_time = :create_time, last_sequence = :last_sequence, losses = losses + 1, is_recovering = true
    where name = :name
""")
_LOSSES = Statement("select losses from publish_stream where name = :name")
_SAVE_RECOVERY = text("update publish_stream set is_recovering = false where name = :name and losses = :losses")


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownStream:
    """The stream as a process last saw it, and how often it has lost commands."""

    mark: StreamMark
    losses: int
    is_recovering: bool


async def find_stream(connection: AsyncConnection, name: str, *, lock: bool = False) -> KnownStream | None:
    statement = _LOCK_STREAM if lock else _FIND_STREAM
    row = (await connection.execute(statement, {"name": name})).one_or_none()
    if row is None:
        return None
    mark = StreamMark(row.create_time, row.last_sequence)
    return KnownStream(mark=mark, losses=row.losses, is_recovering=row.is_recovering)


async def count_losses(session: Session, name: str) -> int:
    """Returns how often the stream has lost commands."""
    return await session.fetch_value(_LOSSES, {"name": name}) or 0


async def save_mark(connection: AsyncConnection, name: str, mark: StreamMark) -> None:
    await connection.execute(_SAVE_MARK, {"name": name, "rounding": ROUNDING} | mark._asdict())


async def save_loss(connection: AsyncConnection, name: str, mark: StreamMark) -> None:
    """Counts a loss, whose recovery begins. The row is locked."""
    await connection.execute(_SAVE_LOSS, {"name": name} | mark._asdict())


async def save_recovery(connection: AsyncConnection, name: str, losses: int) -> None:
    """Ends the recovery of this loss, unless another loss has followed."""
    await connection.execute(_SAVE_RECOVERY, {"name": name, "losses": losses})
