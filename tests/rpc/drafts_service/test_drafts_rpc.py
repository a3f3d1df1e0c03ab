"""DraftsService as a client sees it: responses, codes, reasons, details."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import grpc
import pytest
from google.protobuf.field_mask_pb2 import FieldMask
from sqlalchemy import text

from channels import KNOWN
from drafts_service.domain.content import MOST_BYTES
from postflow.drafts.v1 import drafts_service_pb2 as pb
from postflow.drafts.v1.draft_pb2 import (
    DRAFT_STATE_DRAFT,
    DRAFT_STATE_PUBLISHED,
    ChannelText,
    Draft,
    DraftContent,
)
from postflow.target.v1.target_pb2 import Target
from servicekit.faults import Fault
from servicekit.pg.database import Database
from testkit.refusals import refusal_of

if TYPE_CHECKING:
    from postflow.drafts.v1.drafts_service_pb2_grpc import DraftsServiceAsyncStub

Code = grpc.StatusCode
METHODS = ("CreateDraft", "GetDraft", "UpdateDraft", "ApproveDraft")


def fields_of(fault: Fault) -> list[str]:
    return [violation.field for violation in fault.violations]


def a_draft(text: str = "text", *channels: str) -> Draft:
    return Draft(
        content=DraftContent(text=text),
        targets=[Target(social_account_id="account", channel=channel) for channel in channels or ("facebook",)],
    )


def creation(**changes: object) -> pb.CreateDraftRequest:
    request = pb.CreateDraftRequest(organization_id="org", draft_id="draft", draft=a_draft())
    for name, value in changes.items():
        request.ClearField(name)
        request.MergeFrom(pb.CreateDraftRequest(**{name: value}))  # type: ignore[arg-type]
    return request


def update(draft: Draft, *paths: str, organization_id: str = "org", request_id: str = "") -> pb.UpdateDraftRequest:
    draft.id = draft.id or "draft"
    return pb.UpdateDraftRequest(
        organization_id=organization_id, draft=draft, update_mask=FieldMask(paths=paths), request_id=request_id
    )


async def publish_a_target(database: Database) -> None:
    async with database.statement() as connection:
        await connection.execute(
            text("""
                insert into post_job (organization_id, id, draft_id, version, social_account_id, channel, destination,
                    state, external_url, error_message)
                values ('org', 'job', 'draft', 1, 'account', 'facebook', '', 'PUBLISHED', '', '')
            """)
        )


async def test_a_draft_is_created_read_changed_and_approved(drafts: DraftsServiceAsyncStub) -> None:
    created = (await drafts.CreateDraft(creation())).draft
    assert (created.id, created.state, created.revision, created.approved) == ("draft", DRAFT_STATE_DRAFT, 1, False)
    assert (await drafts.GetDraft(pb.GetDraftRequest(organization_id="org", draft_id="draft"))).draft == created
    changed = (await drafts.UpdateDraft(update(a_draft("new"), "content.text"))).draft
    assert (changed.content.text, changed.revision) == ("new", 2)
    approved = await drafts.ApproveDraft(
        pb.ApproveDraftRequest(
            organization_id="org",
            draft_id="draft",
            content_digest=changed.content_digest,
            etag=changed.etag,
            approver="ann",
        )
    )
    assert approved.draft.approved


async def test_a_draft_without_an_id_gets_one(drafts: DraftsServiceAsyncStub) -> None:
    created = (await drafts.CreateDraft(creation(draft_id=""))).draft
    assert (await drafts.GetDraft(pb.GetDraftRequest(organization_id="org", draft_id=created.id))).draft == created


async def test_output_only_fields_of_a_new_draft_are_ignored(drafts: DraftsServiceAsyncStub) -> None:
    given = a_draft()
    given.MergeFrom(Draft(id="other", revision=7, approved=True, state=DRAFT_STATE_PUBLISHED, etag="mine"))
    created = (await drafts.CreateDraft(creation(draft=given))).draft
    assert (created.id, created.revision, created.approved, created.state) == ("draft", 1, False, DRAFT_STATE_DRAFT)


async def test_an_update_changes_the_fields_of_its_mask_only(drafts: DraftsServiceAsyncStub) -> None:
    content = DraftContent(text="all", hashtags=["one"], channel_texts=[ChannelText(channel="facebook", text="few")])
    await drafts.CreateDraft(creation(draft=Draft(content=content, targets=a_draft().targets)))
    other = Draft(content=DraftContent(text="new", hashtags=["two"]), targets=a_draft("", "telegram").targets)
    after = (await drafts.UpdateDraft(update(other, "content.hashtags"))).draft
    assert (after.content.text, list(after.content.hashtags)) == ("all", ["two"])
    assert after.content.channel_texts == content.channel_texts
    after = (await drafts.UpdateDraft(update(other, "content", "targets"))).draft
    assert after.content == other.content
    assert [target.channel for target in after.targets] == ["telegram"]
    assert after.revision == 3


async def test_an_id_in_use_already_exists(drafts: DraftsServiceAsyncStub) -> None:
    await drafts.CreateDraft(creation())
    code, fault = await refusal_of(drafts.CreateDraft(creation()))
    assert (code, fault.reason, fault.metadata) == (Code.ALREADY_EXISTS, "DRAFT_EXISTS", {"draft_id": "draft"})


@pytest.mark.parametrize("organization_id", ["org", "other"])
async def test_a_missing_draft_or_one_of_another_organization_is_not_found(
    drafts: DraftsServiceAsyncStub, organization_id: str
) -> None:
    draft_id = "absent" if organization_id == "org" else "draft"
    await drafts.CreateDraft(creation())
    names = {"organization_id": organization_id, "draft_id": draft_id}
    for call in (
        drafts.GetDraft(pb.GetDraftRequest(**names)),
        drafts.UpdateDraft(update(Draft(id=draft_id), "content", organization_id=organization_id)),
        drafts.ApproveDraft(pb.ApproveDraftRequest(**names)),
    ):
        code, fault = await refusal_of(call)
        assert (code, fault.reason, fault.metadata) == (Code.NOT_FOUND, "DRAFT_NOT_FOUND", {"draft_id": draft_id})
        assert fault.message == "there is no such draft"


@pytest.mark.parametrize(
    ("changes", "field", "reason"),
    [
        ({"organization_id": ""}, "organization_id", "INVALID_FIELD"),
        ({"organization_id": "a b"}, "organization_id", "INVALID_FIELD"),
        ({"draft_id": "a/b"}, "draft_id", "INVALID_FIELD"),
        ({"draft_id": "x" * 65}, "draft_id", "INVALID_FIELD"),
        ({"request_id": "a b"}, "request_id", "INVALID_FIELD"),
        ({"draft": a_draft("")}, "draft.content.text", "INVALID_FIELD"),
        ({"draft": a_draft("\0")}, "draft.content.text", "INVALID_FIELD"),
        ({"draft": a_draft("bell \a")}, "draft.content.text", "INVALID_FIELD"),
        ({"draft": a_draft("\u200b\u2060")}, "draft.content.text", "INVALID_FIELD"),
        ({"draft": a_draft("x" * 70_001)}, "draft.content.text", "INVALID_FIELD"),
        ({"draft": a_draft("字" * 60_000)}, "draft.content", "INVALID_FIELD"),
        ({"draft": Draft(content=DraftContent(text="text"))}, "draft.targets", "INVALID_FIELD"),
        ({"draft": a_draft("text", *["facebook"] * 26)}, "draft.targets", "INVALID_FIELD"),
        ({"draft": a_draft("text", "facebook", "myspace")}, "draft.targets[1].channel", "UNKNOWN_CHANNEL"),
        ({"draft": a_draft("text", "linkedin", "linkedin_profile")}, "draft.targets[1]", "INVALID_FIELD"),
        (
            {"draft": Draft(content=DraftContent(text="text"), targets=[Target(channel="facebook")])},
            "draft.targets[0].social_account_id",
            "INVALID_FIELD",
        ),
        (
            {"draft": Draft(content=DraftContent(text="text", hashtags=["ok", "#no"]), targets=a_draft().targets)},
            "draft.content.hashtags[1]",
            "INVALID_FIELD",
        ),
        (
            {
                "draft": Draft(
                    content=DraftContent(text="text", channel_texts=[ChannelText(channel="telegram", text="few")]),
                    targets=a_draft().targets,
                )
            },
            "draft.content.channel_texts[0].channel",
            "INVALID_FIELD",
        ),
    ],
)
async def test_the_field_at_fault_is_named(
    drafts: DraftsServiceAsyncStub, changes: dict[str, object], field: str, reason: str
) -> None:
    code, fault = await refusal_of(drafts.CreateDraft(creation(**changes)))
    assert (code, fault.reason, fields_of(fault)) == (Code.INVALID_ARGUMENT, reason, [field])


async def test_an_unknown_channel_is_refused_with_the_known_ones(drafts: DraftsServiceAsyncStub) -> None:
    _, fault = await refusal_of(drafts.CreateDraft(creation(draft=a_draft("text", "myspace"))))
    assert all(name in fault.violations[0].description for name in KNOWN)


async def test_a_draft_must_be_given(drafts: DraftsServiceAsyncStub) -> None:
    code, fault = await refusal_of(drafts.CreateDraft(pb.CreateDraftRequest(organization_id="org")))
    assert (code, fields_of(fault)) == (Code.INVALID_ARGUMENT, ["draft"])


@pytest.mark.parametrize(
    ("paths", "description"),
    [
        (["content.titel"], "'content.titel'"),
        (["revision"], "'revision' cannot be changed"),
        (["content.text", "approved"], "'approved' cannot be changed"),
        ([], "names no field"),
    ],
)
async def test_an_empty_mask_or_one_with_a_fixed_field_is_refused(
    drafts: DraftsServiceAsyncStub, paths: list[str], description: str
) -> None:
    await drafts.CreateDraft(creation())
    code, fault = await refusal_of(drafts.UpdateDraft(update(a_draft("new"), *paths)))
    assert (code, fault.reason, fields_of(fault)) == (Code.INVALID_ARGUMENT, "INVALID_FIELD", ["update_mask"])
    assert description in fault.message


async def test_an_update_names_its_draft(drafts: DraftsServiceAsyncStub) -> None:
    request = pb.UpdateDraftRequest(
        organization_id="org", draft=a_draft("new"), update_mask=FieldMask(paths=["content.text"])
    )
    code, fault = await refusal_of(drafts.UpdateDraft(request))
    assert (code, fields_of(fault)) == (Code.INVALID_ARGUMENT, ["draft.id"])


@pytest.mark.parametrize("method", METHODS)
async def test_malformed_bytes_are_an_invalid_argument(channel: grpc.aio.Channel, method: str) -> None:
    call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(
        f"/postflow.drafts.v1.DraftsService/{method}"
    )
    code, fault = await refusal_of(call(b"\xff\xff\xff", timeout=5))
    assert (code, fault.reason) == (Code.INVALID_ARGUMENT, "MALFORMED_REQUEST")


async def test_a_message_over_the_limit_is_refused(drafts: DraftsServiceAsyncStub) -> None:
    code, fault = await refusal_of(drafts.CreateDraft(creation(draft=a_draft("x" * 300_000))))
    assert (code, fault.reason) == (Code.INVALID_ARGUMENT, "REQUEST_TOO_LARGE")


async def test_the_largest_draft_can_be_read_back(drafts: DraftsServiceAsyncStub) -> None:
    texts = [ChannelText(channel=name, text="x" * 15_000) for name in KNOWN[:10]]
    targets = [
        Target(social_account_id=f"{number:064}", channel=KNOWN[number % len(KNOWN)], destination="字" * 256)
        for number in range(25)
    ]
    draft = Draft(content=DraftContent(text="x" * 13_000, channel_texts=texts), targets=targets)
    assert 163_000 < draft.content.ByteSize() < MOST_BYTES
    created = (await drafts.CreateDraft(creation(draft=draft))).draft
    assert (await drafts.GetDraft(pb.GetDraftRequest(organization_id="org", draft_id="draft"))).draft == created


async def test_a_text_of_the_greatest_length_is_accepted(drafts: DraftsServiceAsyncStub) -> None:
    assert (await drafts.CreateDraft(creation(draft=a_draft("я" * 70_000)))).draft.content.text == "я" * 70_000


async def test_a_stale_etag_aborts(drafts: DraftsServiceAsyncStub) -> None:
    etag = (await drafts.CreateDraft(creation())).draft.etag
    await drafts.UpdateDraft(update(Draft(content=DraftContent(text="first"), etag=etag), "content.text"))
    for call in (
        drafts.UpdateDraft(update(Draft(content=DraftContent(text="second"), etag=etag), "content.text")),
        drafts.ApproveDraft(pb.ApproveDraftRequest(organization_id="org", draft_id="draft", etag=etag)),
    ):
        code, fault = await refusal_of(call)
        assert (code, fault.reason, fault.metadata) == (Code.ABORTED, "ETAG_MISMATCH", {"draft_id": "draft"})


async def test_approving_another_content_aborts_with_the_present_digest(
    drafts: DraftsServiceAsyncStub,
) -> None:
    digest = (await drafts.CreateDraft(creation())).draft.content_digest
    request = pb.ApproveDraftRequest(organization_id="org", draft_id="draft", content_digest="0" * 64)
    code, fault = await refusal_of(drafts.ApproveDraft(request))
    assert (code, fault.reason) == (Code.ABORTED, "DIGEST_MISMATCH")
    assert fault.metadata == {"draft_id": "draft", "content_digest": digest}


async def test_updating_a_draft_with_a_published_target_is_refused(
    drafts: DraftsServiceAsyncStub, database: Database
) -> None:
    await drafts.CreateDraft(creation())
    await publish_a_target(database)
    code, fault = await refusal_of(drafts.UpdateDraft(update(a_draft("new"), "content.text")))
    assert (code, fault.reason) == (Code.FAILED_PRECONDITION, "DRAFT_PUBLISHED")
    assert (fault.metadata["draft_id"], fault.metadata["post_job_id"]) == ("draft", "job")


@pytest.fixture
def requests() -> dict[str, Callable[[str], object]]:
    """A request of each mutating method; another text makes it another request."""
    return {
        "CreateDraft": lambda text: creation(draft_id="new", draft=a_draft(text), request_id="request"),
        "UpdateDraft": lambda text: update(a_draft(text), "content.text", request_id="request"),
        "ApproveDraft": lambda text: pb.ApproveDraftRequest(
            organization_id="org", draft_id="draft", approver=text, request_id="request"
        ),
    }


@pytest.mark.parametrize("method", ["CreateDraft", "UpdateDraft", "ApproveDraft"])
async def test_a_request_id_makes_a_repeat_safe_and_belongs_to_one_request(
    drafts: DraftsServiceAsyncStub, requests: dict[str, Callable[[str], object]], method: str
) -> None:
    await drafts.CreateDraft(creation())
    call, request = getattr(drafts, method), requests[method]
    first = await call(request("one"))
    assert await call(request("one")) == first
    code, fault = await refusal_of(call(request("two")))
    assert (code, fault.reason, fields_of(fault)) == (Code.INVALID_ARGUMENT, "REQUEST_ID_REUSED", ["request_id"])
