"""A generic plan is made once per connection, possibly while tables are small: it must suit large ones too."""

from collections.abc import Awaitable, Callable

import pytest
from sqlalchemy import TextClause, text

from drafts_service.adapters.postgres import accounts, draft_views, drafts, post_jobs
from drafts_service.domain.post_job import JobState, PostJobEvent
from postflow.drafts.v1.draft_pb2 import Draft
from servicekit.pg.database import Database
from servicekit.pg.session import Statement
from testkit.plans import planned


@pytest.fixture
async def small(
    database: Database,
    a_draft: Callable[..., Awaitable[Draft]],
    reflect: Callable[..., Awaitable[None]],
    a_job: Callable[..., PostJobEvent],
) -> Database:
    """A few drafts, with statistics: a scan of the table is cheaper than an index look-up."""
    for number in range(5):
        await a_draft(f"draft-{number}")
        await reflect(a_job(JobState.READY, draft_id=f"draft-{number}"))
    async with database.statement() as connection:
        await connection.execute(text("vacuum analyze"))
    return database


DRAFT = ("organization_id", "id")
JOBS = ("organization_id", "draft_id")


@pytest.mark.parametrize(
    ("statement", "table", "keys"),
    [
        (drafts._LOCK_SEVERAL, "draft", {DRAFT}),
        (post_jobs._STANDINGS, "post_job", {JOBS}),
        (post_jobs._REFLECT, "draft", {DRAFT}),
        (post_jobs._REFLECT, "post_job", {(*JOBS, "id")}),
        (post_jobs._JOBS_OF_DRAFTS, "post_job", {JOBS}),
        (drafts._LOCK, "draft", {DRAFT}),
        (drafts._LOCK, "social_account", {DRAFT}),
        (drafts._APPROVE, "draft", {DRAFT}),
        (accounts._FIND, "social_account", {DRAFT}),
        (drafts._TARGETS, "draft", {DRAFT}),
        (draft_views._FIND, "draft", {DRAFT}),
        (draft_views._FIND, "post_job", {JOBS}),
        (draft_views._FIND, "social_account", {DRAFT}),
        (drafts._CLAIM_WITHDRAWALS, "draft", {DRAFT, ("withdraw_due_time",)}),
    ],
    ids=[
        "lock",
        "standings",
        "reflect",
        "known jobs",
        "jobs",
        "lock whole drafts",
        "accounts of whole drafts",
        "approve",
        "accounts",
        "targets",
        "views",
        "jobs of views",
        "accounts of views",
        "due withdrawals",
    ],
)
async def test_each_row_is_found_by_its_whole_key_in_a_generic_plan(
    small: Database, statement: TextClause | Statement, table: str, keys: set[tuple[str, ...]]
) -> None:
    nodes = await planned(small, statement)
    scans = [node for node in nodes if node.get("Relation Name") == table and "Scan" in node["Node Type"]]
    assert scans
    for scan in scans:
        found_by = scan.get("Index Cond", "")
        assert any(all(column in found_by for column in key) for key in keys), scan


async def test_the_next_withdrawal_is_the_first_entry_of_its_index(small: Database) -> None:
    nodes = await planned(small, drafts._NEXT_WITHDRAWAL)
    (scan,) = (node for node in nodes if node.get("Relation Name") == "draft")
    assert (scan["Node Type"], scan["Index Name"]) == ("Index Only Scan", "draft_withdrawals")
    assert any(node["Node Type"] == "Limit" for node in nodes)
