"""Reads the remains of a run: first the databases, then the provider's ledger."""

import json
from collections.abc import Callable, Mapping, Sequence, Set
from datetime import datetime
from typing import Any

import asyncpg

from postflow.drafts.v1.draft_pb2 import DraftContent
from postflow.drafts.v1.drafts_events_pb2 import DraftSaved
from postflow.publisher.v1.post_job_pb2 import PostJobState
from postflow.publisher.v1.publisher_events_pb2 import PostJobChanged
from postflow.target.v1.target_pb2 import Target
from testkit.stack.history import Acknowledged, History, Row

TABLES = {
    "publisher": {
        "jobs": "post_job",
        "attempts": "attempt",
        "accounts": "social_account",
        "activities": "activity",
        "reservations": "reservation",
    },
    "queue": {"slots": "slot", "slot_targets": "slot_target"},
    "drafts": {"drafts": "draft", "draft_jobs": "post_job", "job_events": "post_job_event"},
}
_SAVED = """
    select version, revision, content, content_digest, approved_digest is not null as approved, targets, brand_id
    from draft where organization_id = $1 and id = $2
"""
UNPUBLISHED = "select count(*) from outbox where stream_sequence is null"
# `Orders.garbage` is parked on purpose.
DEAD = """
    select consumer || ': ' || reason from dead_letter
    where state = 'OPEN' and not starts_with(encode(payload, 'escape'), 'garbage ')
"""


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
            if count := await connection.fetchval(UNPUBLISHED):
                left_over.append(f"{count} rows are left in outbox of {service}")
            left_over += [f"a dead letter of {service}: {row[0]}" for row in await connection.fetch(DEAD)]
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


async def read_saved(database_url: str, organization_id: str, draft_id: str) -> DraftSaved:
    """Reads a draft as Drafts announces it."""
    connection = await asyncpg.connect(database_url)
    try:
        row = await connection.fetchrow(_SAVED, organization_id, draft_id)
    finally:
        await connection.close()
    assert row is not None
    return DraftSaved(
        organization_id=organization_id,
        draft_id=draft_id,
        version=row["version"],
        revision=row["revision"],
        content=row["content"],
        content_digest=row["content_digest"],
        approved=row["approved"],
        targets=[
            Target(social_account_id=account, channel=channel, destination=destination)
            for account, channel, destination in json.loads(row["targets"])
        ],
        brand_id=row["brand_id"],
    )


def _shown(record: Mapping[str, Any] | asyncpg.Record) -> Row:
    """Returns the row; a draft's row has its targets and text decoded, an event's row has what it says of the job."""
    row = dict(record)
    if "payload" in row:
        job = PostJobChanged.FromString(row.pop("payload")).post_job
        state = PostJobState.Name(job.state).removeprefix("POST_JOB_STATE_")
        row |= {"run": job.run, "state": state, "state_reason": job.state_reason}
    if "targets" in row:
        row["targets"] = [tuple(place) for place in json.loads(row["targets"])]
        row["text"] = DraftContent.FromString(row["content"]).text
    return row
