"""Batches of drafts as a client sees them: results, bounds and sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import grpc
import pytest

from postflow.drafts.v1 import drafts_service_pb2 as pb
from postflow.drafts.v1.draft_pb2 import Draft, DraftContent
from postflow.target.v1.target_pb2 import Target
from servicekit.rpc.edge import MAX_MESSAGE_BYTES
from testkit.refusals import refusal_of

if TYPE_CHECKING:
    from postflow.drafts.v1.drafts_service_pb2_grpc import DraftsServiceAsyncStub

Code = grpc.StatusCode
LONGEST_ID = "x" * 61


def new(draft_id: str, said: str = "text", *channels: str) -> pb.NewDraft:
    targets = [Target(social_account_id="account", channel=channel) for channel in channels or ("facebook",)]
    return pb.NewDraft(draft_id=draft_id, draft=Draft(content=DraftContent(text=said), targets=targets))


def creation(*drafts: pb.NewDraft, request_id: str = "") -> pb.BatchCreateDraftsRequest:
    return pb.BatchCreateDraftsRequest(organization_id="org", drafts=drafts, request_id=request_id)


def approval(*draft_ids: str, approver: str = "ann", request_id: str = "") -> pb.BatchApproveDraftsRequest:
    drafts = [pb.DraftToApprove(draft_id=draft_id) for draft_id in draft_ids]
    return pb.BatchApproveDraftsRequest(organization_id="org", drafts=drafts, approver=approver, request_id=request_id)


async def test_drafts_are_created_and_approved_by_two_calls(drafts: DraftsServiceAsyncStub) -> None:
    created = await drafts.BatchCreateDrafts(creation(new("a"), new("b", "text", "myspace"), new("c")))
    assert [result.WhichOneof("outcome") for result in created.results] == ["draft", "error", "draft"]
    assert created.results[1].error.reason == "UNKNOWN_CHANNEL"
    approved = await drafts.BatchApproveDrafts(approval("a", "b", "c"))
    assert [result.draft.approved for result in approved.results] == [True, False, True]
    assert approved.results[1].error.reason == "DRAFT_NOT_FOUND"
    read = (await drafts.GetDraft(pb.GetDraftRequest(organization_id="org", draft_id="c"))).draft
    assert (read.approver, read.etag) == ("ann", approved.results[2].draft.etag)


async def test_the_largest_batch_fits_into_its_response(drafts: DraftsServiceAsyncStub) -> None:
    """Each text is as long as the request allows, each channel's error as long as it gets, and each id."""
    names = [f"{LONGEST_ID}{number:03}" for number in range(200)]
    left = MAX_MESSAGE_BYTES // 200 - 120
    created = await drafts.BatchCreateDrafts(creation(*(new(name, "я" * (left // 2)) for name in names)))
    assert [result.draft.id for result in created.results] == names
    refused = await drafts.BatchCreateDrafts(creation(*(new(name, "text", "я" * 64) for name in names)))
    assert {result.error.reason for result in refused.results} == {"UNKNOWN_CHANNEL"}
    approved = await drafts.BatchApproveDrafts(approval(*names, approver="я" * 200))
    assert all(result.draft.approved for result in approved.results)
    assert approved.ByteSize() < MAX_MESSAGE_BYTES


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (creation(), "drafts"),
        (creation(*(new("") for _ in range(201))), "drafts"),
        (creation(new("a"), pb.NewDraft(draft_id="b")), "drafts[1].draft"),
        (creation(new("a"), new("no id")), "drafts[1].draft_id"),
        (creation(new("a", "x" * 70_001)), "drafts[0].draft.content.text"),
    ],
    ids=["empty", "too many", "no draft", "bad id", "long text"],
)
async def test_a_malformed_batch_is_refused_as_a_whole(
    drafts: DraftsServiceAsyncStub, request_: pb.BatchCreateDraftsRequest, field: str
) -> None:
    code, fault = await refusal_of(drafts.BatchCreateDrafts(request_))
    assert (code, fault.reason) == (Code.INVALID_ARGUMENT, "INVALID_FIELD")
    assert [violation.field for violation in fault.violations] == [field]
    code, _ = await refusal_of(drafts.GetDraft(pb.GetDraftRequest(organization_id="org", draft_id="a")))
    assert code is Code.NOT_FOUND


async def test_a_batch_that_is_too_large_is_refused_with_its_reason(drafts: DraftsServiceAsyncStub) -> None:
    code, fault = await refusal_of(drafts.BatchCreateDrafts(creation(*(new("", "x" * 60_000) for _ in range(5)))))
    assert (code, fault.reason) == (Code.INVALID_ARGUMENT, "REQUEST_TOO_LARGE")


@pytest.mark.parametrize("method", ["BatchCreateDrafts", "BatchApproveDrafts"])
async def test_a_request_id_makes_a_repeat_safe_and_belongs_to_one_request(
    drafts: DraftsServiceAsyncStub, method: str
) -> None:
    def made(name: str) -> pb.BatchCreateDraftsRequest | pb.BatchApproveDraftsRequest:
        if method == "BatchCreateDrafts":
            return creation(new(name), new("a"), request_id="request")
        return approval(name, "a", request_id="request")

    await drafts.BatchCreateDrafts(creation(new("a")))
    call = getattr(drafts, method)
    first = await call(made("b"))
    assert await call(made("b")) == first
    code, fault = await refusal_of(call(made("c")))
    assert (code, fault.reason) == (Code.INVALID_ARGUMENT, "REQUEST_ID_REUSED")
