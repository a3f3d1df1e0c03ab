"""DraftTargetsService as another service sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import grpc
import pytest

from postflow.drafts.v1 import drafts_service_pb2 as pb
from postflow.drafts.v1.draft_pb2 import Draft, DraftContent
from postflow.drafts.v1.draft_targets_service_pb2 import DraftName, DraftTargets, FindDraftTargetsRequest
from postflow.drafts.v1.draft_targets_service_pb2_grpc import DraftTargetsServiceStub
from postflow.target.v1.target_pb2 import Target
from testkit.refusals import refusal_of

if TYPE_CHECKING:
    from postflow.drafts.v1.draft_targets_service_pb2_grpc import DraftTargetsServiceAsyncStub
    from postflow.drafts.v1.drafts_service_pb2_grpc import DraftsServiceAsyncStub

FEED, CHAT = (
    Target(social_account_id="page", channel="facebook"),
    Target(social_account_id="bot", channel="telegram", destination="@news"),
)


@pytest.fixture
def lookup(channel: grpc.aio.Channel) -> DraftTargetsServiceAsyncStub:
    return DraftTargetsServiceStub(channel)


def named(*drafts: tuple[str, str], of: str = "") -> FindDraftTargetsRequest:
    names = [DraftName(organization_id=organization, draft_id=draft) for organization, draft in drafts]
    return FindDraftTargetsRequest(organization_id=of, drafts=names)


async def create(drafts: DraftsServiceAsyncStub, organization_id: str, *targets: Target) -> None:
    content = Draft(content=DraftContent(text="text"), targets=targets)
    await drafts.CreateDraft(pb.CreateDraftRequest(organization_id=organization_id, draft_id="d1", draft=content))


async def test_drafts_of_many_tenants_are_found_at_once(
    drafts: DraftsServiceAsyncStub, lookup: DraftTargetsServiceAsyncStub
) -> None:
    await create(drafts, "acme", FEED, CHAT)
    await create(drafts, "umbrella", CHAT)
    asked = [("acme", "d1"), ("umbrella", "d1"), ("acme", "d2"), ("nobody", "d1")]
    answer = await lookup.FindDraftTargets(named(*asked))
    assert sorted(answer.drafts, key=lambda each: each.organization_id) == [
        DraftTargets(organization_id="acme", draft_id="d1", revision=1, targets=[FEED, CHAT]),
        DraftTargets(organization_id="umbrella", draft_id="d1", revision=1, targets=[CHAT]),
    ]


async def test_an_organization_leaves_only_its_own_drafts(
    drafts: DraftsServiceAsyncStub, lookup: DraftTargetsServiceAsyncStub
) -> None:
    await create(drafts, "acme", FEED)
    await create(drafts, "umbrella", FEED)
    answer = await lookup.FindDraftTargets(named(("acme", "d1"), ("umbrella", "d1"), of="acme"))
    assert [each.organization_id for each in answer.drafts] == ["acme"]


@pytest.mark.parametrize("names", [(), (("acme", "d1"),) * 21, (("", "d1"),), (("acme", ""),)])
async def test_too_few_or_many_names_and_bad_ones_are_refused(
    lookup: DraftTargetsServiceAsyncStub, names: tuple[tuple[str, str], ...]
) -> None:
    code, fault = await refusal_of(lookup.FindDraftTargets(named(*names)))
    assert (code, fault.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_FIELD")
