"""Facts about credentials on the wire, and grants as they are kept."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from postflow.publisher.v1.publisher_events_pb2 import SocialAccountExpiresSoon
from publisher_service.domain.account import AccountState, SocialAccount
from publisher_service.domain.connecting import Candidate, Grant
from publisher_service.domain.credentials import Credentials
from publisher_service.domain.refresh import Lifetime, RefreshRefused, connected, refused
from publisher_service.wire.accounts import account_expires_soon, social_account
from publisher_service.wire.grants import grant_from, grant_text
from servicekit.timestamps import moment

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
DAY = timedelta(days=1)
# An event as this release announces it: later ones have to read it.
STORED = bytes.fromhex("0a0461636d6512140a047061676538027a0a0a060880ded6cf0640011a060880ded6cf062002")


def an_account() -> SocialAccount:
    lifetime = Lifetime(expire_time=NOW + 60 * DAY, scopes=("read", "write"), is_refreshable=True)
    return SocialAccount(
        organization_id="acme",
        id="page",
        provider="sandbox",
        external_account_id="ext",
        display_name="Page",
        channels=("facebook",),
        state=AccountState.CONNECTED,
        version=3,
        create_time=NOW,
        update_time=NOW,
        settings={"host": "mail.example.com"},
        credentials=connected(None, "sandbox", lifetime, account=("acme", "page"), ahead=timedelta(0), now=NOW),
    )


def test_an_account_shows_what_is_known_of_its_credentials() -> None:
    shown = social_account(an_account())
    info = shown.credentials_info
    assert (list(info.scopes), info.is_refreshable, info.generation) == (["read", "write"], True, 1)
    assert moment(info.expire_time) == NOW + 60 * DAY
    assert NOW + 52 * DAY < moment(info.next_refresh_time) < NOW + 53 * DAY
    assert not info.HasField("last_refresh_time")
    assert dict(shown.settings) == {"host": "mail.example.com"}


def test_the_end_of_an_account_is_announced_with_its_reason() -> None:
    account = an_account()
    assert account.credentials is not None
    over = refused(account.credentials, RefreshRefused(message="revoked"), now=NOW)
    announced = account_expires_soon(replace(account, credentials=over), over.end_time, is_failing=False)
    message = announced.message
    assert isinstance(message, SocialAccountExpiresSoon)
    assert (announced.subject, announced.aggregate_id) == ("events.publisher.social_account", "page")
    assert (message.organization_id, message.version, moment(message.expire_time)) == ("acme", 3, NOW + 60 * DAY)
    assert message.social_account.credentials_info.refresh_error == "revoked"
    assert not message.social_account.credentials_info.is_refreshable


def test_a_stored_announcement_of_an_end_still_decodes() -> None:
    message = SocialAccountExpiresSoon.FromString(STORED)
    assert (message.organization_id, message.social_account.id, message.version) == ("acme", "page", 2)
    assert message.expire_time == message.social_account.credentials_info.expire_time


def test_a_kept_grant_says_what_is_left_of_its_life() -> None:
    candidate = Candidate(
        external_account_id="p1",
        name="Page",
        channels=("facebook",),
        credentials=Credentials(access_token="a", refresh_token="b", user_token="c"),
        expires_in=DAY,
    )
    text = grant_text(Grant(candidates=[candidate], scopes=("read",)), now=NOW)
    (kept,) = grant_from(text, now=NOW + timedelta(minutes=5)).candidates
    assert kept.credentials == candidate.credentials
    assert (kept.channels, kept.expires_in, kept.refresh_expires_in) == (
        ("facebook",),
        DAY - timedelta(minutes=5),
        None,
    )
