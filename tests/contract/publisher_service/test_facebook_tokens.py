"""Tokens of Facebook pages: visits, refreshes, and each way to lose an answer."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from devstack.networks.facebook import FacebookNetwork
from devstack.networks.faults import Fault
from publisher_service.adapters.providers.adapter import CredentialsRefused
from publisher_service.adapters.providers.facebook import FacebookAdapter
from publisher_service.adapters.providers.http_origin import HttpOrigin
from publisher_service.domain.connecting import Grant, GrantDelayed, GrantRefused
from publisher_service.domain.credentials import Credentials
from publisher_service.domain.refresh import RefreshDelayed, Refreshed, RefreshRefused
from tests.contract.publisher_service.media_folder import MediaFolder
from tests.contract.publisher_service.sign_in import BACK, HASTY, LIMITS, META_APP, SignIn, facebook_sign_in

SCOPES = {"pages_show_list", "pages_read_engagement", "pages_manage_posts"}
DAY = timedelta(days=1)
LONG = 60 * DAY


@pytest.fixture
async def facebook(tmp_path: Path) -> AsyncIterator[SignIn[FacebookNetwork]]:
    async with facebook_sign_in(tmp_path) as rig:
        yield rig


@pytest.fixture
async def hasty(tmp_path: Path) -> AsyncIterator[SignIn[FacebookNetwork]]:
    async with facebook_sign_in(tmp_path, limits=HASTY) as rig:
        yield rig


async def test_a_visit_grants_the_pages_on_which_the_person_may_post(facebook: SignIn[FacebookNetwork]) -> None:
    facebook.network.tasks["page-2"] = ["ANALYZE"]
    visit = await facebook.visit()
    assert set(visit.asked["scope"].split(",")) == SCOPES
    grant = await facebook.exchange(visit)
    assert isinstance(grant, Grant)
    assert set(grant.scopes) == SCOPES
    (page,) = grant.candidates
    assert (page.external_account_id, page.name, page.expires_in) == ("page-1", "page-1", LONG)
    assert page.credentials.user_token
    assert page.credentials.access_token != page.credentials.user_token
    await facebook.provider.verify("acme", "page-1", page.credentials, {})


async def test_the_token_of_a_page_outlives_the_hour_of_the_login(facebook: SignIn[FacebookNetwork]) -> None:
    page = await facebook.candidate()
    facebook.clock.advance(900 * DAY)
    await facebook.provider.verify("acme", "page-1", page.credentials, {})


async def test_further_permissions_are_asked_for_and_may_be_left_out(tmp_path: Path) -> None:
    app = replace(META_APP, more_scopes=("business_management", "publish_video"))
    async with facebook_sign_in(tmp_path, app=app) as rig:
        rig.network.declined = {"business_management"}
        visit = await rig.visit()
        assert set(visit.asked["scope"].split(",")) == {*SCOPES, "business_management", "publish_video"}
        grant = await rig.exchange(visit)
        assert isinstance(grant, Grant)
        assert "business_management" not in grant.scopes
        assert len(grant.candidates) == 2


@pytest.mark.parametrize("declined", sorted(SCOPES))
async def test_a_permission_that_is_left_out_is_no_grant(facebook: SignIn[FacebookNetwork], declined: str) -> None:
    facebook.network.declined = {declined}
    grant = await facebook.connect()
    assert (set(grant.scopes), grant.candidates) == (SCOPES - {declined}, ())


async def test_a_code_is_presented_once(facebook: SignIn[FacebookNetwork]) -> None:
    visit = await facebook.visit()
    await facebook.exchange(visit)
    again = await facebook.exchange(visit)
    assert isinstance(again, GrantRefused)
    assert "has been used" in again.message


async def test_a_code_needs_its_verifier_and_its_redirect_uri(facebook: SignIn[FacebookNetwork]) -> None:
    # Meta calls a wrong verifier an unknown error.
    assert isinstance(await facebook.exchange(await facebook.visit(), verifier="w" * 43), GrantDelayed)
    assert isinstance(await facebook.exchange(await facebook.visit(), redirect_uri=f"{BACK}/else"), GrantRefused)
    visit = await facebook.visit()
    facebook.clock.advance(timedelta(minutes=11))
    assert isinstance(await facebook.exchange(visit), GrantRefused)


async def test_300_pages_are_read_to_their_end(facebook: SignIn[FacebookNetwork]) -> None:
    names = [f"page-{number}" for number in range(300)]
    facebook.network.pages["user-1"] = names
    grant = await facebook.connect()
    assert [each.external_account_id for each in grant.candidates] == names
    assert facebook.calls("accounts") == 6
    answer = await facebook.refresh("page-299", grant.candidates[299].credentials)
    assert isinstance(answer, Refreshed)


async def test_a_list_without_an_end_is_refused_with_advice(facebook: SignIn[FacebookNetwork]) -> None:
    facebook.network.pages["user-1"] = [f"page-{number}" for number in range(501)]
    answer = await facebook.exchange(await facebook.visit())
    assert isinstance(answer, GrantRefused)
    assert "choose fewer" in answer.message


@pytest.mark.parametrize(
    ("operation", "fault", "is_unused"),
    [
        ("exchange", Fault.RESET, False),
        ("exchange", Fault.HANG, False),
        ("exchange", Fault.HTML, False),
        ("exchange", Fault.ANSWER, False),
        ("exchange", Fault.NAMELESS, False),
        ("exchange", Fault.ERROR_IN_200, False),
        ("exchange", Fault.ENDLESS, False),
        ("exchange", Fault.GZIP_BOMB, False),
        ("exchange", Fault.REDIRECT, False),
        ("exchange", Fault.RATE_LIMIT, True),
        ("permissions", Fault.HANG, False),
        ("accounts", Fault.HANG, False),
        ("accounts", Fault.RATE_LIMIT, False),
    ],
)
async def test_a_lost_answer_to_a_visit_is_a_delay(
    hasty: SignIn[FacebookNetwork], operation: str, fault: Fault, is_unused: bool
) -> None:
    visit = await hasty.visit()
    hasty.breaks(operation, fault)
    answer = await hasty.exchange(visit)
    assert isinstance(answer, GrantDelayed), answer
    assert answer.is_unused is is_unused


async def test_what_was_not_sent_leaves_the_code_unused(facebook: SignIn[FacebookNetwork]) -> None:
    visit = await facebook.visit()
    await facebook.network.stop()
    answer = await facebook.exchange(visit)
    assert isinstance(answer, GrantDelayed)
    assert answer.is_unused


@pytest.mark.parametrize("fault", [Fault.RESET, Fault.HTML, Fault.ANSWER])
@pytest.mark.parametrize(("operation", "skip"), [("exchange", 1), ("permissions", 0), ("accounts", 0)])
async def test_one_lost_answer_behind_the_code_loses_no_visit(
    facebook: SignIn[FacebookNetwork], operation: str, skip: int, fault: Fault
) -> None:
    visit = await facebook.visit()
    facebook.breaks(operation, fault, effect=True, skip=skip)
    grant = await facebook.exchange(visit)
    assert isinstance(grant, Grant)
    assert len(grant.candidates) == 2


async def test_a_refresh_gets_the_next_tokens_of_person_and_page(facebook: SignIn[FacebookNetwork]) -> None:
    page = await facebook.candidate()
    facebook.clock.advance(53 * DAY)
    answer = await facebook.refresh("page-1", page.credentials)
    assert isinstance(answer, Refreshed)
    assert answer.expires_in == LONG
    assert answer.refresh_expires_in is None
    assert not set(answer.credentials.secrets) & set(page.credentials.secrets)
    facebook.clock.advance(53 * DAY)
    assert isinstance(await facebook.refresh("page-1", answer.credentials), Refreshed)
    await facebook.provider.verify("acme", "page-1", answer.credentials, {})


async def test_a_life_that_is_not_said_is_that_of_a_long_token(facebook: SignIn[FacebookNetwork]) -> None:
    facebook.network.says_life = False
    page = await facebook.candidate()
    assert page.expires_in == LONG
    answer = await facebook.refresh("page-1", page.credentials)
    assert isinstance(answer, Refreshed)
    assert answer.expires_in == LONG


async def test_a_token_that_is_over_is_never_refreshed(facebook: SignIn[FacebookNetwork]) -> None:
    page = await facebook.candidate()
    facebook.clock.advance(LONG)
    answer = await facebook.refresh("page-1", page.credentials)
    assert isinstance(answer, RefreshRefused)
    assert "190" in answer.message


async def test_a_page_token_dies_with_the_persons_and_is_not_refreshed(facebook: SignIn[FacebookNetwork]) -> None:
    page = await facebook.candidate()
    facebook.network.tokens.revoke("user-1")
    with pytest.raises(CredentialsRefused):
        await facebook.provider.verify("acme", "page-1", page.credentials, {})
    assert isinstance(await facebook.refresh("page-1", page.credentials), RefreshRefused)


async def test_a_page_that_the_person_has_lost_is_refused(facebook: SignIn[FacebookNetwork]) -> None:
    page = await facebook.candidate()
    facebook.network.pages["user-1"] = ["page-2"]
    answer = await facebook.refresh("page-1", page.credentials)
    assert isinstance(answer, RefreshRefused)
    assert "no access" in answer.message


@pytest.mark.parametrize("effect", [False, True])
@pytest.mark.parametrize(
    "fault", [Fault.RESET, Fault.HTML, Fault.ANSWER, Fault.NAMELESS, Fault.ERROR_IN_200, Fault.REDIRECT]
)
@pytest.mark.parametrize("operation", ["exchange", "accounts"])
async def test_a_lost_answer_to_a_refresh_is_a_delay_and_may_be_repeated(
    facebook: SignIn[FacebookNetwork], operation: str, fault: Fault, effect: bool
) -> None:
    page = await facebook.candidate()
    # A read on a connection that breaks at once is repeated on another one.
    count = 2 if (operation, fault) == ("accounts", Fault.RESET) else 1
    facebook.breaks(operation, fault, effect=effect, count=count)
    assert isinstance(await facebook.refresh("page-1", page.credentials), RefreshDelayed)
    assert isinstance(await facebook.refresh("page-1", page.credentials), Refreshed)


@pytest.mark.parametrize("operation", ["exchange", "accounts"])
@pytest.mark.parametrize("fault", [Fault.HANG, Fault.ENDLESS, Fault.GZIP_BOMB])
async def test_a_refresh_has_an_end(hasty: SignIn[FacebookNetwork], operation: str, fault: Fault) -> None:
    page = await hasty.candidate()
    hasty.breaks(operation, fault)
    assert isinstance(await hasty.refresh("page-1", page.credentials), RefreshDelayed)


async def test_a_limit_says_how_long_to_wait(facebook: SignIn[FacebookNetwork]) -> None:
    page = await facebook.candidate()
    facebook.breaks("exchange", Fault.RATE_LIMIT, seconds=600)
    answer = await facebook.refresh("page-1", page.credentials)
    assert isinstance(answer, RefreshDelayed)
    assert answer.retry_after == timedelta(minutes=10)


@pytest.mark.parametrize("code", [1, 101])
async def test_a_wrong_secret_of_our_own_disconnects_nobody(facebook: SignIn[FacebookNetwork], code: int) -> None:
    page = await facebook.candidate()
    body = {"error": {"message": "Error validating application", "type": "OAuthException", "code": code}}
    facebook.breaks("exchange", Fault.ANSWER, status=400, body=body)
    assert isinstance(await facebook.refresh("page-1", page.credentials), RefreshDelayed)


async def test_only_the_token_of_a_person_refreshes(facebook: SignIn[FacebookNetwork]) -> None:
    assert not facebook.provider.can_refresh(Credentials(access_token="page"))
    assert facebook.provider.can_refresh(Credentials(access_token="page", user_token="person"))
    assert (facebook.provider.refresh_ahead, facebook.provider.is_rotating) == (7 * DAY, False)


async def test_without_an_application_there_is_neither(tmp_path: Path) -> None:
    adapter = FacebookAdapter(HttpOrigin("http://127.0.0.1:1", connections=1), LIMITS, media=MediaFolder(tmp_path))
    assert (adapter.token_source, adapter.oauth) == (None, None)
