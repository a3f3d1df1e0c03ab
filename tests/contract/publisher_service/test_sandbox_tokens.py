"""The tokens of the sandbox as its adapter gets them: every answer, and every way to lose one."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from devstack.sandbox.client import SandboxClient
from devstack.sandbox.provider import Sandbox
from publisher_service.adapters.pkce import challenge_of, new_state, new_verifier
from publisher_service.adapters.providers.http_origin import HttpOrigin
from publisher_service.adapters.providers.sandbox_tokens import SandboxOAuth, SandboxTokens
from publisher_service.domain.connecting import Grant, GrantDelayed, GrantRefused
from publisher_service.domain.credentials import Credentials
from publisher_service.domain.refresh import RefreshDelayed, Refreshed, RefreshRefused
from tests.contract.publisher_service.sandbox import LIMITS

BACK = "https://app.example.com/connected"


@pytest.fixture
async def origin(sandbox: Sandbox) -> AsyncIterator[HttpOrigin]:
    origin = HttpOrigin(f"{sandbox.url}/", connections=4)
    yield origin
    await origin.close()


@pytest.fixture
def tokens(origin: HttpOrigin) -> SandboxTokens:
    return SandboxTokens(origin, LIMITS)


@pytest.fixture
def oauth(origin: HttpOrigin) -> SandboxOAuth:
    return SandboxOAuth(origin, LIMITS)


def pair_of(issued: dict[str, Any]) -> Credentials:
    return Credentials(access_token=issued["access_token"], refresh_token=issued["refresh_token"])


async def test_a_refresh_returns_the_next_pair_and_its_life(tokens: SandboxTokens, control: SandboxClient) -> None:
    issued = await control.issue_token("ext-page", seconds=60, rotating=True, refresh_seconds=600)
    answer = await tokens.refresh("ext-page", pair_of(issued), {})
    assert isinstance(answer, Refreshed)
    assert answer.credentials == Credentials(access_token="sandbox-family-1-1", refresh_token="refresh-1-1")
    assert answer.expires_in == timedelta(seconds=60)
    assert answer.refresh_expires_in is not None
    assert timedelta(seconds=590) < answer.refresh_expires_in <= timedelta(seconds=600)


async def test_a_token_that_was_used_is_refused_for_good(tokens: SandboxTokens, control: SandboxClient) -> None:
    pair = pair_of(await control.issue_token("ext-page", seconds=60, rotating=True))
    await tokens.refresh("ext-page", pair, {})
    answer = await tokens.refresh("ext-page", pair, {})
    assert isinstance(answer, RefreshRefused)
    assert "used before" in answer.message


@pytest.mark.parametrize(
    ("fault", "wait"),
    [
        ({"fault": "status"}, None),
        ({"fault": "status", "status": 400}, None),
        ({"fault": "status", "status": 401}, None),
        ({"fault": "status", "status": 429, "retry_after": 90}, timedelta(seconds=90)),
        ({"fault": "garbage"}, None),
        ({"fault": "garbage", "body": '{"access_token": 1}'}, None),
        ({"fault": "reset_before_effect"}, None),
        ({"fault": "effect_then_reset"}, None),
        ({"fault": "hang_without_effect"}, None),
    ],
    ids=lambda fault: "-".join(map(str, fault.values())) if isinstance(fault, dict) else "",
)
async def test_any_other_answer_is_a_delay(
    tokens: SandboxTokens, control: SandboxClient, fault: dict[str, object], wait: timedelta | None
) -> None:
    pair = pair_of(await control.issue_token("ext-page", seconds=60))
    await control.faults({**fault, "operation": "token"})
    answer = await tokens.refresh("ext-page", pair, {})
    assert isinstance(answer, RefreshDelayed)
    assert answer.retry_after == wait


async def test_a_sandbox_that_is_down_is_a_delay(tokens: SandboxTokens, oauth: SandboxOAuth, sandbox: Sandbox) -> None:
    await sandbox.stop()
    pair = Credentials(access_token="a", refresh_token="refresh-1-0")
    assert isinstance(await tokens.refresh("ext-page", pair, {}), RefreshDelayed)
    assert await oauth.exchange("c", "v", BACK) == GrantDelayed(
        message="the sandbox cannot be reached: ConnectionRefusedError", is_unused=True
    )


def test_only_a_refresh_token_can_refresh(tokens: SandboxTokens) -> None:
    assert tokens.can_refresh(Credentials(access_token="a", refresh_token="b"))
    assert not tokens.can_refresh(Credentials(access_token="a", user_token="c"))


async def test_a_code_gets_the_accounts_that_were_granted(oauth: SandboxOAuth, control: SandboxClient) -> None:
    verifier, state = new_verifier(), new_state()
    page = oauth.authorization_url(state, challenge_of(verifier), BACK)
    back = await control.agree(page, "p1", "p2", seconds=60)
    assert back["state"] == state
    grant = await oauth.exchange(back["code"], verifier, BACK)
    assert isinstance(grant, Grant)
    assert grant.scopes == oauth.scopes
    assert [(each.external_account_id, each.expires_in) for each in grant.candidates] == [
        ("p1", timedelta(seconds=60)),
        ("p2", timedelta(seconds=60)),
    ]
    again = await oauth.exchange(back["code"], verifier, BACK)
    assert isinstance(again, GrantRefused)


async def test_a_wrong_verifier_is_refused(oauth: SandboxOAuth, control: SandboxClient) -> None:
    back = await control.agree(oauth.authorization_url("s", challenge_of(new_verifier()), BACK))
    assert isinstance(await oauth.exchange(back["code"], new_verifier(), BACK), GrantRefused)


@pytest.mark.parametrize(
    ("fault", "is_unused"),
    [
        ({"fault": "status"}, False),
        ({"fault": "status", "status": 429}, True),
        ({"fault": "garbage"}, False),
        ({"fault": "garbage", "body": '{"scope": "", "accounts": [{}]}'}, False),
        ({"fault": "effect_then_reset"}, False),
        ({"fault": "hang_without_effect"}, False),
    ],
    ids=lambda fault: "-".join(map(str, fault.values())) if isinstance(fault, dict) else "",
)
async def test_an_exchange_without_an_answer_is_a_delay(
    oauth: SandboxOAuth, control: SandboxClient, fault: dict[str, object], is_unused: bool
) -> None:
    verifier = new_verifier()
    back = await control.agree(oauth.authorization_url("s", challenge_of(verifier), BACK))
    await control.faults({**fault, "operation": "token"})
    answer = await oauth.exchange(back["code"], verifier, BACK)
    assert isinstance(answer, GrantDelayed)
    assert answer.is_unused is is_unused
