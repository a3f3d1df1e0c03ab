"""A draft that was saved unchecked is checked when it is approved, as soon as its accounts are known."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from channels.rules import ChannelRules, ImageRule, MediaRule, TextRule
from channels.validation import MediaKind
from drafts_service.domain.account import Account, AccountState
from drafts_service.domain.content import Content, Media, MediaFacts
from drafts_service.domain.draft import Change, GivenApproval
from drafts_service.domain.target import Target
from servicekit.faults import InvalidRequest

Call = Callable[..., Awaitable[Any]]
PAGE = Target(social_account_id="page", channel="facebook")
OTHER = Target(social_account_id="other", channel="facebook")
SHORT, LONG = Content(text="short"), Content(text="too long")
PICTURE = Media(url="https://x.example/1.jpg")
FACTS = MediaFacts(sha256="a" * 64, kind=MediaKind.IMAGE, content_type="image/jpeg", size=5, width=4, height=3)


def account(name: str, provider: str = "net") -> Account:
    return Account(organization_id="org", id=name, version=1, state=AccountState.CONNECTED, provider=provider)


def taking(*, most_bytes: int) -> ChannelRules:
    image = ImageRule(types=("image/jpeg",), most_bytes=most_bytes)
    return ChannelRules(text=TextRule(most=5), media=MediaRule(most=1, image=image))


@pytest.fixture(autouse=True)
def rules_of_networks(channel_rules: Any) -> None:
    channel_rules.taken = {"net": {"facebook": taking(most_bytes=10)}, "narrow": {"facebook": taking(most_bytes=4)}}


@pytest.fixture
async def unchecked(create_draft: Call, directory: Any) -> None:
    """A draft that breaks a rule, and was saved while nobody knew its account."""
    assert directory.accounts is None
    await create_draft(draft_id="draft", content=LONG, targets=(PAGE,))


@pytest.mark.usefixtures("unchecked")
async def test_an_unchecked_draft_that_breaks_a_rule_is_not_approved(
    approve_draft: Call, get_draft: Call, directory: Any
) -> None:
    directory.accounts = {"page": account("page")}
    with pytest.raises(InvalidRequest, match="CONTENT_BREAKS_RULES"):
        await approve_draft()
    assert not (await get_draft()).approved


@pytest.mark.usefixtures("unchecked")
async def test_the_accounts_of_an_earlier_release_are_learned_at_the_approval(
    approve_draft: Call, keep: Call, directory: Any
) -> None:
    await keep(account("page", provider=""))
    directory.accounts = {"page": account("page")}
    with pytest.raises(InvalidRequest, match="CONTENT_BREAKS_RULES"):
        await approve_draft()


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("accounts", [None, {}], ids=["away", "no such account"])
async def test_what_stays_unknown_is_approved(approve_draft: Call, directory: Any, accounts: Any) -> None:
    directory.accounts = accounts
    assert (await approve_draft()).draft.approved


async def test_an_account_that_is_known_is_not_asked_for(
    create_draft: Call, approve_draft: Call, keep: Call, directory: Any
) -> None:
    await keep(account("page"))
    await create_draft(draft_id="draft", content=SHORT, targets=(PAGE,))
    assert (await approve_draft()).draft.approved
    assert directory.asked == []


@pytest.mark.usefixtures("unchecked")
async def test_in_a_batch_only_the_draft_that_breaks_a_rule_is_refused(
    create_draft: Call, approve_drafts: Call, directory: Any
) -> None:
    await create_draft(draft_id="good", content=SHORT, targets=(PAGE,))
    directory.accounts = {"page": account("page")}
    directory.asked.clear()
    given = [GivenApproval(draft_id=name, content_digest="", etag="", approver="ann") for name in ("draft", "good")]
    bad, good = (await approve_drafts(given=given)).results
    assert (bad.error.reason, bad.error.field) == ("CONTENT_BREAKS_RULES", "draft.content.text")
    assert good.draft.approved
    assert directory.asked == ["page"]


async def test_a_target_that_comes_while_media_is_fetched_is_checked_against_it(
    create_draft: Call, approve_draft: Call, update_draft: Call, get_draft: Call, media: Any, keep: Call
) -> None:
    await keep(account("page"), account("other", provider="narrow"))
    await create_draft(draft_id="draft", content=Content(text="short", media=(PICTURE,)), targets=(PAGE,))
    media.found = {PICTURE.url: FACTS}

    async def add_target() -> None:
        media.before_answer = None
        await update_draft(change=Change(targets=(PAGE, OTHER)))

    media.before_answer = add_target
    with pytest.raises(InvalidRequest, match="CONTENT_BREAKS_RULES"):
        await approve_draft()
    draft = await get_draft()
    assert (len(draft.targets), draft.approved) == (2, False)
