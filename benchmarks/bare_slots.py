"""Measures the floor of adding to queues: the same rows inserted by bare SQL, with none of Queue's promises."""

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence

import asyncpg

from benchmarks.queue_calls import Slot

_COPIES = """
    drop table if exists bare_slot, bare_slot_target;
    create table bare_slot (like slot including all);
    create table bare_slot_target (like slot_target including all)
"""
_COLUMNS = """
    select string_agg(quote_ident(column_name), ', ' order by ordinal_position) from information_schema.columns
    where table_name = $1 and is_generated = 'NEVER'
"""
_INSERT = """
    with added as (
        insert into bare_slot ({slot}) select {slot} from slot where organization_id = $1 and id = any($2::text[])
    )
    insert into bare_slot_target ({slot_target})
    select {slot_target} from slot_target where organization_id = $1 and slot_id = any($2::text[])
"""


async def inserted(url: str, slots: Sequence[Slot], *, at_once: int, connections: int) -> float:
    """Returns the seconds that a slot takes, if so many of an organization are inserted in each transaction."""
    opened = [await asyncpg.connect(url) for _ in range(connections)]
    try:
        await opened[0].execute(_COPIES)
        names = {table: await opened[0].fetchval(_COLUMNS, table) for table in ("slot", "slot_target")}
        began = time.perf_counter()
        await _insert(opened, names, groups(slots, at_once))
        return (time.perf_counter() - began) / len(slots)
    finally:
        for connection in opened:
            await connection.close()


def groups(slots: Sequence[Slot], at_once: int) -> list[tuple[str, list[str]]]:
    """Splits slots into transactions, each with an organization and the ids of its slots."""
    by_organization: dict[str, list[str]] = {}
    for slot in slots:
        by_organization.setdefault(slot.organization_id, []).append(slot.id)
    return [
        (organization_id, ids[first : first + at_once])
        for organization_id, ids in by_organization.items()
        for first in range(0, len(ids), at_once)
    ]


async def _insert(
    connections: Sequence["asyncpg.Connection"], columns: Mapping[str, str], wanted: Sequence[tuple[str, list[str]]]
) -> None:
    left = iter(wanted)
    async with asyncio.TaskGroup() as group:
        for connection in connections:
            group.create_task(_insert_from(connection, _INSERT.format(**columns), left))


async def _insert_from(connection: "asyncpg.Connection", statement: str, left: Iterator[tuple[str, list[str]]]) -> None:
    for organization_id, ids in left:
        await connection.execute(statement, organization_id, ids)
