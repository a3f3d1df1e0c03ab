"""The time and the category that a draft asks for, as a client sets and clears them."""

from __future__ import annotations

from datetime import UTC, timedelta
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from google.protobuf.field_mask_pb2 import FieldMask

from postflow.drafts.v1 import drafts_service_pb2 as pb
from postflow.drafts.v1.draft_pb2 import Draft, DraftContent
from postflow.drafts.v1.draft_targets_service_pb2 import DraftName, FindDraftTargetsRequest
from postflow.drafts.v1.draft_targets_service_pb2_grpc import DraftTargetsServiceStub
from postflow.target.v1.target_pb2 import Target
from servicekit.clock import SystemClock
from servicekit.timestamps import timestamp
from testkit.refusals import refusal_of

if TYPE_CHECKING:
    from postflow.drafts.v1.drafts_service_pb2_grpc import DraftsServiceAsyncStub

NOW = SystemClock().now()
TOMORROW = timestamp(NOW + timedelta(days=1))
NOT_ALLOWED = [
    ({"requested_time": timestamp(NOW - timedelta(minutes=2))}, "draft.requested_time"),
    ({"requested_time": timestamp(NOW + timedelta(days=731))}, "draft.requested_time"),
    ({"category_id": "the news"}, "draft.category_id"),
    ({"brand_id": "the bakery"}, "draft.brand_id"),
]


def a_draft(**fields: Any) -> Draft:
    content, target = DraftContent(text="text"), Target(social_account_id="page", channel="facebook")
    return Draft(content=content, targets=[target], **fields)


def creation(**fields: Any) -> pb.CreateDraftRequest:
    return pb.CreateDraftRequest(organization_id="org", draft_id="draft", request_id="r1", draft=a_draft(**fields))


def update(*paths: str, **fields: Any) -> pb.UpdateDraftRequest:
    return pb.UpdateDraftRequest(
        organization_id="org", draft=Draft(id="draft", **fields), update_mask=FieldMask(paths=paths)
    )


async def test_a_time_and_a_category_are_stored_changed_and_cleared(drafts: DraftsServiceAsyncStub) -> None:
    created = (await drafts.CreateDraft(creation(requested_time=TOMORROW, category_id="news"))).draft
    assert (created.requested_time, created.category_id) == (TOMORROW, "news")
    assert (await drafts.CreateDraft(creation(requested_time=TOMORROW, category_id="news"))).draft == created
    assert (await drafts.GetDraft(pb.GetDraftRequest(organization_id="org", draft_id="draft"))).draft == created
    later = timestamp(TOMORROW.ToDatetime(UTC) + timedelta(hours=1))
    moved = (await drafts.UpdateDraft(update("requested_time", requested_time=later))).draft
    assert (moved.requested_time, moved.category_id, moved.revision) == (later, "news", 1)
    bare = (await drafts.UpdateDraft(update("requested_time", "category_id"))).draft
    assert (bare.HasField("requested_time"), bare.category_id) == (False, "")


async def test_an_approved_draft_gets_another_time_while_publisher_is_down(drafts: DraftsServiceAsyncStub) -> None:
    await drafts.CreateDraft(creation())
    await drafts.ApproveDraft(pb.ApproveDraftRequest(organization_id="org", draft_id="draft"))
    moved = (await drafts.UpdateDraft(update("requested_time", requested_time=TOMORROW))).draft
    assert (moved.approved, moved.requested_time) == (True, TOMORROW)


@pytest.mark.parametrize(("fields", "field"), NOT_ALLOWED)
async def test_a_value_that_is_not_allowed_is_named(
    drafts: DraftsServiceAsyncStub, fields: dict[str, Any], field: str
) -> None:
    await drafts.CreateDraft(creation())
    for call in (
        drafts.CreateDraft(pb.CreateDraftRequest(organization_id="org", draft=a_draft(**fields))),
        drafts.UpdateDraft(update(*fields, **fields)),
    ):
        code, fault = await refusal_of(call)
        assert code is grpc.StatusCode.INVALID_ARGUMENT
        assert [violation.field for violation in fault.violations] == [field]


async def test_a_batch_refuses_only_the_drafts_with_a_bad_time(drafts: DraftsServiceAsyncStub) -> None:
    times = [TOMORROW, timestamp(NOW - timedelta(days=1))]
    new = [pb.NewDraft(draft=a_draft(requested_time=time, category_id="news")) for time in times]
    request = pb.BatchCreateDraftsRequest(organization_id="org", drafts=new)
    first, second = (await drafts.BatchCreateDrafts(request)).results
    assert (first.draft.requested_time, first.draft.category_id) == (TOMORROW, "news")
    assert (second.error.code, second.error.field) == ("INVALID_ARGUMENT", "draft.requested_time")


async def test_other_services_see_the_category(drafts: DraftsServiceAsyncStub, channel: grpc.aio.Channel) -> None:
    await drafts.CreateDraft(creation(category_id="news"))
    request = FindDraftTargetsRequest(drafts=[DraftName(organization_id="org", draft_id="draft")])
    [found] = (await DraftTargetsServiceStub(channel).FindDraftTargets(request)).drafts
    assert found.category_id == "news"


async def test_a_brand_is_stored_changed_and_cleared(drafts: DraftsServiceAsyncStub) -> None:
    created = (await drafts.CreateDraft(creation(brand_id="bakery"))).draft
    assert created.brand_id == "bakery"
    new = [pb.NewDraft(draft=a_draft(brand_id="bakery"))]
    (stored,) = (await drafts.BatchCreateDrafts(pb.BatchCreateDraftsRequest(organization_id="org", drafts=new))).results
    assert stored.draft.brand_id == "bakery"
    moved = (await drafts.UpdateDraft(update("brand_id", brand_id="florist"))).draft
    assert (moved.brand_id, moved.revision) == ("florist", 1)
    assert not (await drafts.UpdateDraft(update("brand_id"))).draft.brand_id
