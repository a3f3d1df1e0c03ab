"""A draft is saved only within the rules of its channels, as far as Publisher has shown them."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from channels.rules import ChannelRules, TextRule
from drafts_service.domain.account import Account, AccountState
from drafts_service.domain.content import Content
from drafts_service.domain.draft import Change, GivenDraft
from drafts_service.domain.target import Target
from servicekit.faults import InvalidRequest

Call = Callable[..., Awaitable[Any]]
TARGETS = (Target(social_account_id="page", channel="facebook"),)
SHORT, LONG = Content(text="short"), Content(text="too long")


def page(organization: str = "org", provider: str = "net") -> Account:
    state = AccountState.CONNECTED
    return Account(organization_id=organization, id="page", version=1, state=state, provider=provider)


@pytest.fixture(autouse=True)
def rules_of_a_network(channel_rules: Any, directory: Any) -> None:
    channel_rules.taken = {"net": {"facebook": ChannelRules(text=TextRule(most=5))}}
    directory.accounts = {"page": page()}


async def test_a_content_that_breaks_a_rule_is_not_saved(create_draft: Call, get_draft: Call) -> None:
    with pytest.raises(InvalidRequest, match="CONTENT_BREAKS_RULES"):
        await create_draft(draft_id="draft", content=LONG, targets=TARGETS)
    await create_draft(draft_id="draft", content=SHORT, targets=TARGETS)
    assert (await get_draft("draft")).content.text == "short"


async def test_an_edit_that_breaks_a_rule_changes_nothing(
    create_draft: Call, update_draft: Call, get_draft: Call
) -> None:
    before = (await create_draft(draft_id="draft", content=SHORT, targets=TARGETS)).draft
    with pytest.raises(InvalidRequest, match="CONTENT_BREAKS_RULES"):
        await update_draft(change=Change(text="too long"))
    assert (await get_draft("draft")).etag == before.etag


async def test_in_a_batch_only_the_draft_that_breaks_a_rule_is_refused(create_drafts: Call) -> None:
    given = [GivenDraft(id=content.text, content=content, targets=TARGETS) for content in (SHORT, LONG)]
    good, bad = (await create_drafts(given=given)).results
    assert good.draft.id == "short"
    assert (bad.error.reason, bad.error.field) == ("CONTENT_BREAKS_RULES", "draft.content.text")


async def test_without_rules_a_draft_is_saved_unchecked(create_draft: Call, channel_rules: Any) -> None:
    channel_rules.taken = None
    assert (await create_draft(draft_id="draft", content=LONG, targets=TARGETS)).draft.id == "draft"


async def test_an_account_is_asked_for_once_and_then_known(create_draft: Call, directory: Any) -> None:
    for number in range(3):
        await create_draft(draft_id=f"draft-{number}", content=SHORT, targets=TARGETS)
    assert directory.asked == ["page"]


async def test_an_account_that_is_connected_later_is_checked_then(
    create_draft: Call, keep: Call, directory: Any
) -> None:
    directory.accounts = {}
    await create_draft(draft_id="early", content=LONG, targets=TARGETS)
    await keep(page())
    with pytest.raises(InvalidRequest, match="CONTENT_BREAKS_RULES"):
        await create_draft(draft_id="late", content=LONG, targets=TARGETS)


async def test_the_provider_of_an_account_of_an_earlier_release_is_learned(
    create_draft: Call, keep: Call, directory: Any
) -> None:
    await keep(page(provider=""))
    with pytest.raises(InvalidRequest, match="CONTENT_BREAKS_RULES"):
        await create_draft(draft_id="draft", content=LONG, targets=TARGETS)
    assert directory.asked == ["page"]
