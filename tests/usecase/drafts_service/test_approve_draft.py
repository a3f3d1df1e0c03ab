from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from postflow.drafts.v1.draft_pb2 import Draft
from postflow.drafts.v1.drafts_events_pb2 import DraftSaved
from postflow.drafts.v1.drafts_service_pb2 import ApproveDraftResponse
from servicekit.faults import Conflict, NotFound

Get = Callable[..., Awaitable[Draft]]
Approve = Callable[..., Coroutine[Any, Any, ApproveDraftResponse]]
Announced = Callable[[], Awaitable[list[DraftSaved]]]
ADraft = Callable[..., Awaitable[Draft]]


async def test_approval_is_stored_and_announced(
    a_draft: ADraft, approve_draft: Approve, get_draft: Get, announced: Announced
) -> None:
    created = await a_draft()
    draft = (await approve_draft(content_digest=created.content_digest, etag=created.etag)).draft
    assert (draft.approved, draft.approver, draft.revision) == (True, "ann", 1)
    assert draft.approve_time.ToDatetime() >= created.create_time.ToDatetime()
    assert draft.etag != created.etag
    assert await get_draft() == draft
    saved = (await announced())[-1]
    assert (saved.approved, saved.version, saved.revision, saved.content_digest) == (True, 2, 1, draft.content_digest)


async def test_approving_twice_is_one_approval_and_one_event(
    a_draft: ADraft, approve_draft: Approve, announced: Announced
) -> None:
    before = await a_draft(approved=True)
    again = (await approve_draft(approver="bob")).draft
    assert again == before
    assert len(await announced()) == 2


async def test_the_same_request_is_answered_as_before(a_draft: ADraft, approve_draft: Approve) -> None:
    etag = (await a_draft()).etag
    first = await approve_draft(etag=etag, request_id="request")
    assert await approve_draft(etag=etag, request_id="request") == first


@pytest.mark.parametrize(
    ("etag", "digest", "reason"), [("stale", "", "ETAG_MISMATCH"), ("", "0" * 64, "DIGEST_MISMATCH")]
)
async def test_content_that_the_caller_has_not_read_is_not_approved(
    a_draft: ADraft, approve_draft: Approve, announced: Announced, etag: str, digest: str, reason: str
) -> None:
    await a_draft()
    with pytest.raises(Conflict) as conflict:
        await approve_draft(content_digest=digest, etag=etag, request_id="request")
    assert conflict.value.reason == reason
    assert [saved.approved for saved in await announced()] == [False]


async def test_the_draft_of_another_organization_is_not_found(a_draft: ADraft, approve_draft: Approve) -> None:
    await a_draft()
    with pytest.raises(NotFound) as absence:
        await approve_draft(organization_id="other")
    assert absence.value.reason == "DRAFT_NOT_FOUND"
