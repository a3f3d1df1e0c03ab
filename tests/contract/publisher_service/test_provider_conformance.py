"""Every adapter owes the Publisher the same, in any class of provider: outcomes by phase, and proofs.

A new adapter joins `ADAPTERS`, and has to pass all of this.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from devstack.sandbox.client import SandboxClient
from devstack.sandbox.provider import Sandbox
from publisher_service.adapters.providers.adapter import CredentialsRefused, Limits, Proof, ProviderDown
from publisher_service.adapters.providers.http_origin import HttpOrigin
from publisher_service.adapters.providers.sandbox_container import SandboxContainerAdapter
from publisher_service.domain.credentials import Credentials
from publisher_service.domain.outcome import (
    Absent,
    Accepted,
    Ambiguous,
    AuthRefused,
    Finding,
    Found,
    Level,
    NoProof,
    NotSent,
    Quota,
    RateLimited,
    Rejected,
)
from publisher_service.domain.preparation import Unfit
from testkit.eventually import eventually
from tests.contract.publisher_service.conforming import ADAPTERS, AnyAdapter, Conforming
from tests.contract.publisher_service.sandbox import CREDENTIALS, POST, TOKEN, message_of

LIMITS = Limits(request_timeout=timedelta(milliseconds=500))
Rule = dict[str, object]
Make = Callable[[HttpOrigin, Limits], AnyAdapter]


@pytest.fixture(params=ADAPTERS, ids=lambda make: make.name)
async def conforming(request: pytest.FixtureRequest, sandbox: Sandbox) -> AsyncIterator[Conforming]:
    origin = HttpOrigin(sandbox.url, connections=8)
    make: Make = request.param
    yield Conforming(make(origin, LIMITS))
    await origin.close()


PHASES: dict[str, tuple[Rule, Any, int]] = {
    "reset before the effect": ({"fault": "reset_before_effect"}, Ambiguous, 0),
    "reset after the effect": ({"fault": "effect_then_reset"}, Ambiguous, 1),
    "silence before the effect": ({"fault": "hang_without_effect"}, Ambiguous, 0),
    "silence after the effect": ({"fault": "effect_then_hang"}, Ambiguous, 1),
    "an unreadable success": ({"fault": "garbage", "effect": True}, Ambiguous, 1),
    "an unreadable nothing": ({"fault": "garbage"}, Ambiguous, 0),
    "500 before the effect": ({"fault": "status", "status": 500}, Ambiguous, 0),
    "503 after the effect": ({"fault": "status", "effect": True}, Ambiguous, 1),
    "408": ({"fault": "status", "status": 408}, Ambiguous, 0),
    "400": ({"fault": "status", "status": 400}, Rejected, 0),
    "403": ({"fault": "status", "status": 403}, Rejected, 0),
    "401": ({"fault": "status", "status": 401}, AuthRefused, 0),
    "429": ({"fault": "status", "status": 429, "retry_after": 7}, RateLimited, 0),
    "a flood wait": ({"fault": "flood", "seconds": 40}, RateLimited, 0),
}


@pytest.mark.parametrize("phase", PHASES)
async def test_each_phase_of_a_failure_has_its_outcome(
    conforming: Conforming, control: SandboxClient, phase: str
) -> None:
    rule, outcome, effects = PHASES[phase]
    post = await conforming.post()
    await control.faults(rule | {"count": 1})
    seen = await conforming.adapter.send(post)
    assert isinstance(seen, outcome), seen
    assert message_of(seen)
    assert TOKEN not in repr((seen, post))
    assert len(control.effects()) == effects


async def test_an_accepted_post_is_named(conforming: Conforming, control: SandboxClient) -> None:
    seen = await conforming.adapter.send(await conforming.post())
    (effect,) = control.effects()
    assert seen == Accepted(external_id=effect["id"], external_url=f"{control.url}/v1/posts/{effect['id']}")
    assert (effect["text"], effect["idempotency_key"]) == ("hello", "job-1")


async def test_a_refused_connection_has_sent_nothing(conforming: Conforming, free_port: Callable[[], int]) -> None:
    origin = HttpOrigin(f"http://127.0.0.1:{free_port()}", connections=1)
    adapter = type(conforming.adapter)(origin, LIMITS)
    post = replace(await conforming.post(), handle="sc-1")
    seen = await adapter.send(post)
    assert isinstance(seen, NotSent)
    assert seen.is_unreachable
    assert isinstance(await adapter.look(post), NoProof)
    with pytest.raises(ProviderDown):
        await adapter.verify("acme", "ext-page", CREDENTIALS, {})
    await origin.close()


@pytest.mark.parametrize(("token", "raises"), [("sandbox-revoked", CredentialsRefused), ("sandbox-ok", None)])
async def test_credentials_are_checked(conforming: Conforming, token: str, raises: Any) -> None:
    if raises is None:
        await conforming.adapter.verify("acme", "ext-page", Credentials(access_token=token), {})
        return
    with pytest.raises(raises):
        await conforming.adapter.verify("acme", "ext-page", Credentials(access_token=token), {})


async def test_an_expired_token_is_refused_to_a_send_and_to_a_look(
    conforming: Conforming, control: SandboxClient
) -> None:
    pair = await control.issue_token("ext-page", seconds=0)
    post = replace(await conforming.post(), access_token=pair["access_token"])
    assert isinstance(await conforming.adapter.send(post), AuthRefused)
    refused = NoProof if conforming.adapter.proof is Proof.BLIND else AuthRefused
    assert isinstance(await conforming.adapter.look(post), refused)
    with pytest.raises(CredentialsRefused):
        await conforming.adapter.verify("acme", "ext-page", Credentials(access_token=pair["access_token"]), {})
    assert control.effects() == []


async def test_how_long_to_wait_and_who_is_said(conforming: Conforming, control: SandboxClient) -> None:
    post = await conforming.post()
    await control.faults({"fault": "flood", "seconds": 40, "count": 1})
    seen = await conforming.adapter.send(post)
    assert isinstance(seen, RateLimited)
    assert (seen.retry_after, seen.level) == (timedelta(seconds=40), Level.ACCOUNT)


@pytest.mark.parametrize("level", Level)
async def test_quotas_come_with_each_answer(conforming: Conforming, control: SandboxClient, level: Level) -> None:
    first, second = await conforming.post("one"), replace(await conforming.post("two"), idempotency_key="job-2")
    await control.quotas({"level": level.lower(), "limit": 1, "seconds": 60})
    accepted = await conforming.adapter.send(first)
    assert isinstance(accepted, Accepted)
    assert list(accepted.quotas) == [Quota(level=level, remaining=0, reset_after=timedelta(seconds=60))]
    refused = await conforming.adapter.send(second)
    assert isinstance(refused, RateLimited)
    assert (refused.level, refused.retry_after) == (level, timedelta(seconds=60))
    assert len(control.effects()) == 1


# What a look says about a post that is out, and about one that is not.
PROOFS: dict[Proof, tuple[type[Finding], type[Finding]]] = {
    Proof.KEYED: (Found, Absent),
    Proof.CHECKABLE: (Found, Absent),
    Proof.LOOKUP: (Found, Absent),
    Proof.BLIND: (NoProof, NoProof),
}


async def test_a_look_proves_what_its_class_can_prove(conforming: Conforming, control: SandboxClient) -> None:
    out, absent = PROOFS[conforming.adapter.proof]
    post = await conforming.post()
    assert isinstance(await conforming.adapter.look(post), absent)
    await control.faults({"fault": "effect_then_reset", "count": 1})
    await conforming.adapter.send(post)
    seen = await conforming.adapter.look(post)
    assert isinstance(seen, out), seen
    if isinstance(seen, Found):
        assert [seen.external_id] == [effect["id"] for effect in control.effects()]
        assert seen.publish_time is not None


@pytest.mark.parametrize("fault", ["reset_before_effect", "hang_without_effect", "status", "garbage"])
async def test_a_look_that_fails_proves_nothing(conforming: Conforming, control: SandboxClient, fault: str) -> None:
    post = await conforming.post()
    await conforming.adapter.send(post)
    await control.faults(*({"fault": fault, "operation": operation} for operation in ("lookup", "status")))
    assert isinstance(await conforming.adapter.look(post), NoProof)


async def test_an_effect_that_comes_late_is_found_later(conforming: Conforming, control: SandboxClient) -> None:
    out, absent = PROOFS[conforming.adapter.proof]
    post = await conforming.post()
    await control.faults({"fault": "late_effect", "seconds": 0.3, "answer": "reset", "count": 1})
    assert isinstance(await conforming.adapter.send(post), Ambiguous)
    assert isinstance(await conforming.adapter.look(post), absent)

    async def is_out() -> bool:
        return bool(control.effects())

    await eventually(is_out)
    assert isinstance(await conforming.adapter.look(post), out)


async def test_a_send_again_makes_a_second_post_only_where_nothing_prevents_it(
    conforming: Conforming, control: SandboxClient
) -> None:
    post = await conforming.post()
    async with asyncio.TaskGroup() as group:
        for _ in range(2):
            group.create_task(conforming.adapter.send(post))
    prevented = conforming.adapter.proof in {Proof.KEYED, Proof.CHECKABLE}
    assert len(control.effects()) == (1 if prevented else 2)


def test_one_suite_covers_every_class() -> None:
    assert {make.proof for make in ADAPTERS} == set(Proof)  # type: ignore[attr-defined]


async def test_a_comment_that_says_the_same_is_known_from_its_post(
    conforming: Conforming, control: SandboxClient
) -> None:
    post = await conforming.adapter.send(await conforming.post("same words"))
    assert isinstance(post, Accepted)
    comment = await conforming.post("same words", key="job-2", follows=post.external_id)
    await control.faults({"fault": "effect_then_reset", "count": 1})
    assert isinstance(await conforming.adapter.send(comment), Ambiguous)
    first, second = control.effects()
    assert ("follows" in first, second["follows"]) == (False, post.external_id)
    seen = await conforming.adapter.look(comment)
    if conforming.adapter.proof is Proof.BLIND:
        assert isinstance(seen, NoProof)
    else:
        assert isinstance(seen, Found)
        assert seen.external_id == second["id"]


async def test_a_comment_below_nothing_is_refused(conforming: Conforming, control: SandboxClient) -> None:
    if isinstance(conforming.adapter, SandboxContainerAdapter):
        refused: object = await conforming.adapter.prepare(replace(POST, follows="sp-7"))
        assert isinstance(refused, Unfit)
    else:
        refused = await conforming.adapter.send(await conforming.post(follows="sp-7"))
        assert isinstance(refused, Rejected)
    assert refused.reason == "PARENT_NOT_FOUND"
    assert control.effects() == []
