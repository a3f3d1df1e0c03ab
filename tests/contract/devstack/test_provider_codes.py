"""The sandbox provider grants access by authorization codes, and by tokens that expire; libs/devstack/README.md."""

import base64
import hashlib
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from devstack.sandbox.client import SandboxClient
from devstack.sandbox.provider import Sandbox
from testkit.clocks import FrozenClock
from tests.contract.devstack.sandbox_calls import Client, entries

BACK = "https://example.com/back"
VERIFIER = "v" * 43
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()
QUERY = {
    "response_type": "code",
    "client_id": "postflow",
    "redirect_uri": BACK,
    "state": "s1",
    "scope": "read write",
    "code_challenge": CHALLENGE,
    "code_challenge_method": "S256",
}


@pytest.fixture
async def clock() -> FrozenClock:
    return FrozenClock()


@pytest.fixture
async def sandbox(tmp_path: Path, clock: FrozenClock) -> AsyncIterator[Sandbox]:
    async with Sandbox(tmp_path / "codes.jsonl", clock) as sandbox:
        yield sandbox


def page(sandbox: Sandbox) -> str:
    return f"{sandbox.url}/v1/authorize?{urlencode(QUERY)}"


async def agreed(sandbox: Sandbox, *accounts: str, **choices: object) -> dict[str, str]:
    return await SandboxClient(sandbox.url, sandbox.path).agree(page(sandbox), *accounts, **choices)


async def exchange(client: Client, code: str, verifier: str = VERIFIER, uri: str = BACK) -> tuple[int, Any]:
    form = {"grant_type": "authorization_code", "code": code, "code_verifier": verifier, "redirect_uri": uri}
    return await client.call("POST", "/v1/token", urlencode(form).encode())


async def refresh(client: Client, token: str) -> tuple[int, Any]:
    return await client.call("POST", "/v1/token", f"grant_type=refresh_token&refresh_token={token}".encode())


async def reads(client: Client, pair: Any) -> bool:
    token = {"Authorization": f"Bearer {pair['access_token']}"}
    return (await client.call("GET", "/v1/accounts/a1", headers=token))[0] == 200


async def test_a_code_gets_tokens_of_each_account_that_was_granted(sandbox: Sandbox, client: Client) -> None:
    answer = await agreed(sandbox, "a1", "a2", seconds=60)
    assert answer["state"] == "s1"
    status, grant = await exchange(client, answer["code"])
    assert (status, grant["scope"]) == (200, "read write")
    assert [(each["id"], each["expires_in"]) for each in grant["accounts"]] == [("a1", 60), ("a2", 60)]
    assert await reads(client, grant["accounts"][0])
    assert (await refresh(client, grant["accounts"][1]["refresh_token"]))[0] == 200


async def test_a_code_used_again_revokes_its_tokens(sandbox: Sandbox, client: Client, clock: FrozenClock) -> None:
    code = (await agreed(sandbox, "a1"))["code"]
    _, grant = await exchange(client, code)
    await sandbox.stop()
    async with Sandbox(sandbox.path, clock) as again:
        status, answer = await exchange(Client(again.url), code)
        assert (status, answer["error"]["code"]) == (400, "INVALID_GRANT")
        assert not await reads(Client(again.url), grant["accounts"][0])
    assert [each["event"] for each in entries(sandbox, "code")] == ["issued", "used"]


@pytest.mark.parametrize("change", [{"verifier": "w" * 43}, {"uri": f"{BACK}/"}], ids=lambda change: next(iter(change)))
async def test_a_code_is_good_for_its_client_alone(sandbox: Sandbox, client: Client, change: dict[str, str]) -> None:
    code = (await agreed(sandbox))["code"]
    assert (await exchange(client, code, **change))[0] == 400
    assert (await exchange(client, code))[0] == 200


async def test_a_code_expires(sandbox: Sandbox, client: Client, clock: FrozenClock) -> None:
    code = (await agreed(sandbox))["code"]
    clock.advance(timedelta(minutes=10))
    assert (await exchange(client, code))[0] == 400


async def test_a_person_may_grant_less_or_nothing(sandbox: Sandbox, client: Client) -> None:
    assert await agreed(sandbox, denied=1) == {"state": "s1", "error": "access_denied"}
    less = await agreed(sandbox, granted="read", refreshable="false")
    _, grant = await exchange(client, less["code"])
    assert grant["scope"] == "read"
    assert "refresh_token" not in grant["accounts"][0]


@pytest.mark.parametrize("missing", ["state", "redirect_uri", "client_id", "code_challenge", "response_type"])
async def test_a_request_for_access_has_to_be_complete(client: Client, missing: str) -> None:
    query = urlencode({name: value for name, value in QUERY.items() if name != missing})
    assert (await client.call("GET", f"/v1/authorize?{query}"))[0] == 400


async def test_within_its_grace_a_used_refresh_token_gets_the_same_pair(
    sandbox: Sandbox, client: Client, clock: FrozenClock
) -> None:
    control = SandboxClient(sandbox.url, sandbox.path)
    first = await control.issue_token("a1", seconds=60, rotating=True, grace=30)
    _, second = await refresh(client, first["refresh_token"])
    assert await refresh(client, first["refresh_token"]) == (200, second)
    clock.advance(timedelta(seconds=30))
    assert (await refresh(client, first["refresh_token"]))[0] == 400
    assert not await reads(client, second)


async def test_refresh_tokens_may_end_for_good(sandbox: Sandbox, client: Client, clock: FrozenClock) -> None:
    control = SandboxClient(sandbox.url, sandbox.path)
    first = await control.issue_token("a1", seconds=60, refresh_seconds=100)
    clock.advance(timedelta(seconds=40))
    _, second = await refresh(client, first["refresh_token"])
    assert second["refresh_expires_in"] == 60
    clock.advance(timedelta(seconds=60))
    assert (await refresh(client, second["refresh_token"]))[0] == 400


async def test_the_answer_to_a_refresh_may_be_lost(sandbox: Sandbox, client: Client) -> None:
    pair = await SandboxClient(sandbox.url, sandbox.path).issue_token("a1", seconds=60, rotating=True)
    await client.faults({"fault": "effect_then_reset", "operation": "token", "account": "a1", "count": 1})
    with pytest.raises(ConnectionError):
        await refresh(client, pair["refresh_token"])
    assert (await refresh(client, pair["refresh_token"]))[0] == 400
    shown = [(each["idempotency_key"], each["outcome"]) for each in entries(sandbox, "request")]
    assert shown == [("1-0", "reset"), ("1-0", "refused")]
