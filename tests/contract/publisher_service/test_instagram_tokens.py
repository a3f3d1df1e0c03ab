"""Tokens of Instagram accounts, by Facebook Login and by Instagram's own."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from devstack.networks.faults import Fault
from devstack.networks.instagram import InstagramNetwork
from publisher_service.adapters.providers.adapter import CredentialsRefused
from publisher_service.adapters.providers.http_origin import HttpOrigin
from publisher_service.adapters.providers.instagram import InstagramAdapter
from publisher_service.adapters.providers.instagram_login import InstagramLoginTokens, Login, login_at
from publisher_service.adapters.providers.instagram_sign_in import InstagramSignIn
from publisher_service.adapters.providers.meta_tokens import FacebookLoginOAuth, FacebookLoginTokens
from publisher_service.domain.connecting import Grant, GrantDelayed, GrantRefused
from publisher_service.domain.credentials import Credentials
from publisher_service.domain.refresh import RefreshDelayed, Refreshed, RefreshRefused
from testkit.clocks import FrozenClock
from tests.contract.publisher_service.media_folder import MediaFolder
from tests.contract.publisher_service.sign_in import BACK, HASTY, LIMITS, META_APP, SignIn, instagram_sign_in

ACCOUNT = "300400178410"
DAY = timedelta(days=1)
LONG = 60 * DAY


@pytest.fixture
async def by_page(tmp_path: Path) -> AsyncIterator[SignIn[InstagramNetwork]]:
    async with instagram_sign_in(tmp_path, Login.FACEBOOK) as rig:
        yield rig


@pytest.fixture
async def alone(tmp_path: Path) -> AsyncIterator[SignIn[InstagramNetwork]]:
    async with instagram_sign_in(tmp_path, Login.INSTAGRAM) as rig:
        yield rig


@pytest.fixture
async def hasty(tmp_path: Path) -> AsyncIterator[SignIn[InstagramNetwork]]:
    async with instagram_sign_in(tmp_path, Login.INSTAGRAM, limits=HASTY) as rig:
        yield rig


async def test_facebook_grants_the_instagram_accounts_of_pages(by_page: SignIn[InstagramNetwork]) -> None:
    visit = await by_page.visit()
    assert "instagram_content_publish" in visit.asked["scope"].split(",")
    grant = await by_page.exchange(visit)
    assert isinstance(grant, Grant)
    (account,) = grant.candidates
    assert (account.external_account_id, account.name, account.expires_in) == (ACCOUNT, "acme", LONG)
    assert account.credentials.user_token


async def test_a_token_of_facebook_is_refreshed_like_that_of_a_page(by_page: SignIn[InstagramNetwork]) -> None:
    account = await by_page.candidate()
    by_page.clock.advance(53 * DAY)
    answer = await by_page.refresh(ACCOUNT, account.credentials)
    assert isinstance(answer, Refreshed)
    assert answer.expires_in == LONG
    del by_page.network.instagram_of["page-2"]
    lost = await by_page.refresh(ACCOUNT, answer.credentials)
    assert isinstance(lost, RefreshRefused)
    by_page.clock.advance(LONG)
    assert isinstance(await by_page.refresh(ACCOUNT, answer.credentials), RefreshRefused)


@pytest.mark.parametrize("wraps", [False, True])
async def test_instagram_grants_the_account_that_logs_in(alone: SignIn[InstagramNetwork], wraps: bool) -> None:
    alone.network.wraps_login = wraps
    visit = await alone.visit()
    assert "code_challenge" not in visit.asked
    grant = await alone.exchange(visit)
    assert isinstance(grant, Grant)
    assert set(grant.scopes) == {"instagram_business_basic", "instagram_business_content_publish"}
    (account,) = grant.candidates
    assert (account.external_account_id, account.name, account.expires_in) == (ACCOUNT, "acme", LONG)
    assert account.credentials.is_bare
    await alone.provider.verify("acme", ACCOUNT, account.credentials, {})


async def test_a_permission_that_is_left_out_is_no_grant(alone: SignIn[InstagramNetwork]) -> None:
    alone.network.declined = {"instagram_business_content_publish"}
    grant = await alone.connect()
    assert (grant.scopes, grant.candidates) == (("instagram_business_basic",), ())


async def test_a_code_is_presented_once_and_with_its_redirect_uri(alone: SignIn[InstagramNetwork]) -> None:
    visit = await alone.visit()
    await alone.exchange(visit)
    again = await alone.exchange(visit)
    assert isinstance(again, GrantRefused)
    assert "has been used" in again.message
    assert isinstance(await alone.exchange(await alone.visit(), redirect_uri=f"{BACK}/else"), GrantRefused)


@pytest.mark.parametrize(
    ("operation", "fault"),
    [
        ("log_in", Fault.RESET),
        ("log_in", Fault.HANG),
        ("log_in", Fault.HTML),
        ("log_in", Fault.ANSWER),
        ("log_in", Fault.NAMELESS),
        ("exchange_own", Fault.HANG),
        ("me", Fault.HANG),
    ],
)
async def test_a_lost_answer_to_a_visit_is_a_delay(
    hasty: SignIn[InstagramNetwork], operation: str, fault: Fault
) -> None:
    visit = await hasty.visit()
    # Without permissions in it, an answer has granted nothing that could go on.
    hasty.breaks(operation, fault, effect=True)
    answer = await hasty.exchange(visit)
    assert isinstance(answer, GrantDelayed), answer
    assert not answer.is_unused


@pytest.mark.parametrize("operation", ["exchange_own", "me"])
@pytest.mark.parametrize("fault", [Fault.RESET, Fault.HTML, Fault.ANSWER, Fault.NAMELESS])
async def test_one_lost_answer_behind_the_code_loses_no_visit(
    alone: SignIn[InstagramNetwork], operation: str, fault: Fault
) -> None:
    visit = await alone.visit()
    alone.breaks(operation, fault, effect=True)
    assert isinstance(await alone.exchange(visit), Grant)


async def test_an_own_token_is_refreshed_from_its_second_day_to_its_end(alone: SignIn[InstagramNetwork]) -> None:
    account = await alone.candidate()
    young = await alone.refresh(ACCOUNT, account.credentials)
    assert isinstance(young, RefreshDelayed)
    assert "24 hours" in young.message
    alone.clock.advance(53 * DAY)
    answer = await alone.refresh(ACCOUNT, account.credentials)
    assert isinstance(answer, Refreshed)
    assert answer.expires_in == LONG
    alone.clock.advance(LONG)
    over = await alone.refresh(ACCOUNT, answer.credentials)
    assert isinstance(over, RefreshRefused)
    assert "190" in over.message


async def test_an_own_token_that_was_revoked_is_refused(alone: SignIn[InstagramNetwork]) -> None:
    account = await alone.candidate()
    alone.clock.advance(2 * DAY)
    alone.network.tokens.revoke("user-1")
    with pytest.raises(CredentialsRefused):
        await alone.provider.verify("acme", ACCOUNT, account.credentials, {})
    assert isinstance(await alone.refresh(ACCOUNT, account.credentials), RefreshRefused)


@pytest.mark.parametrize("effect", [False, True])
@pytest.mark.parametrize(
    "fault", [Fault.HANG, Fault.HTML, Fault.ANSWER, Fault.NAMELESS, Fault.ERROR_IN_200, Fault.ENDLESS]
)
async def test_a_lost_answer_to_a_refresh_is_a_delay_and_may_be_repeated(
    hasty: SignIn[InstagramNetwork], fault: Fault, effect: bool
) -> None:
    account = await hasty.candidate()
    hasty.clock.advance(2 * DAY)
    hasty.breaks("refresh", fault, effect=effect)
    assert isinstance(await hasty.refresh(ACCOUNT, account.credentials), RefreshDelayed)
    assert isinstance(await hasty.refresh(ACCOUNT, account.credentials), Refreshed)


def adapter_at(url: str, folder: Path, sign_in: InstagramSignIn | None = None) -> InstagramAdapter:
    origin = HttpOrigin(url, connections=1)
    return InstagramAdapter(origin, LIMITS, media=MediaFolder(folder), clock=FrozenClock(), sign_in=sign_in)


async def test_the_address_of_the_api_says_which_login_it_is(tmp_path: Path) -> None:
    app = InstagramSignIn(app=META_APP)
    by_page = adapter_at("https://graph.facebook.com", tmp_path, app)
    assert isinstance(by_page.token_source, FacebookLoginTokens)
    assert isinstance(by_page.oauth, FacebookLoginOAuth)
    alone = adapter_at("https://graph.instagram.com", tmp_path, app)
    assert isinstance(alone.token_source, InstagramLoginTokens)
    assert alone.oauth is None, "the server that exchanges the codes is missing"
    assert login_at("https://instagram.com.evil.example") is Login.FACEBOOK


async def test_only_an_own_token_is_refreshed_without_an_application(tmp_path: Path) -> None:
    by_page = adapter_at("https://graph.facebook.com", tmp_path)
    assert (by_page.token_source, by_page.oauth) == (None, None)
    alone = adapter_at("https://graph.instagram.com", tmp_path)
    assert alone.oauth is None
    assert alone.token_source is not None
    assert alone.token_source.can_refresh(Credentials(access_token="own"))
    assert not alone.token_source.can_refresh(Credentials(access_token="page", user_token="person"))
