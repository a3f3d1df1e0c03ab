from collections.abc import Awaitable, Callable

import pytest

from drafts_service.application.account_obstacles import AccountObstacles
from drafts_service.application.create_draft import CreateDraft
from drafts_service.application.get_draft import GetDraft
from drafts_service.application.update_draft import UpdateDraft
from drafts_service.domain.content import ChannelText, Content
from drafts_service.domain.draft import Change
from drafts_service.domain.post_job import JobState, PostJobEvent
from drafts_service.domain.target import Target
from drafts_service.domain.withdrawal import WithdrawalAnswer
from postflow.drafts.v1.draft_pb2 import Draft, DraftState
from postflow.drafts.v1.drafts_events_pb2 import DraftSaved
from servicekit.faults import Conflict, InvalidField, NotFound, Refused
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database
from servicekit.pg.ledger_by_hand import RequestKey, RequestLedger
from servicekit.pg.outbox import Outbox

Announced = Callable[[], Awaitable[list[DraftSaved]]]
Create = Callable[..., Awaitable[Draft]]


class SilentPublisher:
    """Nothing of a draft that was never approved has to be withdrawn."""

    async def withdraw(self, organization_id: str, draft_id: str, *, below: int) -> WithdrawalAnswer | None:
        raise AssertionError(f"asked to withdraw {draft_id} below {below}")


@pytest.fixture
def update_draft(database: Database, outbox: Outbox, obstacles: AccountObstacles) -> UpdateDraft:
    return UpdateDraft(
        database=database,
        clock=DatabaseClock(),
        ledger=RequestLedger(),
        outbox=outbox,
        publisher=SilentPublisher(),
        obstacles=obstacles,
    )


def key(request_id: str = "", organization_id: str = "org") -> RequestKey:
    return RequestKey(organization_id=organization_id, method="UpdateDraft", request_id=request_id, request_digest=b"")


async def test_new_content_is_a_new_revision_with_its_own_digest(
    a_draft: Create, update_draft: UpdateDraft, get_draft: GetDraft, announced: Announced
) -> None:
    before = await a_draft(text="old")
    answer = await update_draft(key(), draft_id="draft", etag=before.etag, change=Change(text="new", hashtags=("x",)))
    draft = answer.draft
    assert (draft.content.text, list(draft.content.hashtags), draft.revision) == ("new", ["x"], 2)
    assert draft.content_digest != before.content_digest
    assert draft.etag != before.etag
    assert (await get_draft(organization_id="org", draft_id="draft")).draft == draft
    saved = (await announced())[-1]
    assert (saved.version, saved.revision, saved.content_digest) == (2, 2, draft.content_digest)


async def test_new_targets_are_normalised_and_announced(
    a_draft: Create, update_draft: UpdateDraft, announced: Announced
) -> None:
    before = await a_draft()
    change = Change(targets=(Target(social_account_id="b", channel="Instagram"),))
    draft = (await update_draft(key(), draft_id="draft", etag="", change=change)).draft
    assert [(each.social_account_id, each.channel) for each in draft.targets] == [("b", "instagram_feed")]
    assert (draft.revision, draft.content_digest) == (2, before.content_digest)
    assert list((await announced())[-1].targets) == list(draft.targets)


async def test_a_change_that_changes_nothing_keeps_revision_approval_and_etag(
    a_draft: Create, update_draft: UpdateDraft, announced: Announced
) -> None:
    before = await a_draft(text="same", accounts=("a", "b"), approved=True)
    change = Change(text="same", targets=tuple(Target(social_account_id=one, channel="facebook") for one in "ba"))
    assert (await update_draft(key(), draft_id="draft", etag=before.etag, change=change)).draft == before
    assert len(await announced()) == 2


async def test_a_stale_etag_is_a_conflict_and_changes_nothing(
    a_draft: Create, update_draft: UpdateDraft, get_draft: GetDraft
) -> None:
    before = await a_draft()
    await update_draft(key(), draft_id="draft", etag=before.etag, change=Change(text="first"))
    with pytest.raises(Conflict) as conflict:
        await update_draft(key(), draft_id="draft", etag=before.etag, change=Change(text="second"))
    assert conflict.value.reason == "ETAG_MISMATCH"
    assert (await get_draft(organization_id="org", draft_id="draft")).draft.content.text == "first"


async def test_events_do_not_make_an_etag_stale(
    a_draft: Create,
    update_draft: UpdateDraft,
    reflect: Callable[..., Awaitable[None]],
    a_job: Callable[..., PostJobEvent],
) -> None:
    before = await a_draft()
    await reflect(a_job(JobState.FAILED))
    assert (await update_draft(key(), draft_id="draft", etag=before.etag, change=Change(text="new"))).draft


async def test_a_draft_of_which_a_target_has_gone_out_cannot_be_changed(
    a_draft: Create,
    update_draft: UpdateDraft,
    reflect: Callable[..., Awaitable[None]],
    a_job: Callable[..., PostJobEvent],
) -> None:
    await a_draft(accounts=("a", "b"))
    await reflect(a_job(JobState.PUBLISHED, account="b"), a_job(JobState.PENDING, account="a"))
    with pytest.raises(Refused) as refusal:
        await update_draft(key(), draft_id="draft", etag="", change=Change(text="new"))
    assert refusal.value.reason == "DRAFT_PUBLISHED"
    assert refusal.value.metadata["post_job_id"] == "draft-b"


async def test_the_state_of_a_draft_follows_a_change_of_its_targets(
    a_draft: Create,
    update_draft: UpdateDraft,
    reflect: Callable[..., Awaitable[None]],
    a_job: Callable[..., PostJobEvent],
) -> None:
    await a_draft(accounts=("a", "b"))
    await reflect(a_job(JobState.NEEDS_ATTENTION, account="a"), a_job(JobState.FAILED, account="b"))

    async def after(*accounts: str) -> str:
        targets = tuple(Target(social_account_id=account, channel="facebook") for account in accounts)
        draft = (await update_draft(key(), draft_id="draft", etag="", change=Change(targets=targets))).draft
        return DraftState.Name(draft.state)

    await reflect(a_job(JobState.CANCELED, account="a", version=2))
    assert await after("a") == "DRAFT_STATE_DRAFT"
    assert await after("b") == "DRAFT_STATE_FAILED"


async def test_a_channel_text_needs_a_target_on_its_channel_also_when_only_the_targets_change(
    create_draft: CreateDraft, update_draft: UpdateDraft
) -> None:
    content = Content(text="all", channel_texts=(ChannelText(channel="facebook", text="few"),))
    targets = (Target(social_account_id="a", channel="facebook"),)
    await create_draft(key(), draft_id="draft", content=content, targets=targets)
    change = Change(targets=(Target(social_account_id="a", channel="telegram"),))
    with pytest.raises(InvalidField, match="no target is on facebook"):
        await update_draft(key(), draft_id="draft", etag="", change=change)


async def test_the_same_request_is_answered_as_before(
    a_draft: Create, update_draft: UpdateDraft, announced: Announced
) -> None:
    etag = (await a_draft()).etag
    first = await update_draft(key("request"), draft_id="draft", etag=etag, change=Change(text="new"))
    await update_draft(key(), draft_id="draft", etag="", change=Change(text="newer"))
    assert await update_draft(key("request"), draft_id="draft", etag=etag, change=Change(text="new")) == first
    assert len(await announced()) == 3


async def test_the_draft_of_another_organization_is_not_found(a_draft: Create, update_draft: UpdateDraft) -> None:
    await a_draft()
    with pytest.raises(NotFound) as absence:
        await update_draft(key(organization_id="other"), draft_id="draft", etag="", change=Change(text="new"))
    assert absence.value.reason == "DRAFT_NOT_FOUND"
