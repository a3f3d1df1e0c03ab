"""Plans of statements, node by node, and what statements read when they run."""

import json
import re
from collections.abc import Iterator, Mapping, Set
from datetime import datetime
from typing import Any

from sqlalchemy import CursorResult, TextClause
from sqlalchemy.dialects.postgresql.asyncpg import dialect
from sqlalchemy.ext.asyncio import AsyncConnection

from servicekit.pg.database import Database

READ_PER_ROW = 4
"""Rows that a statement may read for each row that it is about: the row, its index entry, and the odd neighbour."""


class Explaining:
    """A connection that explains each statement before it runs it: its own text, prepared, with the generic plan."""

    def __init__(self, connection: AsyncConnection, *, growing: Set[str]) -> None:
        """`growing` are the tables that no statement may scan."""
        self._connection = connection
        self._growing = growing
        self.read: list[tuple[str, dict[str, Any]]] = []

    async def execute(self, statement: TextClause, values: Mapping[str, object] | None = None) -> CursorResult[Any]:
        names: list[str] = []

        def numbered(found: re.Match[str]) -> str:
            if found[1] not in names:
                names.append(found[1])
            return f"${names.index(found[1]) + 1}"

        values = values or {}
        prepared = re.sub(r"(?<![:\w]):([a-z_]+)", numbered, statement.text)
        await self._connection.exec_driver_sql(f"prepare explained as {prepared}")
        arguments = f"({', '.join(_literal(values[each]) for each in names)})" if names else ""
        async with self._connection.begin_nested() as what_it_writes:
            explained = await self._connection.exec_driver_sql(
                f"explain (analyze, format json) execute explained{arguments}"
            )
            plan: Any = explained.scalar_one()
            await what_it_writes.rollback()
        (top,) = json.loads(plan) if isinstance(plan, str) else plan
        await self._connection.exec_driver_sql("deallocate explained")
        self.read.append((statement.text, top["Plan"]))
        return await self._connection.execute(statement, values)

    def check(self, rows: int) -> None:
        """Asserts that every statement so far read no more than these rows, and their neighbours."""
        assert self.read
        for statement, plan in self.read:
            for node in nodes_of(plan):
                loops = node["Actual Loops"]
                removed = sum(loops * node[name] for name in node if name.startswith("Rows Removed"))
                seen = loops * node["Actual Rows"] + removed
                where = f"{node['Node Type']} {node.get('Relation Name', '')} {node.get('Index Cond', '')}\n{statement}"
                if node.get("Relation Name") in self._growing:
                    assert node["Node Type"] != "Seq Scan", where
                assert seen <= READ_PER_ROW * rows, f"{seen} rows: {where}"


async def planned(database: Database, statement: TextClause) -> list[dict[str, Any]]:
    """Returns the nodes of the statement's generic plan, which services use for all values."""
    compiled = statement.compile(dialect=dialect())  # type: ignore[no-untyped-call]
    values = ", ".join("null" for _ in compiled.params)
    async with database.read() as connection:
        raw: Any = (await connection.get_raw_connection()).driver_connection
        await raw.execute(f"prepare statement as {compiled}")
        (top,) = await raw.fetchval(f"explain (format json) execute statement{f' ({values})' * bool(values)}")
        await raw.execute("deallocate statement")
    return list(nodes_of(top["Plan"]))


def nodes_of(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yields the nodes from the top down, as `explain` prints them."""
    yield plan
    for below in plan.get("Plans", ()):
        yield from nodes_of(below)


def _literal(value: object) -> str:
    return "null" if value is None else "'" + _plain(value).replace("'", "''") + "'"


def _plain(value: object) -> str:
    match value:
        case None:
            return "null"
        case bytes():
            return f"\\x{value.hex()}"
        case datetime():
            return value.isoformat()
        case list():
            return "{" + ",".join(_element(each) for each in value) + "}"
        case _:
            return str(value)


def _element(value: object) -> str:
    return "null" if value is None else '"' + _plain(value).replace("\\", "\\\\") + '"'
