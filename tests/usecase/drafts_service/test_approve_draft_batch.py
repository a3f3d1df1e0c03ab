"""BatchApproveDrafts: many drafts by one call, each with a result of its own."""

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from drafts_service.domain.draft import GivenApproval
from postflow.drafts.v1.draft_pb2 import Draft
from postflow.drafts.v1.drafts_events_pb2 import DraftSaved
from postflow.drafts.v1.drafts_service_pb2 import BatchApproveDraftsResponse

ApproveBatch = Callable[..., Coroutine[Any, Any, BatchApproveDraftsResponse]]
ADraft = Callable[..., Awaitable[Draft]]
Get = Callable[..., Awaitable[Draft]]
Announced = Callable[[], Awaitable[list[DraftSaved]]]


def given(draft_id: str, *, digest: str = "", etag: str = "") -> GivenApproval:
    return GivenApproval(draft_id=draft_id, content_digest=digest, etag=etag, approver="ann")


async def test_each_draft_gets_its_result(
    a_draft: ADraft, approve_drafts: ApproveBatch, get_draft: Get, announced: Announced
) -> None:
    for name in "abc":
        await a_draft(name)
    results = (await approve_drafts(given=[given(name) for name in "cab"])).results
    assert [(result.draft.id, result.draft.approved) for result in results] == [("c", True), ("a", True), ("b", True)]
    read = await get_draft("a")
    assert read.approver == "ann"
    for field in ("content", "targets", "target_states", "approver"):
        read.ClearField(field)
    assert results[1].draft == read
    assert [saved.draft_id for saved in await announced() if saved.approved] == ["c", "a", "b"]


async def test_errors_are_those_of_single_calls_and_leave_the_others_alone(
    a_draft: ADraft, approve_drafts: ApproveBatch, announced: Announced
) -> None:
    etags = {name: (await a_draft(name)).etag for name in "abcd"}
    await a_draft("foreign", organization_id="other")
    asked = [
        given("a", etag=etags["a"]),
        given("missing"),
        given("b", etag="stale"),
        given("c", digest="0" * 64),
        given("foreign"),
        given("a", etag=etags["a"]),
        given("a"),
        given("d"),
    ]
    results = (await approve_drafts(given=asked)).results
    errors = [(r.error.code, r.error.reason) if r.HasField("error") else None for r in results]
    assert errors == [
        None,
        ("NOT_FOUND", "DRAFT_NOT_FOUND"),
        ("ABORTED", "ETAG_MISMATCH"),
        ("ABORTED", "DIGEST_MISMATCH"),
        ("NOT_FOUND", "DRAFT_NOT_FOUND"),
        ("ABORTED", "ETAG_MISMATCH"),
        None,
        None,
    ]
    assert [saved.draft_id for saved in await announced() if saved.approved] == ["a", "d"]


async def test_a_repeated_batch_gets_its_first_answer(a_draft: ADraft, approve_drafts: ApproveBatch) -> None:
    etag = (await a_draft("a")).etag
    first = await approve_drafts(given=[given("a", etag=etag), given("b")], request_id="r")
    await a_draft("b")
    assert await approve_drafts(given=[given("a", etag=etag), given("b")], request_id="r") == first
    assert first.results[1].error.reason == "DRAFT_NOT_FOUND"
