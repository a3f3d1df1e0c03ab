"""Accounts that are disconnected or do not exist."""

from datetime import timedelta

import pytest

from publisher_service.domain.account import AccountReason, AccountState, SocialAccount, disconnected, require_account
from servicekit.faults import NotFound
from tests.unit.publisher_service.post_jobs import NOW

ACCOUNT = SocialAccount(
    organization_id="acme",
    id="page",
    provider="sandbox",
    external_account_id="ext",
    display_name="The page",
    channels=("facebook",),
    state=AccountState.CONNECTED,
    version=3,
    create_time=NOW,
    update_time=NOW,
)


def test_a_disconnected_account_keeps_its_reason_and_time() -> None:
    later = NOW + timedelta(hours=1)
    gone = disconnected(ACCOUNT, AccountReason.CREDENTIALS_REFUSED, "expired", now=later)
    assert (gone.state, gone.state_reason, gone.error_message) == ("DISCONNECTED", "CREDENTIALS_REFUSED", "expired")
    assert (gone.disconnect_time, gone.update_time, gone.version) == (later, later, 4)
    assert (gone.id, gone.channels, gone.create_time) == (ACCOUNT.id, ACCOUNT.channels, NOW)


def test_an_account_that_does_not_exist_is_not_found() -> None:
    assert require_account(ACCOUNT, "page") is ACCOUNT
    with pytest.raises(NotFound) as refused:
        require_account(None, "page")
    assert (refused.value.reason, refused.value.metadata) == ("ACCOUNT_NOT_FOUND", {"social_account_id": "page"})
