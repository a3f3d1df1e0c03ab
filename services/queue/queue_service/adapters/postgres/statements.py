"""What the statements share: plans, and rows put together."""

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

# A generic plan knows nothing of the length of an array or of a LIMIT, and a plan made while a table was small outlives
# that. What the hot statements need are index scans that stop, and lookups by key: never a bitmap of everything that is
# due, never a merge with a whole index.
_PIN_PLANS = text("""
    select set_config('enable_bitmapscan', 'off', true), set_config('enable_hashjoin', 'off', true),
        set_config('enable_mergejoin', 'off', true)
""")


async def pin_plans(connection: AsyncConnection) -> None:
    """Until the end of the transaction."""
    await connection.execute(_PIN_PLANS)


def rows_by_slot(rows: Sequence[Any]) -> Iterable[list[Any]]:
    """One row per target in, which begins with the slot's key; one list per slot out."""
    slots: dict[tuple[str, str], list[Any]] = {}
    for row in rows:
        slots.setdefault(row[:2], []).append(row)
    return slots.values()
