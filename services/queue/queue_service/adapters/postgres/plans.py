"""Planner settings that keep batch statements from scanning whole tables."""

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from servicekit.pg.session import Session, Statement

# A generic plan does not know the length of an array or a LIMIT, and a plan made while a table was small stays in use
# when it has grown. Batches need index scans that stop early, and lookups by key: never a bitmap of everything that is
# due, never a merge with a whole index.
_PIN_PLANS = Statement("""
    select set_config('enable_bitmapscan', 'off', true), set_config('enable_hashjoin', 'off', true),
        set_config('enable_mergejoin', 'off', true)
""")


_PIN_PLANS_SLOWLY = text(_PIN_PLANS.text)


async def pin_plans(session: Session) -> None:
    """Pins the plans of all further statements of this session's transaction."""
    await session.execute(_PIN_PLANS)


async def pin_plans_of(connection: AsyncConnection) -> None:
    """Pins the plans of all further statements of this connection's transaction."""
    await connection.execute(_PIN_PLANS_SLOWLY)
