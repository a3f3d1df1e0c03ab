from collections.abc import Awaitable, Callable
from hashlib import sha256

import pytest

from drafts_service.application.create_draft import CreateDraft
from drafts_service.application.get_draft import GetDraft
from drafts_service.domain.content import ChannelText, Content
from drafts_service.domain.post_job import JobState, PostJobEvent
from drafts_service.domain.target import Target
from postflow.drafts.v1.draft_pb2 import DRAFT_STATE_DRAFT, DRAFT_STATE_PUBLISHED, Draft, DraftContent
from postflow.drafts.v1.drafts_events_pb2 import DraftSaved
from servicekit.faults import AlreadyExists, InvalidField, NotFound
from servicekit.pg.ledger_by_hand import RequestKey

Announced = Callable[[], Awaitable[list[DraftSaved]]]

TARGETS = (
    Target(social_account_id="a", channel="instagram"),
    Target(social_account_id="b", channel="telegram", destination="@news"),
)
CONTENT = Content(text="text", hashtags=("one",), channel_texts=(ChannelText(channel="Telegram", text="few"),))


def key(request_id: str = "", digest: bytes = b"", organization_id: str = "org") -> RequestKey:
    return RequestKey(
        organization_id=organization_id, method="CreateDraft", request_id=request_id, request_digest=digest
    )


async def test_a_new_draft_is_not_approved_and_is_announced_with_the_bytes_of_its_digest(
    create_draft: CreateDraft, announced: Announced
) -> None:
    draft = (await create_draft(key(), draft_id="", content=CONTENT, targets=TARGETS)).draft
    assert len(draft.id) == 36
    assert (draft.approved, draft.revision, draft.state) == (False, 1, DRAFT_STATE_DRAFT)
    assert [(each.social_account_id, each.channel, each.destination) for each in draft.targets] == [
        ("a", "instagram_feed", ""),
        ("b", "telegram", "@news"),
    ]
    (saved,) = await announced()
    assert (saved.organization_id, saved.draft_id, saved.version, saved.revision) == ("org", draft.id, 1, 1)
    assert not saved.approved
    assert sha256(saved.content).hexdigest() == saved.content_digest == draft.content_digest
    assert DraftContent.FromString(saved.content) == draft.content
    assert [each.channel for each in draft.content.channel_texts] == ["telegram"]
    assert list(saved.targets) == list(draft.targets)


async def test_what_was_created_is_read_back(create_draft: CreateDraft, get_draft: GetDraft) -> None:
    created = (await create_draft(key(), draft_id="mine", content=CONTENT, targets=TARGETS)).draft
    assert (await get_draft(organization_id="org", draft_id="mine")).draft == created


async def test_an_id_in_use_is_refused_and_announces_nothing(
    a_draft: Callable[..., Awaitable[Draft]], create_draft: CreateDraft, announced: Announced
) -> None:
    await a_draft("mine")
    with pytest.raises(AlreadyExists) as refusal:
        await create_draft(key("request"), draft_id="mine", content=CONTENT, targets=TARGETS)
    assert (refusal.value.reason, refusal.value.metadata) == ("DRAFT_EXISTS", {"draft_id": "mine"})
    assert len(await announced()) == 1


async def test_two_organizations_may_use_one_id_and_do_not_see_each_other(
    a_draft: Callable[..., Awaitable[Draft]], get_draft: GetDraft
) -> None:
    await a_draft("mine", text="ours")
    await a_draft("mine", text="theirs", organization_id="other")
    assert (await get_draft(organization_id="org", draft_id="mine")).draft.content.text == "ours"
    with pytest.raises(NotFound):
        await get_draft(organization_id="third", draft_id="mine")


async def test_the_same_request_is_answered_as_before_and_creates_nothing_twice(
    create_draft: CreateDraft, announced: Announced
) -> None:
    first = await create_draft(key("request"), draft_id="", content=CONTENT, targets=TARGETS)
    again = await create_draft(key("request"), draft_id="", content=CONTENT, targets=TARGETS)
    assert again == first
    assert len(await announced()) == 1


async def test_a_request_id_belongs_to_one_request(create_draft: CreateDraft) -> None:
    await create_draft(key("request"), draft_id="one", content=CONTENT, targets=TARGETS)
    with pytest.raises(InvalidField) as refusal:
        await create_draft(key("request", b"other"), draft_id="two", content=CONTENT, targets=TARGETS)
    assert refusal.value.reason == "REQUEST_ID_REUSED"


async def test_events_that_came_before_their_draft_are_folded_when_it_comes(
    a_draft: Callable[..., Awaitable[Draft]],
    reflect: Callable[..., Awaitable[None]],
    a_job: Callable[..., PostJobEvent],
    get_draft: GetDraft,
) -> None:
    await reflect(a_job(JobState.PUBLISHED, version=4))
    created = await a_draft()
    assert created.state == DRAFT_STATE_PUBLISHED
    assert [each.post_job_state for each in created.target_states] == ["PUBLISHED"]
    assert (await get_draft(organization_id="org", draft_id="draft")).draft == created
