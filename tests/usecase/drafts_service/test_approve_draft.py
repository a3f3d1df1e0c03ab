from collections.abc import Awaitable, Callable

import pytest

from drafts_service.application.approve_draft import ApproveDraft
from drafts_service.application.get_draft import GetDraft
from postflow.drafts.v1.draft_pb2 import Draft
from postflow.drafts.v1.drafts_events_pb2 import DraftSaved
from servicekit.faults import Conflict, NotFound
from servicekit.pg.ledger_by_hand import RequestKey

Announced = Callable[[], Awaitable[list[DraftSaved]]]
Create = Callable[..., Awaitable[Draft]]


def key(request_id: str = "", organization_id: str = "org") -> RequestKey:
    return RequestKey(organization_id=organization_id, method="ApproveDraft", request_id=request_id, request_digest=b"")


async def test_approval_is_stored_and_announced(
    a_draft: Create, approve_draft: ApproveDraft, get_draft: GetDraft, announced: Announced
) -> None:
    created = await a_draft()
    draft = (
        await approve_draft(
            key(), draft_id="draft", content_digest=created.content_digest, etag=created.etag, approver="ann"
        )
    ).draft
    assert (draft.approved, draft.approver, draft.revision) == (True, "ann", 1)
    assert draft.approve_time.ToDatetime() >= created.create_time.ToDatetime()
    assert draft.etag != created.etag
    assert (await get_draft(organization_id="org", draft_id="draft")).draft == draft
    saved = (await announced())[-1]
    assert (saved.approved, saved.version, saved.revision, saved.content_digest) == (True, 2, 1, draft.content_digest)


async def test_approving_twice_is_one_approval_and_one_event(
    a_draft: Create, approve_draft: ApproveDraft, announced: Announced
) -> None:
    before = await a_draft(approved=True)
    again = (await approve_draft(key(), draft_id="draft", content_digest="", etag="", approver="bob")).draft
    assert again == before
    assert len(await announced()) == 2


async def test_the_same_request_is_answered_as_before(a_draft: Create, approve_draft: ApproveDraft) -> None:
    etag = (await a_draft()).etag
    first = await approve_draft(key("request"), draft_id="draft", content_digest="", etag=etag, approver="ann")
    assert await approve_draft(key("request"), draft_id="draft", content_digest="", etag=etag, approver="ann") == first


@pytest.mark.parametrize(
    ("etag", "digest", "reason"), [("stale", "", "ETAG_MISMATCH"), ("", "0" * 64, "DIGEST_MISMATCH")]
)
async def test_what_the_caller_has_not_read_is_not_approved(
    a_draft: Create, approve_draft: ApproveDraft, announced: Announced, etag: str, digest: str, reason: str
) -> None:
    await a_draft()
    with pytest.raises(Conflict) as conflict:
        await approve_draft(key("request"), draft_id="draft", content_digest=digest, etag=etag, approver="ann")
    assert conflict.value.reason == reason
    assert [saved.approved for saved in await announced()] == [False]


async def test_the_draft_of_another_organization_is_not_found(a_draft: Create, approve_draft: ApproveDraft) -> None:
    await a_draft()
    with pytest.raises(NotFound) as absence:
        await approve_draft(key(organization_id="other"), draft_id="draft", content_digest="", etag="", approver="ann")
    assert absence.value.reason == "DRAFT_NOT_FOUND"
