"""Refreshes and grants of a provider end in time with a value that can be stored, even if its adapter misbehaves."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from publisher_service.adapters.providers.adapter import Limits, Post, Proof, ProviderDown
from publisher_service.adapters.providers.provider import Providers
from publisher_service.adapters.providers.sandbox_rules import SANDBOX_RULES
from publisher_service.domain.connecting import Candidate, Grant, GrantDelayed, GrantRefused
from publisher_service.domain.credentials import Credentials
from publisher_service.domain.refresh import RefreshDelayed, Refreshed, RefreshRefused
from servicekit.clock import SystemClock
from servicekit.faults import InvalidField

SECRETS = Credentials(access_token="access-canary", refresh_token="refresh-canary", user_token="user-canary")
NEW = Credentials(access_token="newer-token", refresh_token="newer-refresh")
CANDIDATE = Candidate(external_account_id="p1", name="Page", channels=("facebook", "teletext"), credentials=NEW)


class Odd:
    """An adapter that raises, hangs, or returns what it is given."""

    name = "odd"
    rules = SANDBOX_RULES
    proof = Proof.KEYED
    limits = Limits(request_timeout=timedelta(milliseconds=20))
    is_rotating = True
    refresh_ahead = timedelta(hours=3)
    scopes = ("write",)

    def __init__(self, behavior: Any) -> None:
        self._behavior = behavior
        self.token_source = self
        self.oauth = self

    async def _do(self) -> Any:
        if isinstance(self._behavior, BaseException):
            raise self._behavior
        if self._behavior == "hang":
            await asyncio.sleep(3600)
        return self._behavior

    async def verify(
        self, organization_id: str, external_account_id: str, credentials: Credentials, settings: Mapping[str, str]
    ) -> None:
        pass

    async def send(self, post: Post) -> Any:
        return None

    async def look(self, post: Post) -> Any:
        return None

    def can_refresh(self, credentials: Credentials) -> bool:
        return bool(credentials.refresh_token)

    async def refresh(self, external_account_id: str, credentials: Credentials, settings: Mapping[str, str]) -> Any:
        return await self._do()

    def authorization_url(self, state: str, challenge: str, redirect_uri: str) -> str:
        if isinstance(self._behavior, Exception):
            raise self._behavior
        return f"https://odd/{state}"

    async def exchange(self, code: str, verifier: str, redirect_uri: str) -> Any:
        return await self._do()

    def check_settings(self, settings: Mapping[str, str]) -> Mapping[str, str]:
        if isinstance(self._behavior, Exception):
            raise self._behavior
        return settings


class Plain:
    """An adapter without tokens that end, visits and settings."""

    name, rules, proof, limits = Odd.name, Odd.rules, Odd.proof, Odd.limits


def provider(behavior: Any) -> Any:
    return Providers([Odd(behavior)], SystemClock())["odd"]


NONSENSE = [
    None,
    "hang",
    KeyError("x"),
    asyncio.CancelledError(),
    Refreshed(credentials=Credentials(access_token="")),
    Refreshed(credentials=Credentials(access_token="a\r\nb")),
    Refreshed(credentials=Credentials(access_token="ä")),
    Refreshed(credentials=Credentials(access_token="x" * 8193)),
    Refreshed(credentials="token"),  # type: ignore[arg-type]
    Grant(candidates=[replace(CANDIDATE, external_account_id="..")]),
    Grant(candidates=[replace(CANDIDATE, external_account_id="a\nb")]),
    Grant(candidates=[replace(CANDIDATE, external_account_id="newer-token")]),
    Grant(candidates=[replace(CANDIDATE, credentials=Credentials(access_token=""))]),
    Grant(candidates=[object()]),  # type: ignore[list-item]
]


@pytest.mark.parametrize("behavior", NONSENSE, ids=lambda behavior: type(behavior).__name__)
async def test_nonsense_errors_and_silence_are_delays(behavior: Any) -> None:
    assert isinstance(await provider(behavior).refresh("e", SECRETS, {}), RefreshDelayed)
    assert isinstance(await provider(behavior).exchange("c", "v", "u"), GrantDelayed)


async def test_what_a_provider_leaves_out_stays_as_it_was() -> None:
    answer = Refreshed(credentials=Credentials(access_token="next"), expires_in=timedelta(days=9_999_999))
    found = await provider(answer).refresh("e", SECRETS, {})
    assert found.credentials == replace(SECRETS, access_token="next")
    assert found.expires_in == timedelta(days=3650)


@pytest.mark.parametrize(
    "answer",
    [RefreshRefused(message=f"no {SECRETS.secrets}"), RefreshDelayed(message=f"{SECRETS.secrets}\0")],
    ids=["refused", "delayed"],
)
async def test_no_secret_is_repeated_by_an_answer(answer: Any) -> None:
    found = await provider(answer).refresh("e", SECRETS, {})
    assert type(found) is type(answer)
    assert "canary" not in repr(found)
    assert "\0" not in found.message


@pytest.mark.parametrize("kind", [GrantRefused, GrantDelayed])
async def test_neither_code_nor_verifier_is_repeated(kind: Any) -> None:
    found = await provider(kind(message="no code-canary verifier-canary")).exchange(
        "code-canary", "verifier-canary", ""
    )
    assert type(found) is kind
    assert "canary" not in found.message


async def test_a_grant_has_the_channels_that_are_offered_here() -> None:
    found = await provider(Grant(candidates=[CANDIDATE], scopes=("write",))).exchange("c", "v", "u")
    assert found == Grant(candidates=(replace(CANDIDATE, channels=("facebook",)),), scopes=("write",))
    assert "newer" not in repr(found)


async def test_credentials_that_nothing_refreshes_are_refused_without_a_request() -> None:
    bare = Credentials(access_token="a")
    assert isinstance(await provider(AssertionError("asked")).refresh("e", bare, {}), RefreshRefused)


def test_a_defect_in_a_page_or_a_check_of_settings_is_no_crash() -> None:
    broken = provider(ValueError("x"))
    with pytest.raises(ProviderDown):
        broken.authorization_url("s", "c", "u")
    with pytest.raises(ProviderDown):
        broken.check_settings({})
    with pytest.raises(InvalidField):
        provider(InvalidField("settings.host", "no")).check_settings({})
    assert provider(None).authorization_url("s", "c", "u") == "https://odd/s"


def test_an_adapter_may_have_none_of_this() -> None:
    plain: Any = Providers([Plain()], SystemClock())["odd"]  # type: ignore[list-item]
    assert (plain.grants_access, plain.can_refresh(SECRETS), plain.refresh_ahead) == (False, False, timedelta(0))
    assert plain.check_settings({}) == {}
    with pytest.raises(InvalidField, match="has no settings"):
        plain.check_settings({"host": "x"})
