"""Tokens of LinkedIn, of members and of pages: visits, refreshes, and each way to lose an answer."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from devstack.networks.faults import Fault
from devstack.networks.linkedin import VERSION, LinkedIn
from publisher_service.adapters.providers.adapter import Post
from publisher_service.adapters.providers.http_origin import HttpOrigin
from publisher_service.adapters.providers.linkedin import LinkedInAdapter
from publisher_service.domain.connecting import Grant, GrantDelayed, GrantRefused
from publisher_service.domain.credentials import Credentials
from publisher_service.domain.outcome import Accepted
from publisher_service.domain.refresh import RefreshDelayed, Refreshed, RefreshRefused
from testkit.clocks import FrozenClock
from tests.contract.publisher_service.media_folder import MediaFolder
from tests.contract.publisher_service.sign_in import BACK, HASTY, LIMITS, LINKEDIN_APP, SignIn, linkedin_sign_in

ANN = "urn:li:person:ann"
DAY = timedelta(days=1)
LONG, YEAR = 60 * DAY, 365 * DAY
LOST = [Fault.RESET, Fault.HTML, Fault.ANSWER, Fault.NAMELESS, Fault.REDIRECT]


@pytest.fixture
async def member(tmp_path: Path) -> AsyncIterator[SignIn[LinkedIn]]:
    async with linkedin_sign_in(tmp_path) as rig:
        yield rig


@pytest.fixture
async def page(tmp_path: Path) -> AsyncIterator[SignIn[LinkedIn]]:
    async with linkedin_sign_in(tmp_path, is_page=True) as rig:
        rig.network.pages[ANN] = [(1, "Acme"), (2, "Umbrella")]
        yield rig


@pytest.fixture
async def hasty(tmp_path: Path) -> AsyncIterator[SignIn[LinkedIn]]:
    async with linkedin_sign_in(tmp_path, limits=HASTY) as rig:
        yield rig


async def test_a_visit_grants_the_member(member: SignIn[LinkedIn]) -> None:
    visit = await member.visit()
    assert visit.asked["scope"] == "openid profile w_member_social"
    assert "code_challenge" not in visit.asked
    grant = await member.exchange(visit)
    assert isinstance(grant, Grant)
    assert grant.scopes == ("openid", "profile", "w_member_social")
    (ann,) = grant.candidates
    assert (ann.external_account_id, ann.name) == ("ann", "Ann Example")
    assert (ann.expires_in, ann.refresh_expires_in) == (LONG, YEAR)
    await member.provider.verify("acme", "ann", ann.credentials, {})


async def test_a_visit_grants_the_pages_that_the_member_administers(page: SignIn[LinkedIn]) -> None:
    grant = await page.connect()
    assert [(each.external_account_id, each.name) for each in grant.candidates] == [("1", "Acme"), ("2", "Umbrella")]
    token = grant.candidates[1].credentials
    await page.provider.verify("acme", "2", token, {})
    post = Post(
        external_account_id="2",
        access_token=token.access_token,
        channel="linkedin_page",
        destination="",
        text="hello",
        idempotency_key="job-1",
    )
    assert isinstance(await page.provider.send(post), Accepted)
    assert [each["account"] for each in page.network.effects] == ["urn:li:organization:2"]


async def test_300_pages_are_read_to_their_end(page: SignIn[LinkedIn]) -> None:
    page.network.pages[ANN] = [(number, f"Page {number}") for number in range(1, 301)]
    grant = await page.connect()
    assert [each.name for each in grant.candidates] == [f"Page {number}" for number in range(1, 301)]
    assert page.calls("roles") == 6


async def test_a_list_without_an_end_is_refused(page: SignIn[LinkedIn]) -> None:
    page.network.pages[ANN] = [(number, "") for number in range(1, 502)]
    assert isinstance(await page.exchange(await page.visit()), GrantRefused)


@pytest.mark.parametrize("fault", LOST)
async def test_pages_whose_names_cannot_be_read_are_granted(page: SignIn[LinkedIn], fault: Fault) -> None:
    page.breaks("organizations", fault, count=0)
    grant = await page.connect()
    assert [each.name for each in grant.candidates] == ["LinkedIn page 1", "LinkedIn page 2"]


async def test_only_pages_that_are_administered_now_are_granted(page: SignIn[LinkedIn]) -> None:
    roles = [
        {"organization": "urn:li:organization:1", "role": "ADMINISTRATOR", "state": "REQUESTED"},
        {"organization": "urn:li:organization:2", "role": "ANALYST", "state": "APPROVED"},
        {"organization": "urn:li:organizationBrand:3", "role": "ADMINISTRATOR", "state": "APPROVED"},
        {"organization": "urn:li:organization:4", "role": "ADMINISTRATOR", "state": "APPROVED"},
        None,
    ]
    body = {"elements": roles, "paging": {"start": 0, "count": 50}}
    page.breaks("roles", Fault.ANSWER, status=200, body=body)
    assert [each.external_account_id for each in (await page.connect()).candidates] == ["4"]


async def test_a_scope_that_is_missing_is_no_grant(member: SignIn[LinkedIn]) -> None:
    body = {"access_token": "access-canary", "expires_in": 60, "scope": "openid,profile"}
    member.breaks("exchange", Fault.ANSWER, status=200, body=body)
    grant = await member.connect()
    assert (grant.scopes, grant.candidates) == (("openid", "profile"), ())


async def test_further_scopes_are_asked_for(tmp_path: Path) -> None:
    app = replace(LINKEDIN_APP, more_scopes=("email",))
    async with linkedin_sign_in(tmp_path, app=app) as rig:
        visit = await rig.visit()
        assert visit.asked["scope"] == "openid profile w_member_social email"


async def test_a_code_is_presented_once_and_with_its_redirect_uri(member: SignIn[LinkedIn]) -> None:
    visit = await member.visit()
    await member.exchange(visit)
    again = await member.exchange(visit)
    assert isinstance(again, GrantRefused)
    assert "authorization code" in again.message
    assert isinstance(await member.exchange(await member.visit(), redirect_uri=f"{BACK}/else"), GrantRefused)
    visit = await member.visit()
    member.clock.advance(timedelta(minutes=31))
    assert isinstance(await member.exchange(visit), GrantRefused)


@pytest.mark.parametrize("fault", [*LOST, Fault.HANG, Fault.ENDLESS, Fault.GZIP_BOMB])
async def test_a_lost_answer_to_the_code_is_a_delay(hasty: SignIn[LinkedIn], fault: Fault) -> None:
    visit = await hasty.visit()
    hasty.breaks("exchange", fault, effect=True)
    answer = await hasty.exchange(visit)
    assert isinstance(answer, GrantDelayed), answer
    assert not answer.is_unused


@pytest.mark.parametrize("is_away", [False, True])
async def test_a_code_that_was_not_looked_at_is_unused(member: SignIn[LinkedIn], is_away: bool) -> None:
    visit = await member.visit()
    if is_away:
        await member.network.stop()
    else:
        member.breaks("exchange", Fault.RATE_LIMIT)
    answer = await member.exchange(visit)
    assert isinstance(answer, GrantDelayed)
    assert answer.is_unused


@pytest.mark.parametrize("fault", LOST)
async def test_one_lost_answer_behind_the_code_loses_no_visit(member: SignIn[LinkedIn], fault: Fault) -> None:
    visit = await member.visit()
    member.breaks("userinfo", fault)
    assert isinstance(await member.exchange(visit), Grant)


async def test_a_refresh_adds_nothing_to_the_life_of_the_refresh_token(member: SignIn[LinkedIn]) -> None:
    ann = await member.candidate()
    member.clock.advance(59 * DAY)
    answer = await member.refresh("ann", ann.credentials)
    assert isinstance(answer, Refreshed)
    assert (answer.expires_in, answer.refresh_expires_in) == (LONG, YEAR - 59 * DAY)
    assert answer.credentials.refresh_token == ann.credentials.refresh_token
    member.clock.advance(301 * DAY)
    last = await member.refresh("ann", answer.credentials)
    assert isinstance(last, Refreshed)
    assert (last.expires_in, last.refresh_expires_in) == (5 * DAY, 5 * DAY)
    member.clock.advance(5 * DAY)
    over = await member.refresh("ann", last.credentials)
    assert isinstance(over, RefreshRefused)
    assert "expired or revoked" in over.message


async def test_a_token_that_was_revoked_is_refused(member: SignIn[LinkedIn]) -> None:
    ann = await member.candidate()
    member.network.revoke(ANN)
    assert isinstance(await member.refresh("ann", ann.credentials), RefreshRefused)


@pytest.mark.parametrize("effect", [False, True])
@pytest.mark.parametrize("fault", [*LOST, Fault.HANG])
async def test_a_lost_answer_to_a_refresh_is_a_delay_and_may_be_repeated(
    hasty: SignIn[LinkedIn], fault: Fault, effect: bool
) -> None:
    ann = await hasty.candidate()
    hasty.breaks("exchange", fault, effect=effect)
    assert isinstance(await hasty.refresh("ann", ann.credentials), RefreshDelayed)
    assert isinstance(await hasty.refresh("ann", ann.credentials), Refreshed)


@pytest.mark.parametrize(
    ("status", "code"), [(401, "invalid_client"), (400, "unauthorized_client"), (400, "invalid_request"), (401, "")]
)
async def test_a_mistake_of_our_own_disconnects_nobody(member: SignIn[LinkedIn], status: int, code: str) -> None:
    ann = await member.candidate()
    member.breaks("exchange", Fault.ANSWER, status=status, body={"error": code, "error_description": "no"})
    assert isinstance(await member.refresh("ann", ann.credentials), RefreshDelayed)


async def test_a_limit_says_how_long_to_wait(member: SignIn[LinkedIn]) -> None:
    ann = await member.candidate()
    member.breaks("exchange", Fault.ANSWER, status=429, headers={"Retry-After": "90"}, body={"message": "later"})
    answer = await member.refresh("ann", ann.credentials)
    assert isinstance(answer, RefreshDelayed)
    assert answer.retry_after == timedelta(seconds=90)


async def test_without_a_refresh_token_nothing_is_refreshed(member: SignIn[LinkedIn]) -> None:
    member.network.is_partner = False
    ann = await member.candidate()
    assert (ann.expires_in, ann.refresh_expires_in) == (LONG, None)
    assert not member.provider.can_refresh(ann.credentials)
    assert member.provider.can_refresh(Credentials(access_token="a", refresh_token="b"))


@pytest.mark.parametrize(("app", "has_sign_in"), [(None, True), (LINKEDIN_APP, False)])
async def test_without_an_application_there_is_neither(tmp_path: Path, app: object, has_sign_in: bool) -> None:
    origin = HttpOrigin("http://127.0.0.1:1", connections=1)
    adapter = LinkedInAdapter(
        origin,
        LIMITS,
        version=VERSION,
        media=MediaFolder(tmp_path),
        clock=FrozenClock(),
        app=LINKEDIN_APP if app else None,
        sign_in=origin if has_sign_in else None,
    )
    assert (adapter.token_source, adapter.oauth) == (None, None)
