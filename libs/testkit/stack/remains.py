"""Reads the remains of a run: first the databases, then the provider's ledger."""

import json
from collections.abc import Callable, Mapping, Sequence, Set
from datetime import datetime
from typing import Any

import asyncpg

from postflow.drafts.v1.draft_pb2 import DraftContent
from testkit.stack.history import Acknowledged, History, Row

TABLES = {
    "publisher": {"jobs": "post_job", "attempts": "attempt"},
    "queue": {"slots": "slot", "slot_targets": "slot_target"},
    "drafts": {"drafts": "draft", "draft_jobs": "post_job"},
}
LEFT_OVER = {
    "outbox": "select count(*) from outbox where stream_sequence is null",
    "dead_letter": "select count(*) from dead_letter where state = 'OPEN'",
}


async def read(
    database_urls: Mapping[str, str],
    organizations: Set[str],
    ledger: Callable[[], Sequence[Row]],
    *,
    acknowledged: Acknowledged,
) -> History:
    """Reads all rows and ledger lines of these organizations, as far as there is a database."""
    found: dict[str, Sequence[Row]] = {}
    left_over: list[str] = []
    now: datetime | None = None
    for service in database_urls.keys() & TABLES.keys():
        tables = TABLES[service]
        connection = await asyncpg.connect(database_urls[service])
        try:
            now = now or await connection.fetchval("select clock_timestamp()")
            for name, table in tables.items():
                query = f"select * from {table} where organization_id = any($1)"  # noqa: S608 - names from above
                found[name] = [_shown(row) for row in await connection.fetch(query, list(organizations))]
            for table, query in LEFT_OVER.items():
                if count := await connection.fetchval(query):
                    left_over.append(f"{count} rows are left in {table} of {service}")
        finally:
            await connection.close()
    assert now is not None
    lines = ledger()
    return History(
        now=now,
        acknowledged=acknowledged,
        effects=[line for line in lines if line["kind"] == "effect"],
        requests=[line for line in lines if line["kind"] == "request"],
        left_over=left_over,
        **found,
    )


def _shown(record: Mapping[str, Any] | asyncpg.Record) -> Row:
    """Returns the row; a draft's row has its targets and text decoded."""
    row = dict(record)
    if "targets" in row:
        row["targets"] = [tuple(place) for place in json.loads(row["targets"])]
        row["text"] = DraftContent.FromString(row["content"]).text
    return row
