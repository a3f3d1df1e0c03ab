from collections.abc import Awaitable, Callable, Coroutine
from datetime import UTC, timedelta
from hashlib import sha256
from typing import Any

import pytest

from drafts_service.domain.content import ChannelText, Content
from drafts_service.domain.draft import Placement
from drafts_service.domain.post_job import JobState, PostJobEvent
from drafts_service.domain.target import Target
from postflow.drafts.v1.draft_pb2 import DRAFT_STATE_DRAFT, DRAFT_STATE_PUBLISHED, Draft, DraftContent
from postflow.drafts.v1.drafts_events_pb2 import DraftSaved
from postflow.drafts.v1.drafts_service_pb2 import CreateDraftResponse
from servicekit.clock import SystemClock
from servicekit.faults import AlreadyExists, InvalidField, NotFound

Get = Callable[..., Awaitable[Draft]]
Create = Callable[..., Coroutine[Any, Any, CreateDraftResponse]]
Announced = Callable[[], Awaitable[list[DraftSaved]]]

TARGETS = (
    Target(social_account_id="a", channel="instagram"),
    Target(social_account_id="b", channel="telegram", destination="@news"),
)
CONTENT = Content(text="text", hashtags=("one",), channel_texts=(ChannelText(channel="Telegram", text="few"),))


async def test_a_new_draft_is_unapproved_and_announced_with_its_content(
    create_draft: Create, announced: Announced
) -> None:
    draft = (await create_draft(draft_id="", content=CONTENT, targets=TARGETS)).draft
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


async def test_an_id_in_use_is_refused_and_announces_nothing(
    a_draft: Callable[..., Awaitable[Draft]], create_draft: Create, announced: Announced
) -> None:
    await a_draft("mine")
    with pytest.raises(AlreadyExists) as refusal:
        await create_draft(draft_id="mine", content=CONTENT, targets=TARGETS, request_id="request")
    assert (refusal.value.reason, refusal.value.metadata) == ("DRAFT_EXISTS", {"draft_id": "mine"})
    assert len(await announced()) == 1


async def test_two_organizations_may_use_one_id_and_do_not_see_each_other(
    a_draft: Callable[..., Awaitable[Draft]], get_draft: Get
) -> None:
    await a_draft("mine", text="one")
    await a_draft("mine", text="two", organization_id="other")
    assert (await get_draft("mine")).content.text == "one"
    with pytest.raises(NotFound):
        await get_draft("mine", organization_id="third")


async def test_a_repeated_request_gets_the_first_answer_and_creates_nothing(
    create_draft: Create, announced: Announced
) -> None:
    first = await create_draft(draft_id="", content=CONTENT, targets=TARGETS, request_id="request")
    again = await create_draft(draft_id="", content=CONTENT, targets=TARGETS, request_id="request")
    assert again == first
    assert len(await announced()) == 1


async def test_a_request_id_belongs_to_one_request(create_draft: Create) -> None:
    await create_draft(draft_id="one", content=CONTENT, targets=TARGETS, request_id="request")
    with pytest.raises(InvalidField) as refusal:
        await create_draft(draft_id="two", content=CONTENT, targets=TARGETS, request_id="request", digest=b"other")
    assert refusal.value.reason == "REQUEST_ID_REUSED"


async def test_events_older_than_their_draft_are_folded_at_its_creation(
    a_draft: Callable[..., Awaitable[Draft]],
    reflect: Callable[..., Awaitable[None]],
    a_job: Callable[..., PostJobEvent],
    get_draft: Get,
) -> None:
    await reflect(a_job(JobState.PUBLISHED, version=4))
    created = await a_draft()
    assert created.state == DRAFT_STATE_PUBLISHED
    assert [each.post_job_state for each in created.target_states] == ["PUBLISHED"]
    assert await get_draft() == created


async def test_a_draft_may_ask_for_a_time_and_a_category(
    create_draft: Create, get_draft: Get, announced: Announced
) -> None:
    placement = Placement(
        requested_time=SystemClock().now() + timedelta(days=729), category_id="news", brand_id="bakery"
    )
    draft = (
        await create_draft(draft_id="draft", content=Content(text="x"), targets=TARGETS, placement=placement)
    ).draft
    assert (draft.requested_time.ToDatetime(UTC), draft.category_id) == (placement.requested_time, "news")
    assert draft.brand_id == "bakery"
    assert await get_draft() == draft
    [saved] = await announced()
    assert (saved.requested_time, saved.category_id) == (draft.requested_time, "news")
    assert saved.brand_id == "bakery"


@pytest.mark.parametrize("days", [-1, 731])
async def test_a_time_in_the_past_or_too_far_ahead_is_refused(
    create_draft: Create, announced: Announced, days: int
) -> None:
    placement = Placement(requested_time=SystemClock().now() + timedelta(days=days))
    with pytest.raises(InvalidField) as refusal:
        await create_draft(draft_id="draft", content=Content(text="x"), targets=TARGETS, placement=placement)
    assert [each.field for each in refusal.value.violations] == ["draft.requested_time"]
    assert await announced() == []
