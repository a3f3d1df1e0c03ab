"""The parts that tests of withdrawals share: types of their fixtures, the pending revision, a post that is out."""

from collections.abc import Awaitable, Callable, Coroutine
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import text

from drafts_service.domain.post_job import JobState, PostJob
from drafts_service.domain.target import Target
from postflow.drafts.v1.draft_pb2 import Draft
from postflow.drafts.v1.drafts_events_pb2 import DraftSaved
from postflow.drafts.v1.drafts_service_pb2 import ApproveDraftResponse, UpdateDraftResponse
from servicekit.pg.database import Database

Get = Callable[..., Awaitable[Draft]]
Update = Callable[..., Coroutine[Any, Any, UpdateDraftResponse]]
Approve = Callable[..., Coroutine[Any, Any, ApproveDraftResponse]]
Announced = Callable[[], Awaitable[list[DraftSaved]]]
ADraft = Callable[..., Awaitable[Draft]]

NINE = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


async def pending(database: Database, draft_id: str = "draft") -> int | None:
    """Returns the revision below which a withdrawal is pending, or None."""
    async with database.read() as connection:
        found = await connection.execute(text("select withdraw_below from draft where id = :id"), {"id": draft_id})
        below: int | None = found.scalar_one()
        return below


def out(account: str = "a") -> PostJob:
    return PostJob(
        organization_id="org",
        id=f"draft-{account}",
        draft_id="draft",
        version=4,
        target=Target(social_account_id=account, channel="facebook"),
        state=JobState.PUBLISHED,
        publish_time=NINE,
        external_url="https://social.example/1",
    )
