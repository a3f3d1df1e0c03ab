from collections.abc import Awaitable, Callable, Coroutine
from datetime import UTC, timedelta
from typing import Any

import pytest
from sqlalchemy import text

from drafts_service.domain.content import ChannelText, Content
from drafts_service.domain.draft import Change, RequestedTime
from drafts_service.domain.post_job import JobState, PostJobEvent
from drafts_service.domain.target import Target
from drafts_service.domain.withdrawal import WithdrawalAnswer
from postflow.drafts.v1.draft_pb2 import Draft, DraftState
from postflow.drafts.v1.drafts_events_pb2 import DraftSaved
from postflow.drafts.v1.drafts_service_pb2 import CreateDraftResponse, UpdateDraftResponse
from servicekit.clock import SystemClock
from servicekit.faults import Conflict, InvalidField, NotFound, Refused
from servicekit.pg.database import Database

Get = Callable[..., Awaitable[Draft]]
Create = Callable[..., Coroutine[Any, Any, CreateDraftResponse]]
Update = Callable[..., Coroutine[Any, Any, UpdateDraftResponse]]
Announced = Callable[[], Awaitable[list[DraftSaved]]]
ADraft = Callable[..., Awaitable[Draft]]


TOMORROW = SystemClock().now() + timedelta(days=1)


class SilentPublisher:
    """Refuses to be asked: a draft that was never approved has nothing to withdraw."""

    async def withdraw(self, organization_id: str, draft_id: str, *, below: int) -> WithdrawalAnswer | None:
        raise AssertionError(f"asked to withdraw {draft_id} below {below}")


@pytest.fixture
def publisher() -> SilentPublisher:
    return SilentPublisher()


async def test_new_content_is_a_new_revision_with_its_own_digest(
    a_draft: ADraft, update_draft: Update, get_draft: Get, announced: Announced
) -> None:
    before = await a_draft(text="old")
    answer = await update_draft(etag=before.etag, change=Change(text="new", hashtags=("x",)))
    draft = answer.draft
    assert (draft.content.text, list(draft.content.hashtags), draft.revision) == ("new", ["x"], 2)
    assert draft.content_digest != before.content_digest
    assert draft.etag != before.etag
    assert await get_draft() == draft
    saved = (await announced())[-1]
    assert (saved.version, saved.revision, saved.content_digest) == (2, 2, draft.content_digest)


async def test_new_targets_are_normalised_and_announced(
    a_draft: ADraft, update_draft: Update, announced: Announced
) -> None:
    before = await a_draft()
    change = Change(targets=(Target(social_account_id="b", channel="Instagram"),))
    draft = (await update_draft(change=change)).draft
    assert [(each.social_account_id, each.channel) for each in draft.targets] == [("b", "instagram_feed")]
    assert (draft.revision, draft.content_digest) == (2, before.content_digest)
    assert list((await announced())[-1].targets) == list(draft.targets)


async def test_a_change_that_changes_nothing_keeps_revision_approval_and_etag(
    a_draft: ADraft, update_draft: Update, announced: Announced
) -> None:
    before = await a_draft(text="same", accounts=("a", "b"), approved=True)
    change = Change(text="same", targets=tuple(Target(social_account_id=one, channel="facebook") for one in "ba"))
    assert (await update_draft(etag=before.etag, change=change)).draft == before
    assert len(await announced()) == 2


async def test_a_stale_etag_is_a_conflict_and_changes_nothing(
    a_draft: ADraft, update_draft: Update, get_draft: Get
) -> None:
    before = await a_draft()
    await update_draft(etag=before.etag, change=Change(text="first"))
    with pytest.raises(Conflict) as conflict:
        await update_draft(etag=before.etag, change=Change(text="second"))
    assert conflict.value.reason == "ETAG_MISMATCH"
    assert (await get_draft()).content.text == "first"


async def test_events_do_not_make_an_etag_stale(
    a_draft: ADraft,
    update_draft: Update,
    reflect: Callable[..., Awaitable[None]],
    a_job: Callable[..., PostJobEvent],
) -> None:
    before = await a_draft()
    await reflect(a_job(JobState.FAILED))
    assert (await update_draft(etag=before.etag, change=Change(text="new"))).draft


async def test_a_draft_with_a_published_target_cannot_be_changed(
    a_draft: ADraft,
    update_draft: Update,
    reflect: Callable[..., Awaitable[None]],
    a_job: Callable[..., PostJobEvent],
) -> None:
    await a_draft(accounts=("a", "b"))
    await reflect(a_job(JobState.PUBLISHED, account="b"), a_job(JobState.PENDING, account="a"))
    with pytest.raises(Refused) as refusal:
        await update_draft(change=Change(text="new"))
    assert refusal.value.reason == "DRAFT_PUBLISHED"
    assert refusal.value.metadata["post_job_id"] == "draft-b"


async def test_the_state_of_a_draft_follows_a_change_of_its_targets(
    a_draft: ADraft,
    update_draft: Update,
    reflect: Callable[..., Awaitable[None]],
    a_job: Callable[..., PostJobEvent],
) -> None:
    await a_draft(accounts=("a", "b"))
    await reflect(a_job(JobState.NEEDS_ATTENTION, account="a"), a_job(JobState.FAILED, account="b"))

    async def after(*accounts: str) -> str:
        targets = tuple(Target(social_account_id=account, channel="facebook") for account in accounts)
        draft = (await update_draft(change=Change(targets=targets))).draft
        return DraftState.Name(draft.state)

    await reflect(a_job(JobState.CANCELED, account="a", version=2))
    assert await after("a") == "DRAFT_STATE_DRAFT"
    assert await after("b") == "DRAFT_STATE_FAILED"


async def test_new_targets_must_cover_the_channels_of_the_channel_texts(
    create_draft: Create, update_draft: Update
) -> None:
    content = Content(text="all", channel_texts=(ChannelText(channel="facebook", text="few"),))
    targets = (Target(social_account_id="a", channel="facebook"),)
    await create_draft(draft_id="draft", content=content, targets=targets)
    change = Change(targets=(Target(social_account_id="a", channel="telegram"),))
    with pytest.raises(InvalidField, match="no target is on facebook"):
        await update_draft(change=change)


async def test_the_same_request_is_answered_as_before(
    a_draft: ADraft, update_draft: Update, announced: Announced
) -> None:
    etag = (await a_draft()).etag
    first = await update_draft(etag=etag, change=Change(text="new"), request_id="request")
    await update_draft(change=Change(text="newer"))
    assert await update_draft(etag=etag, change=Change(text="new"), request_id="request") == first
    assert len(await announced()) == 3


async def test_the_draft_of_another_organization_is_not_found(a_draft: ADraft, update_draft: Update) -> None:
    await a_draft()
    with pytest.raises(NotFound) as absence:
        await update_draft(change=Change(text="new"), organization_id="other")
    assert absence.value.reason == "DRAFT_NOT_FOUND"


async def test_a_time_and_a_category_withdraw_nothing_and_keep_the_approval(
    a_draft: ADraft, update_draft: Update, get_draft: Get, announced: Announced
) -> None:
    """Publisher refuses to be asked, even about a draft that is approved."""
    before = await a_draft(approved=True)
    change = Change(requested_time=RequestedTime(TOMORROW), category_id="news")
    draft = (await update_draft(etag=before.etag, change=change)).draft
    assert (draft.requested_time.ToDatetime(UTC), draft.category_id) == (TOMORROW, "news")
    assert (draft.revision, draft.approved, draft.approve_time) == (1, True, before.approve_time)
    assert draft.etag != before.etag
    assert await get_draft() == draft
    saved = (await announced())[-1]
    assert (saved.version, saved.revision, saved.approved, saved.category_id) == (3, 1, True, "news")
    assert saved.requested_time.ToDatetime(UTC) == TOMORROW


async def test_a_time_is_cleared_by_naming_it_without_a_value(
    a_draft: ADraft, update_draft: Update, announced: Announced
) -> None:
    await a_draft()
    await update_draft(change=Change(requested_time=RequestedTime(TOMORROW), category_id="news"))
    draft = (await update_draft(change=Change(requested_time=RequestedTime(None)))).draft
    assert (draft.HasField("requested_time"), draft.category_id) == (False, "news")
    assert not (await announced())[-1].HasField("requested_time")
    assert not (await update_draft(change=Change(category_id=""))).draft.category_id


async def test_the_same_time_and_category_are_not_announced_again(
    a_draft: ADraft, update_draft: Update, announced: Announced
) -> None:
    await a_draft()
    change = Change(requested_time=RequestedTime(TOMORROW), category_id="news")
    first = (await update_draft(change=change)).draft
    assert (await update_draft(change=change)).draft == first
    assert len(await announced()) == 2


async def test_a_time_that_has_passed_may_stay_but_not_be_chosen(
    database: Database, a_draft: ADraft, update_draft: Update
) -> None:
    await a_draft()
    passed = TOMORROW - timedelta(days=9)
    with pytest.raises(InvalidField) as refusal:
        await update_draft(change=Change(requested_time=RequestedTime(passed)))
    assert [each.field for each in refusal.value.violations] == ["draft.requested_time"]
    async with database.statement() as connection:
        await connection.execute(text("update draft set requested_time = :time"), {"time": passed})
    change = Change(text="new", category_id="news", requested_time=RequestedTime(passed))
    assert (await update_draft(change=change)).draft.requested_time.ToDatetime(UTC) == passed


async def test_a_published_draft_keeps_its_time(
    a_draft: ADraft, update_draft: Update, reflect: Callable[..., Awaitable[None]], a_job: Callable[..., PostJobEvent]
) -> None:
    await a_draft()
    await reflect(a_job(JobState.PUBLISHED))
    with pytest.raises(Refused) as refusal:
        await update_draft(change=Change(requested_time=RequestedTime(TOMORROW)))
    assert refusal.value.reason == "DRAFT_PUBLISHED"
