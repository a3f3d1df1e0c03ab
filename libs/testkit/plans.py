"""What PostgreSQL would do: the plan of a statement, node by node."""

from collections.abc import Iterator
from typing import Any

from sqlalchemy import TextClause
from sqlalchemy.dialects.postgresql.asyncpg import dialect

from servicekit.pg.database import Database


async def planned(database: Database, statement: TextClause) -> list[dict[str, Any]]:
    """The plan that serves every value, as a service pins it."""
    compiled = statement.compile(dialect=dialect())  # type: ignore[no-untyped-call]
    values = ", ".join("null" for _ in compiled.params)
    async with database.read() as connection:
        raw: Any = (await connection.get_raw_connection()).driver_connection
        await raw.execute(f"prepare statement as {compiled}")
        (top,) = await raw.fetchval(f"explain (format json) execute statement{f' ({values})' * bool(values)}")
        await raw.execute("deallocate statement")
    return list(nodes_of(top["Plan"]))


def nodes_of(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """From the top, as `explain` prints them."""
    yield plan
    for below in plan.get("Plans", ()):
        yield from nodes_of(below)
