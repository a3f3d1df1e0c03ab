"""Periodic queries must never read a table in full."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import TextClause, text

from servicekit.messaging import eras, relay
from servicekit.pg import housekeeping, ledger
from servicekit.pg.database import Database
from servicekit.pg.session import Statement

ROWS = 20_000
MOST_PAGES = 60
STREAM = datetime(2026, 3, 1, tzinfo=UTC)
LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


@pytest.fixture
async def full(database: Database) -> Database:
    """Fills the tables with a day's rows, none of which is due."""
    async with database.statement() as connection:
        await connection.execute(
            text("""
                insert into outbox (event_id, subject, payload, create_time, stream_time, stream_sequence)
                select n::text, 's', 'x', now(), :stream, n / 50 from generate_series(1, :rows) as n
            """),
            {"rows": ROWS, "stream": STREAM},
        )
        for statement in (
            "insert into inbox select 'c', n::text, now() from generate_series(1, :rows) as n",
            "insert into request_ledger select '', '', n::text, '', null, null, now() from generate_series(1, :rows) n",
            "insert into dead_letter select n::text, 'c', 's', 'r', '', now() from generate_series(1, :rows) as n",
        ):
            await connection.execute(text(statement), {"rows": ROWS})
        await connection.execute(text("vacuum analyze"))
    return database


async def _pages(database: Database, statement: TextClause | Statement, **parameters: object) -> int:
    """Returns how many pages the statement reads, by PostgreSQL's own count."""
    async with database.transaction() as tx:
        explained = await tx.connection.execute(
            text(f"explain (analyze, buffers, format json) {statement.text}"), parameters
        )
        plan: Any = explained.scalar_one()
    (top,) = json.loads(plan) if isinstance(plan, str) else plan
    return int(top["Plan"]["Shared Hit Blocks"] + top["Plan"]["Shared Read Blocks"])


@pytest.mark.parametrize(
    ("statement", "parameters"),
    [
        (relay._OLDEST, {}),
        (relay._LEFTOVERS, {"before": LONG_AGO, "after": 0, "limit": 1000, "bytes": 2**21}),
        (eras._UNKNOWN, {"above": LONG_AGO, "below": STREAM}),
        (eras._UNKNOWN, {"above": STREAM, "below": STREAM + timedelta(days=1)}),
        (eras._NEWEST, {"era_times": [STREAM, LONG_AGO], "kept": [2**62, 10], "at_most": 2**62}),
        (eras._NEWEST, {"era_times": [STREAM, LONG_AGO], "kept": [2**62, 10], "at_most": ROWS // 100}),
        (eras._LOST, {"era_time": STREAM, "healed": ROWS, "limit": 1000, "bytes": 2**21}),
        (eras._LOST, {"era_time": STREAM, "healed": 100, "limit": 1000, "bytes": 2**21}),
        (ledger._LOOK_EACH, {"organizations": ["", "o"], "methods": ["", "M"], "requests": ["1", "2"]}),
        (housekeeping._BY_AGE["inbox"], {"cutoff": LONG_AGO}),
        (housekeeping._BY_AGE["request_ledger"], {"cutoff": LONG_AGO}),
        (housekeeping._BY_AGE["redriven_letters"], {"cutoff": LONG_AGO}),
        (housekeeping._BY_AGE["archived_letters"], {"cutoff": LONG_AGO}),
    ],
)
async def test_periodic_queries_read_few_pages(
    full: Database, statement: TextClause | Statement, parameters: dict[str, object]
) -> None:
    assert await _pages(full, statement, **parameters) < MOST_PAGES


async def test_the_measure_notices_a_statement_that_reads_everything(full: Database) -> None:
    everything = text("select count(*) from outbox where payload = 'y'")
    assert await _pages(full, everything) > MOST_PAGES
