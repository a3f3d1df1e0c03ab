"""The adapter's sends to the real sandbox provider: what each answer and failure means for a post."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from devstack.sandbox.client import SandboxClient
from devstack.sandbox.provider import Sandbox
from publisher_service.adapters.providers.adapter import Limits, Post, ProviderDown
from publisher_service.adapters.providers.sandbox import SandboxAdapter
from publisher_service.domain.outcome import (
    Accepted,
    Ambiguous,
    AuthRefused,
    Finding,
    Found,
    NoProof,
    NotSent,
    Outcome,
    RateLimited,
    Rejected,
)
from testkit.eventually import eventually
from tests.contract.publisher_service.sandbox import CREDENTIALS, POST, TOKEN, AdapterAt, message_of

Rule = dict[str, object]


async def test_an_accepted_post_has_the_providers_id_and_url(provider: SandboxAdapter, control: SandboxClient) -> None:
    outcome = await provider.send(replace(POST, destination="wall"))
    (effect,) = control.effects()
    assert outcome == Accepted(external_id=effect["id"], external_url=f"{control.url}/v1/posts/{effect['id']}")
    assert {name: effect[name] for name in ("account", "channel", "destination", "text", "idempotency_key")} == {
        "account": "ext-page",
        "channel": "facebook",
        "destination": "wall",
        "text": "hello",
        "idempotency_key": "job-1",
    }


async def test_the_same_idempotency_key_gives_the_same_post(provider: SandboxAdapter, control: SandboxClient) -> None:
    assert await provider.send(POST) == await provider.send(POST)
    assert len(control.effects()) == 1


@pytest.mark.parametrize(
    ("rule", "outcome", "effects"),
    [
        ({"fault": "reset_before_effect"}, Ambiguous(reason="CONNECTION_LOST", message=""), 0),
        ({"fault": "effect_then_reset"}, Ambiguous(reason="CONNECTION_LOST", message=""), 1),
        ({"fault": "hang_without_effect"}, Ambiguous(reason="TIMEOUT_AFTER_WRITE", message=""), 0),
        ({"fault": "effect_then_hang"}, Ambiguous(reason="TIMEOUT_AFTER_WRITE", message=""), 1),
        ({"fault": "slow", "seconds": 5}, Ambiguous(reason="TIMEOUT_AFTER_WRITE", message=""), 0),
        ({"fault": "late_effect", "seconds": 0}, Ambiguous(reason="TIMEOUT_AFTER_WRITE", message=""), 1),
        ({"fault": "late_effect", "answer": "reset"}, Ambiguous(reason="CONNECTION_LOST", message=""), 1),
        ({"fault": "garbage"}, Ambiguous(reason="UNREADABLE_ANSWER", message=""), 0),
        ({"fault": "garbage", "effect": True, "body": "[]"}, Ambiguous(reason="UNREADABLE_ANSWER", message=""), 1),
        ({"fault": "garbage", "body": '{"id": 7}'}, Ambiguous(reason="UNREADABLE_ANSWER", message=""), 0),
        ({"fault": "garbage", "body": "[" * 60_000}, Ambiguous(reason="UNREADABLE_ANSWER", message=""), 0),
        ({"fault": "status", "status": 500}, Ambiguous(reason="INTERNAL", message=""), 0),
        ({"fault": "status", "status": 503, "effect": True}, Ambiguous(reason="UNAVAILABLE", message=""), 1),
        ({"fault": "status", "status": 408}, Ambiguous(reason="STATUS_408", message=""), 0),
        ({"fault": "status", "status": 409, "effect": True}, Ambiguous(reason="STATUS_409", message=""), 1),
        ({"fault": "status", "status": 401}, AuthRefused(message=""), 0),
        ({"fault": "status", "status": 403}, Rejected(reason="STATUS_403", message=""), 0),
        ({"fault": "status", "status": 422}, Rejected(reason="STATUS_422", message=""), 0),
        (
            {"fault": "status", "status": 429},
            RateLimited(message="", retry_after=timedelta(seconds=5)),
            0,
        ),
        (
            {"fault": "status", "status": 429, "retry_after": 90},
            RateLimited(message="", retry_after=timedelta(seconds=90)),
            0,
        ),
        (
            {"fault": "status", "status": 429, "retry_after": 999_999},
            RateLimited(message="", retry_after=timedelta(hours=24)),
            0,
        ),
        (
            {"fault": "status", "status": 429, "retry_after": 99_999_999},
            RateLimited(message="", retry_after=timedelta(seconds=5)),
            0,
        ),
    ],
    ids=lambda value: "-".join(str(each)[:20] for each in value.values()) if isinstance(value, dict) else "",
)
async def test_each_failure_becomes_its_outcome(
    provider: SandboxAdapter, control: SandboxClient, rule: Rule, outcome: Any, effects: int
) -> None:
    await control.faults(rule)
    seen = await provider.send(POST)
    assert seen == replace(outcome, message=message_of(seen))
    assert message_of(seen)
    assert TOKEN not in repr(seen)
    assert len(control.effects()) == effects


@pytest.mark.parametrize(
    ("post", "outcome"),
    [
        (replace(POST, text=" "), Rejected(reason="EMPTY_TEXT", message="the text is empty")),
        (replace(POST, access_token="sandbox-readonly"), Rejected(reason="FORBIDDEN", message="")),
        (replace(POST, access_token="sandbox-revoked"), AuthRefused(message="")),
        (replace(POST, external_account_id="missing-one"), Rejected(reason="ACCOUNT_NOT_FOUND", message="")),
        (replace(POST, destination="missing"), Rejected(reason="DESTINATION_NOT_FOUND", message="")),
        (replace(POST, destination="blocked-by"), Rejected(reason="PEER_BLOCKED", message="", peer_blocked=True)),
    ],
    ids=lambda value: getattr(value, "reason", "") or type(value).__name__,
)
async def test_the_sandboxs_own_refusals_are_outcomes(
    provider: SandboxAdapter, control: SandboxClient, post: Post, outcome: Any
) -> None:
    seen = await provider.send(post)
    assert seen == replace(outcome, message=message_of(seen))
    assert message_of(outcome) in message_of(seen)
    assert control.effects() == []


async def test_a_reused_idempotency_key_is_ambiguous(provider: SandboxAdapter) -> None:
    await provider.send(POST)
    seen = await provider.send(replace(POST, text="another text"))
    assert isinstance(seen, Ambiguous)
    assert seen.reason == "IDEMPOTENCY_KEY_REUSED"


async def test_a_refusal_while_the_first_request_is_running_is_ambiguous(
    provider: SandboxAdapter, control: SandboxClient, sandbox: Sandbox
) -> None:
    await control.faults({"fault": "slow", "seconds": 0.3, "count": 1})
    async with asyncio.TaskGroup() as group:
        first = group.create_task(provider.send(POST))
        await eventually(lambda: sandbox._faults.described() == [])
        seen = await provider.send(POST)
    assert isinstance(first.result(), Accepted)
    assert isinstance(seen, Ambiguous)
    assert seen.reason == "IN_PROGRESS"


async def test_a_refused_connection_has_sent_nothing(adapter_at: AdapterAt, free_port: Callable[[], int]) -> None:
    provider = adapter_at(f"http://127.0.0.1:{free_port()}")
    assert (await _not_sent(provider)).reason == "CONNECTION_REFUSED"
    with pytest.raises(ProviderDown):
        await provider.verify("acme", "ext-page", CREDENTIALS, {})
    assert isinstance(await provider.look(POST), NoProof)


async def test_an_unknown_host_name_has_sent_nothing(adapter_at: AdapterAt) -> None:
    await _not_sent(adapter_at("http://nobody.invalid:1", Limits(request_timeout=timedelta(seconds=5))))


@pytest.mark.parametrize("name", ["a/../b", "a?b=c", "a#b", "ä ö", "urn:li:person:1", "a%2Fb", "@chat"])
async def test_any_account_name_is_one_segment_of_the_path(
    provider: SandboxAdapter, control: SandboxClient, name: str
) -> None:
    await provider.verify("acme", name, CREDENTIALS, {})
    assert isinstance(await provider.send(replace(POST, external_account_id=name)), Accepted)
    (effect,) = control.effects()
    assert effect["account"] == name
    assert isinstance(await provider.look(replace(POST, external_account_id=name)), Found)


async def test_no_token_appears_in_outcomes_or_logs(
    provider: SandboxAdapter, caplog: pytest.LogCaptureFixture, control: SandboxClient
) -> None:
    with caplog.at_level(logging.DEBUG):
        await control.faults({"fault": "effect_then_reset"})
        seen: list[Outcome | Finding] = [await provider.send(POST), await provider.look(POST)]
    assert TOKEN not in repr(seen)
    assert TOKEN not in repr(POST)
    assert TOKEN not in caplog.text


async def _not_sent(provider: SandboxAdapter) -> NotSent:
    seen = await provider.send(POST)
    assert isinstance(seen, NotSent)
    return seen
