"""A future backlog costs nothing: what is due is a range of the index, and each locked row is found by its key."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import TextClause, text
from sqlalchemy.dialects.postgresql.asyncpg import dialect
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

import jobkit
from jobkit.stores.columns import SqlColumns
from jobkit.stores.statements import Statements
from servicekit.pg.database import Database, async_url
from testkit.jobs import create_table

README = Path(jobkit.__file__).with_name("README.md").read_text()
DUE, KEY = "job_due", "job_pkey"
STATEMENTS = Statements("job", None, SqlColumns(), "not auto_remove and data is not null", {})
EXPECTED: list[tuple[TextClause, set[str]]] = [
    (STATEMENTS.lock_next(250, True), {DUE, KEY}),
    (STATEMENTS.next_due, {DUE}),
    (STATEMENTS.update("bigint"), {KEY}),
    (STATEMENTS.remove("bigint"), {KEY}),
    (STATEMENTS.extend("bigint"), {KEY}),
    (STATEMENTS.hold("bigint"), {KEY}),
    (STATEMENTS.held("bigint", True), {KEY}),
]
NAMES = ["lock next", "next due", "update", "remove", "extend", "hold", "held"]


async def fill(engine: AsyncEngine, rows: int) -> None:
    await create_table(engine)
    autocommit = engine.execution_options(isolation_level="AUTOCOMMIT")
    async with autocommit.connect() as connection:
        await connection.execute(
            text(
                "insert into job (due_time, sleep_until, interval)"
                " select at, at, '@daily' from (select now() + n * interval '1 minute' as at"
                " from generate_series(1, cast(:rows as integer)) as n) as times"
            ),
            {"rows": rows},
        )
        await connection.execute(text("vacuum analyze job"))


@pytest.fixture(scope="module")
async def large(databases: Any) -> AsyncIterator[AsyncEngine]:
    """200,000 rows of the future, on connections without any settings."""
    url = await databases.empty()
    engine = create_async_engine(async_url(url))
    await fill(engine, 200_000)
    yield engine
    await engine.dispose()
    await databases.drop(url)


@pytest.fixture(scope="module")
async def small(databases: Any) -> AsyncIterator[AsyncEngine]:
    """Ten rows, on the connections of a service."""
    url = await databases.empty()
    database = Database(url, application="test")
    await fill(database.engine, 10)
    yield database.engine
    await database.dispose()
    await databases.drop(url)


@pytest.mark.parametrize("mode", ["force_custom_plan", "force_generic_plan"])
@pytest.mark.parametrize(("statement", "indexes"), EXPECTED, ids=NAMES)
async def test_rows_of_the_future_are_never_read(
    large: AsyncEngine, mode: str, statement: TextClause, indexes: set[str]
) -> None:
    scans = await planned(large, statement, mode)
    assert {scan.get("Index Name") for scan in scans} == indexes, scans
    for scan in scans:
        # Each has its condition in the index; no index has them in order across conditions.
        assert "Index Cond" in scan or statement is STATEMENTS.next_due, scan
        assert scan["Node Type"] in {"Index Scan", "Index Only Scan"}, scan


@pytest.mark.parametrize(("statement", "indexes"), EXPECTED, ids=NAMES)
async def test_a_plan_for_a_small_table_is_right_for_a_large_one(
    small: AsyncEngine, statement: TextClause, indexes: set[str]
) -> None:
    scans = await planned(small, statement, "force_generic_plan")
    assert {scan.get("Index Name") for scan in scans} == indexes, scans
    for scan in scans:
        assert "Index Cond" in scan or statement is STATEMENTS.next_due, scan


CONDITIONS = {
    "literal": (
        Statements("job", None, SqlColumns(), "data->>'kind' = 'mail'", {}),
        "create index job_mail on job (sleep_until, id) where sleep_until is not null and data->>'kind' = 'mail'",
    ),
    "parameter": (
        Statements("job", None, SqlColumns(), "data->>'kind' = :kind", {"kind": "mail"}),
        "create index job_kind on job ((data->>'kind'), sleep_until, id) where sleep_until is not null",
    ),
}


@pytest.mark.parametrize("mode", ["force_custom_plan", "force_generic_plan"])
@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("service", [False, True], ids=["plain connections", "connections of a service"])
async def test_the_readmes_index_skips_rows_that_fail_the_condition(
    databases: Any, condition: str, mode: str, service: bool
) -> None:
    statements, index = CONDITIONS[condition]
    assert index in " ".join(README.split())
    url = await databases.empty()
    database = Database(url, application="test") if service else None
    engine = database.engine if database else create_async_engine(async_url(url))
    await fill(engine, 20_000)
    async with engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
        await connection.execute(text("update job set sleep_until = now() - interval '1 hour' where id % 2 = 0"))
        await connection.execute(text('update job set data = \'{"kind": "mail"}\' where id % 4000 = 0'))
        await connection.execute(text(index))
        await connection.execute(text("vacuum analyze job"))
    try:
        for statement, read in ((statements.lock_next(250, True), 5), (statements.next_due, 1)):
            scans = await planned(engine, statement, mode, analyze=True)
            by_condition = [scan for scan in scans if scan.get("Index Name") not in {None, KEY}]
            assert [(scan["Index Name"] in index, scan["Actual Rows"]) for scan in by_condition] == [(True, read)]
            assert {scan.get("Rows Removed by Filter", 0) for scan in scans} == {0}
    finally:
        await engine.dispose()
        await databases.drop(url)


async def planned(
    engine: AsyncEngine, statement: TextClause, mode: str, *, analyze: bool = False
) -> list[dict[str, Any]]:
    """Returns the scans in the plan for a batch of 250; if it is run, with the rows that they read."""
    compiled = statement.compile(dialect=dialect())  # type: ignore[no-untyped-call]
    values = ", ".join(_VALUES[name] for name in compiled.positiontup or ())
    async with engine.connect() as connection:
        raw: Any = (await connection.get_raw_connection()).driver_connection
        await raw.execute(f"set plan_cache_mode = {mode}")
        await raw.execute(f"prepare statement as {compiled}")
        try:
            arguments = f" ({values})" if values else ""
            how = "analyze, format json" if analyze else "format json"
            (top,) = await raw.fetchval(f"explain ({how}) execute statement{arguments}")
        finally:
            await raw.execute("deallocate statement")
    return list(_scans(top["Plan"]))


_VALUES = {
    "now": "now()",
    "lock_until": "now() + interval '10 minutes'",
    "ids": f"array[{', '.join(map(str, range(1, 251)))}]",
    "owner": "'me'",
    "kind": "'mail'",
    "definitions": "array_fill(null::text, array[250])",
    "fences": "array_fill(1, array[250])",
    "sleep_until": "array_fill(now(), array[250])",
    "due_time": "array_fill(now(), array[250])",
    "attempts": "array_fill(0, array[250])",
    "last_error": "array_fill(null::text, array[250])",
    "finish_time": "array_fill(now(), array[250])",
}


def _scans(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if plan.get("Relation Name") == "job" and "Scan" in plan["Node Type"]:
        yield plan
    if plan["Node Type"] == "Bitmap Index Scan":
        yield plan
    for below in plan.get("Plans", ()):
        yield from _scans(below)
