"""Media is fetched before a draft is saved or approved, and only the bytes that were found are ever sent."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from channels.rules import ChannelRules, ImageRule, MediaRule, TextRule
from channels.validation import MediaKind
from drafts_service.domain.account import Account, AccountState
from drafts_service.domain.content import Content, Media, MediaFacts
from drafts_service.domain.draft import Change, GivenApproval
from drafts_service.domain.media import MediaProblem
from drafts_service.domain.target import Target
from servicekit.faults import Conflict, InvalidRequest, Unavailable

Call = Callable[..., Awaitable[Any]]
URL = "https://x.example/1.jpg"
TARGETS = (Target(social_account_id="page", channel="facebook"),)
CONTENT = Content(text="look", media=(Media(url=URL),))
FACTS = MediaFacts(sha256="a" * 64, kind=MediaKind.IMAGE, content_type="image/jpeg", size=5, width=4, height=3)
GONE = MediaProblem(reason="MEDIA_NOT_SERVED", message="its server answers 404", may_pass=False)
PENDING = MediaProblem(reason="MEDIA_PENDING", message="is still being fetched", may_pass=True)


@pytest.fixture
async def unpinned(create_draft: Call, media: Any) -> Any:
    """A draft that was saved while Publisher was down."""
    assert media.found is None
    return (await create_draft(draft_id="draft", content=CONTENT, targets=TARGETS)).draft


async def test_a_saved_draft_shows_what_its_media_is(create_draft: Call, media: Any) -> None:
    media.found = {URL: FACTS}
    draft = (await create_draft(draft_id="draft", content=CONTENT, targets=TARGETS)).draft
    assert draft.content.media[0].facts.sha256 == FACTS.sha256
    assert draft.content.media[0].facts.width == 4


async def test_facts_that_a_caller_gives_do_not_count(create_draft: Call, unpinned: Any) -> None:
    assert not unpinned.content.media[0].HasField("facts")


@pytest.mark.parametrize("found", [GONE, replace(FACTS, size=11)], ids=["gone", "too large"])
async def test_media_that_cannot_be_used_is_refused_at_save(
    create_draft: Call, media: Any, channel_rules: Any, directory: Any, found: Any
) -> None:
    state = AccountState.CONNECTED
    page = Account(organization_id="org", id="page", version=1, state=state, provider="net")
    image = ImageRule(types=("image/jpeg",), most_bytes=10)
    rules = ChannelRules(text=TextRule(most=50), media=MediaRule(most=1, image=image))
    media.found, directory.accounts, channel_rules.taken = {URL: found}, {"page": page}, {"net": {"facebook": rules}}
    with pytest.raises(InvalidRequest) as refusal:
        await create_draft(draft_id="draft", content=CONTENT, targets=TARGETS)
    assert refusal.value.violations[0].field.startswith("draft.content.media[0]")


async def test_an_approval_pins_media_in_the_next_revision(
    unpinned: Any, approve_draft: Call, media: Any, announced: Call
) -> None:
    media.found = {URL: FACTS}
    draft = (await approve_draft(content_digest=unpinned.content_digest, etag=unpinned.etag)).draft
    assert (draft.approved, draft.revision) == (True, unpinned.revision + 1)
    assert draft.content.media[0].facts.sha256 == FACTS.sha256
    assert draft.content_digest != unpinned.content_digest
    saved = (await announced())[-1]
    assert (saved.approved, saved.content_digest, saved.revision) == (True, draft.content_digest, draft.revision)


@pytest.mark.parametrize("found", [None, {URL: PENDING}], ids=["away", "pending"])
async def test_nothing_is_approved_before_its_media_is_known(
    unpinned: Any, approve_draft: Call, get_draft: Call, media: Any, found: Any
) -> None:
    media.found = found
    with pytest.raises(Unavailable, match="MEDIA_UNCHECKED"):
        await approve_draft()
    assert (await get_draft()).etag == unpinned.etag


async def test_media_that_is_gone_is_not_approved(unpinned: Any, approve_draft: Call, media: Any) -> None:
    media.found = {URL: GONE}
    with pytest.raises(InvalidRequest, match="MEDIA_REFUSED"):
        await approve_draft()


async def test_a_stale_digest_is_refused_before_anything_is_fetched(
    unpinned: Any, approve_draft: Call, media: Any
) -> None:
    media.asked.clear()
    with pytest.raises(Conflict, match="DIGEST_MISMATCH"):
        await approve_draft(content_digest="0" * 64)
    assert media.asked == []


async def test_approving_again_fetches_nothing(unpinned: Any, approve_draft: Call, media: Any) -> None:
    media.found = {URL: FACTS}
    first = (await approve_draft()).draft
    media.asked.clear()
    assert (await approve_draft()).draft == first
    assert media.asked == []


async def test_a_batch_says_which_draft_has_media_to_be_fetched(unpinned: Any, approve_drafts: Call) -> None:
    given = GivenApproval(draft_id="draft", content_digest="", etag="", approver="ann")
    (result,) = (await approve_drafts(given=[given])).results
    assert result.error.reason == "MEDIA_UNCHECKED"


async def test_an_edit_of_the_text_keeps_the_bytes_that_were_approved(
    create_draft: Call, update_draft: Call, media: Any
) -> None:
    media.found = {URL: FACTS}
    await create_draft(draft_id="draft", content=CONTENT, targets=TARGETS)
    media.found = {URL: replace(FACTS, sha256="b" * 64)}
    kept = (await update_draft(change=Change(text="new"))).draft
    assert kept.content.media[0].facts.sha256 == FACTS.sha256
    named = (await update_draft(change=Change(media=CONTENT.media))).draft
    assert named.content.media[0].facts.sha256 == "b" * 64
