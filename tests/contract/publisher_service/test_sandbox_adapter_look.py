"""The adapter's look-ups and checks of credentials at the real sandbox provider."""

from dataclasses import replace
from datetime import datetime

import pytest

from devstack.sandbox.client import SandboxClient
from publisher_service.adapters.providers.adapter import CredentialsRefused, ProviderDown
from publisher_service.adapters.providers.sandbox import SandboxAdapter
from publisher_service.domain.credentials import Credentials
from publisher_service.domain.outcome import (
    Absent,
    Accepted,
    Found,
    NoProof,
)
from tests.contract.publisher_service.sandbox import CREDENTIALS, POST, TOKEN

Rule = dict[str, object]


async def test_a_look_up_finds_a_post_or_proves_it_absent(provider: SandboxAdapter, control: SandboxClient) -> None:
    assert await provider.look(POST) == Absent()
    sent = await provider.send(POST)
    assert isinstance(sent, Accepted)
    (effect,) = control.effects()
    assert await provider.look(POST) == Found(
        external_id=sent.external_id,
        external_url=sent.external_url,
        publish_time=datetime.fromisoformat(effect["time"]),
    )
    assert await provider.look(replace(POST, idempotency_key="job-2")) == Absent()
    assert await provider.look(replace(POST, external_account_id="other")) == Absent()


@pytest.mark.parametrize(
    "rule",
    [
        {"fault": "status", "status": 503},
        {"fault": "status", "status": 404},
        {"fault": "status", "status": 429},
        {"fault": "garbage"},
        {"fault": "garbage", "body": '{"posts": 1}'},
        {"fault": "garbage", "body": '{"posts": [{"id": "x"}]}'},
        {"fault": "garbage", "body": "[" * 60_000},
        {"fault": "reset_before_effect"},
        {"fault": "hang_without_effect"},
    ],
    ids=lambda rule: "-".join(str(each)[:20] for each in rule.values()),
)
async def test_a_failed_look_up_proves_nothing(provider: SandboxAdapter, control: SandboxClient, rule: Rule) -> None:
    await control.faults(rule | {"operation": "lookup"})
    seen = await provider.look(POST)
    assert isinstance(seen, NoProof)
    assert TOKEN not in seen.message


async def test_two_posts_under_one_key_are_no_proof(provider: SandboxAdapter, control: SandboxClient) -> None:
    await control.mode("ext-page", "lookup")
    await provider.send(POST)
    await provider.send(POST)
    assert isinstance(await provider.look(POST), NoProof)


async def test_a_provider_without_look_ups_proves_nothing(provider: SandboxAdapter, control: SandboxClient) -> None:
    await control.mode("ext-page", "blind")
    assert isinstance(await provider.look(POST), NoProof)


@pytest.mark.parametrize("token", ["nonsense", "sandbox-revoked"])
async def test_bad_credentials_are_refused(provider: SandboxAdapter, token: str) -> None:
    with pytest.raises(CredentialsRefused) as refused:
        await provider.verify("acme", "ext-page", Credentials(access_token=token), {})
    assert token not in str(refused.value)


async def test_an_unknown_account_is_refused(provider: SandboxAdapter) -> None:
    with pytest.raises(CredentialsRefused):
        await provider.verify("acme", "missing-one", CREDENTIALS, {})
    await provider.verify("acme", "ext-page", CREDENTIALS, {})


@pytest.mark.parametrize("fault", ["hang_without_effect", "reset_before_effect", "status"])
async def test_a_provider_that_fails_to_answer_is_reported_unreachable(
    provider: SandboxAdapter, control: SandboxClient, fault: str
) -> None:
    await control.faults({"fault": fault, "operation": "account", "status": 503})
    with pytest.raises(ProviderDown):
        await provider.verify("acme", "ext-page", CREDENTIALS, {})
