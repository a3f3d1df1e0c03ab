"""Plans of statements, node by node, and what statements read when they run."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from datetime import datetime
from typing import Any

from sqlalchemy import TextClause, event
from sqlalchemy.dialects.postgresql.asyncpg import dialect
from sqlalchemy.ext.asyncio import AsyncConnection

from servicekit.pg.database import Database
from servicekit.pg.session import Row, Statement

READ_PER_ROW = 4
"""Rows that a statement may read for each row that it is about: the row, its index entry, and the odd neighbour."""


class Explaining:
    """A connection or session that explains each statement before it runs it: prepared, with the generic plan."""

    def __init__(self, connection: AsyncConnection, *, growing: Set[str]) -> None:
        """`growing` are the tables that no statement may scan."""
        self._connection = connection
        self._growing = growing
        self.read: list[tuple[str, dict[str, Any]]] = []

    @property
    def connection(self) -> "Explaining":
        """Stands in for a session's connection, through which it runs some statements with SQLAlchemy."""
        return self

    async def execute(self, statement: Any, values: Mapping[str, object] | None = None) -> Any:
        """Stands in for both kinds of `execute`: that of SQLAlchemy's connection and that of a session."""
        await self._explain(statement.text, values or {})
        if isinstance(statement, Statement):
            status = await (await self._driver()).execute(statement.sql, *statement.arguments(values or {}))
            return int(status.rpartition(" ")[2])
        return await self._connection.execute(statement, values or {})

    async def fetch(self, statement: Statement, values: Mapping[str, object] | None = None) -> list[Row]:
        await self._explain(statement.text, values or {})
        arguments = statement.arguments(values or {})
        rows: list[Row] = await (await self._driver()).fetch(statement.sql, *arguments, record_class=Row)
        return rows

    async def fetch_row(self, statement: Statement, values: Mapping[str, object] | None = None) -> Row | None:
        rows = await self.fetch(statement, values)
        return rows[0] if rows else None

    async def fetch_value(self, statement: Statement, values: Mapping[str, object] | None = None) -> Any:
        row = await self.fetch_row(statement, values)
        return row[0] if row else None

    async def _driver(self) -> Any:
        return (await self._connection.get_raw_connection()).driver_connection

    async def _explain(self, text: str, values: Mapping[str, object]) -> None:
        prepared = Statement(text)
        await self._connection.exec_driver_sql(f"prepare explained as {prepared.sql}")
        arguments = f"({', '.join(map(_literal, prepared.arguments(values)))})" if prepared.names else ""
        async with self._connection.begin_nested() as what_it_writes:
            explained = await self._connection.exec_driver_sql(
                f"explain (analyze, format json) execute explained{arguments}"
            )
            plan: Any = explained.scalar_one()
            await what_it_writes.rollback()
        (top,) = json.loads(plan) if isinstance(plan, str) else plan
        await self._connection.exec_driver_sql("deallocate explained")
        self.read.append((text, top["Plan"]))

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


def listen(database: Database, heard: Callable[[str, Sequence[Any]], None]) -> None:
    """Has `heard` called with each statement and its values, whether SQLAlchemy runs it or a session."""

    def cold(_connection: object, _cursor: object, statement: str, values: Any, *_: object) -> None:
        heard(statement, values)

    event.listen(database.engine.sync_engine, "before_cursor_execute", cold)
    database.listeners.append(heard)


async def planned(database: Database, statement: TextClause | Statement) -> list[dict[str, Any]]:
    """Returns the nodes of the statement's generic plan, which services use for all values."""
    async with database.read() as connection:
        return await planned_on(connection, statement)


async def planned_on(connection: AsyncConnection, statement: TextClause | Statement) -> list[dict[str, Any]]:
    """Returns the nodes of the statement's generic plan under the settings of the connection's transaction."""
    if isinstance(statement, Statement):
        compiled, parameters = statement.sql, len(statement.names)
    else:
        clause = statement.compile(dialect=dialect())  # type: ignore[no-untyped-call]
        compiled, parameters = str(clause), len(clause.params)
    values = ", ".join(["null"] * parameters)
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
