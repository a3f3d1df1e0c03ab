"""An edit is checked as a new draft is, also if nobody knew the accounts of the draft before."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from channels.rules import ChannelRules, TextRule
from drafts_service.domain.account import Account, AccountState
from drafts_service.domain.content import Content
from drafts_service.domain.draft import Change
from drafts_service.domain.target import Target
from servicekit.faults import InvalidRequest

Call = Callable[..., Awaitable[Any]]
TARGETS = (Target(social_account_id="page", channel="facebook"),)
EDITS = [Change(text="much too long"), Change(targets=TARGETS)]
NAMES = ["text", "targets"]


def page(provider: str = "net") -> Account:
    return Account(organization_id="org", id="page", version=1, state=AccountState.CONNECTED, provider=provider)


@pytest.fixture(autouse=True)
async def unchecked(create_draft: Call, channel_rules: Any, directory: Any) -> None:
    """A draft that breaks a rule, and was saved while nobody knew its account."""
    channel_rules.taken = {"net": {"facebook": ChannelRules(text=TextRule(most=5))}}
    await create_draft(draft_id="draft", content=Content(text="too long"), targets=TARGETS)
    directory.asked.clear()


@pytest.mark.parametrize("change", EDITS, ids=NAMES)
@pytest.mark.parametrize("is_stored", [False, True], ids=["unknown", "of an earlier release"])
async def test_an_account_that_nobody_knew_is_learned_at_the_edit(
    update_draft: Call, get_draft: Call, keep: Call, directory: Any, change: Change, *, is_stored: bool
) -> None:
    if is_stored:
        await keep(page(provider=""))
    directory.accounts = {"page": page()}
    with pytest.raises(InvalidRequest, match="CONTENT_BREAKS_RULES"):
        await update_draft(change=change)
    assert directory.asked == ["page"]
    assert (await get_draft()).content.text == "too long"


@pytest.mark.parametrize("change", EDITS, ids=NAMES)
async def test_without_publisher_an_edit_is_saved_after_one_question(
    update_draft: Call, directory: Any, change: Change
) -> None:
    assert (await update_draft(change=change)).draft.id == "draft"
    assert directory.asked == ["page"]


async def test_an_edit_of_a_known_account_asks_nobody(update_draft: Call, keep: Call, directory: Any) -> None:
    await keep(page())
    assert (await update_draft(change=Change(text="short"))).draft.content.text == "short"
    assert directory.asked == []
