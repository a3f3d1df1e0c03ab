"""Statements on `sent_commands`: the sequences under which the stream has stored commands, a batch in a row.

A batch is written once and never changed, and deleted when the stream holds none of its commands any more.
"""

from collections.abc import Collection, Sequence

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from queue_service.domain.command import SentBatch, SentCommand
from servicekit.pg.session import Session, Statement

_SAVE = Statement("""
    insert into sent_commands (losses, first_sequence, last_sequence, organization_ids, slot_ids, emissions, channels,
        destinations, sequences)
    values (:losses, :first_sequence, :last_sequence, cast(:organization_ids as text[]), cast(:slot_ids as text[]),
        cast(:emissions as integer[]), cast(:channels as text[]), cast(:destinations as text[]),
        cast(:sequences as bigint[]))
""")
_LIST = text("select id from sent_commands")
_READ = text("""
    select id, losses, first_sequence, last_sequence, organization_ids, slot_ids, emissions, channels, destinations,
        sequences
    from sent_commands where id = any(cast(:ids as bigint[]))
""")
_DELETE = Statement("""
    delete from sent_commands where losses < :losses or (losses = :losses and last_sequence < :first_sequence)
""")
_DELETE_BATCHES = text("delete from sent_commands where id = any(cast(:ids as bigint[]))")
_DELETE_LOST = text("delete from sent_commands")


async def save_sent(session: Session, commands: Sequence[SentCommand], *, losses: int) -> None:
    """Saves where the stream has stored the commands; `losses` counts its losses before they were sent."""
    columns = list(zip(*commands, strict=True))
    names = ("organization_ids", "slot_ids", "emissions", "channels", "destinations", "sequences")
    sequences = [each.sequence for each in commands]
    await session.execute(
        _SAVE,
        dict(zip(names, map(list, columns), strict=True))
        | {"losses": losses, "first_sequence": min(sequences), "last_sequence": max(sequences)},
    )


async def list_sent(connection: AsyncConnection) -> set[int]:
    return set((await connection.execute(_LIST)).scalars())


async def read_sent(connection: AsyncConnection, ids: Collection[int]) -> list[SentBatch]:
    result = await connection.execute(_READ, {"ids": sorted(ids)})
    return [
        SentBatch(
            id=row.id,
            losses=row.losses,
            first_sequence=row.first_sequence,
            last_sequence=row.last_sequence,
            commands=[
                SentCommand(*each)
                for each in zip(
                    row.organization_ids,
                    row.slot_ids,
                    row.emissions,
                    row.channels,
                    row.destinations,
                    row.sequences,
                    strict=True,
                )
            ],
        )
        for row in result
    ]


async def delete_sent(session: Session, *, first_sequence: int, losses: int) -> None:
    """Deletes what the stream, whose first sequence this is, no longer holds, or has lost."""
    await session.execute(_DELETE, {"first_sequence": first_sequence, "losses": losses})


async def delete_batches(connection: AsyncConnection, ids: Collection[int]) -> None:
    await connection.execute(_DELETE_BATCHES, {"ids": sorted(ids)})


async def delete_all_sent(connection: AsyncConnection) -> None:
    """Deletes everything: the stream has lost commands, and nothing says which."""
    await connection.execute(_DELETE_LOST)
