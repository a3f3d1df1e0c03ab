"""A post to a webhook is signed, goes to no other place, and is repeated under one id."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from devstack.networks.faults import Fault, Rule
from devstack.networks.webhook_receiver import SECRET, WebhookReceiver
from publisher_service.adapters.outside.network import Outside
from publisher_service.adapters.outside.urls import read_private_hosts
from publisher_service.adapters.providers.adapter import CredentialsRefused, Limits, Post, ProviderDown
from publisher_service.adapters.providers.provider import Provider
from publisher_service.adapters.providers.webhook import WebhookAdapter
from publisher_service.adapters.standard_webhooks import verify
from publisher_service.domain.content import ContentMedia
from publisher_service.domain.credentials import Credentials
from publisher_service.domain.outcome import (
    Accepted,
    Ambiguous,
    AuthRefused,
    NotSent,
    Outcome,
    RateLimited,
    Rejected,
    Repeatable,
)
from servicekit.clock import SystemClock
from servicekit.faults import InvalidField
from servicekit.run.settings import Secret
from testkit.clocks import START, FrozenClock
from tests.contract.publisher_service.scene import LIMITS
from tests.contract.publisher_service.scenes_mail import webhook_scene
from tests.contract.publisher_service.scripted_server import OK, scripted

PATIENT = Limits(request_timeout=timedelta(seconds=5))
OTHER = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[tuple[WebhookReceiver, WebhookAdapter, Post]]:
    """Opens a receiver, with more patience than the scene has."""
    async with webhook_scene(folder) as scene:
        assert isinstance(scene.network, WebhookReceiver)
        outside = Outside(private_hosts=read_private_hosts(scene.network.url.removeprefix("http://")))
        yield scene.network, WebhookAdapter(outside, PATIENT, clock=SystemClock()), await scene.ready()


async def test_a_receiver_gets_the_whole_post() -> None:
    clock = FrozenClock()
    async with scripted(lambda wire: wire.answer(OK)) as server:
        adapter = WebhookAdapter(Outside(private_hosts={("127.0.0.1", server.port)}), LIMITS, clock=clock)
        post = Post(
            external_account_id="hook",
            access_token=SECRET,
            channel="webhook",
            destination="blog",
            text="hello\nwörld",
            title="A title",
            link="https://example.com",
            media=(ContentMedia(url="https://media.example.com/a.png", alt_text="a", sha256="0" * 64),),
            idempotency_key="job-1",
            organization_id="acme",
            schedule_time=START,
            settings={"url": f"{server.url}/hook?tenant=1"},
        )
        assert isinstance(await adapter.send(post), Accepted)
        clock.advance(timedelta(minutes=2))
        assert isinstance(await adapter.send(post), Accepted)
    (head, _, body), (_, _, again) = (each.partition(b"\r\n\r\n") for each in server.requests)
    assert body == again
    first, *lines = head.decode().split("\r\n")
    assert first == "POST /hook?tenant=1 HTTP/1.1"
    headers = {name.lower(): text for name, _, text in (line.partition(": ") for line in lines)}
    assert verify(headers, body, Secret(SECRET), now=START) == "job-1"
    assert json.loads(body) == {
        "type": "post",
        "id": "job-1",
        "organization_id": "acme",
        "channel": "webhook",
        "destination": "blog",
        "schedule_time": "2026-03-02T09:00:00+00:00",
        "title": "A title",
        "text": "hello\nwörld",
        "link": "https://example.com",
        "media": [{"url": "https://media.example.com/a.png", "alt_text": "a", "sha256": "0" * 64}],
    }


@pytest.mark.parametrize(
    ("answer", "external_id", "url"),
    [
        ({}, "job-1", ""),
        ({"id": "p-7", "url": "https://blog.example.com/p/7"}, "p-7", "https://blog.example.com/p/7"),
        ({"id": 7, "url": "http://blog.example.com"}, "job-1", ""),
        ({"id": "a\0", "url": "javascript:alert(1)"}, "job-1", ""),
        ({"id": "x" * 1001, "url": "https://a b"}, "job-1", ""),
        ({"id": "", "url": "https://" + "x" * 600}, "job-1", ""),
        ({"id": None, "url": ["https://example.com"]}, "job-1", ""),
        ([], "job-1", ""),
    ],
    ids=repr,
)
async def test_an_answer_may_name_the_post(tmp_path: Path, answer: Any, external_id: str, url: str) -> None:
    async with opened(tmp_path) as (network, adapter, post):
        network.faults.add(Rule(fault=Fault.ANSWER, status=202, body=answer))
        assert await Provider(adapter, SystemClock()).send(post) == Accepted(external_id=external_id, external_url=url)


STATUSES: dict[int, type[Outcome]] = {
    **dict.fromkeys((200, 201, 202, 204, 299), Accepted),
    **dict.fromkeys((301, 307, 308, 304, 400, 403, 405, 413, 415, 422, 410), Rejected),
    **dict.fromkeys((302, 303, 408, 409, 500, 501, 502, 503, 504, 520, 599), Ambiguous),
    **dict.fromkeys((404, 425), NotSent),
    429: RateLimited,
    401: AuthRefused,
}


@pytest.mark.parametrize("status", STATUSES)
async def test_a_status_has_its_outcome(tmp_path: Path, status: int) -> None:
    async with opened(tmp_path) as (network, adapter, post):
        network.faults.add(Rule(fault=Fault.ANSWER, status=status, headers={"Location": f"{network.url}/elsewhere"}))
        seen = await adapter.send(post)
        assert type(seen) is STATUSES[status], seen
        assert len(network.calls) == 1
        if isinstance(seen, Rejected):
            assert seen.peer_blocked is (status == 410)


@pytest.mark.parametrize(("said", "seconds"), [("120", 120), ("", 300), ("Wed, 21 Oct 2026 07:28:00 GMT", 300)])
async def test_a_receiver_says_how_long_to_wait(tmp_path: Path, said: str, seconds: int) -> None:
    async with opened(tmp_path) as (network, adapter, post):
        network.faults.add(Rule(fault=Fault.ANSWER, status=429, headers={"Retry-After": said} if said else {}))
        seen = await adapter.send(post)
        assert isinstance(seen, RateLimited)
        assert seen.retry_after == timedelta(seconds=seconds)


async def test_what_the_receiver_says_is_kept_for_people_and_bounded(tmp_path: Path) -> None:
    async with opened(tmp_path) as (network, adapter, post):
        network.faults.add(Rule(fault=Fault.ANSWER, status=422, body=f"no\0 such\n place {SECRET} " + "x" * 50_000))
        seen = await Provider(adapter, SystemClock()).send(post)
        assert isinstance(seen, Rejected)
        assert seen.message.startswith("the webhook answered 422: no� such place ***")
        assert len(seen.message) < 400


async def test_a_lost_answer_is_repeated_under_the_same_id(tmp_path: Path) -> None:
    async with opened(tmp_path) as (network, adapter, post):
        network.faults.add(Rule(fault=Fault.RESET, effect=True))
        assert isinstance(await adapter.send(post), Ambiguous)
        assert isinstance(await adapter.look(post), Repeatable)
        assert isinstance(await adapter.send(post), Accepted)
        assert len(network.effects) == 1
        assert network.problems == []
        assert adapter.limits.repeat_window == timedelta(hours=24)


@pytest.mark.parametrize(
    "secret", ["", "secret", "whsec_", "whsec_c2hvcnQ=", "whsec_%%%", SECRET.removeprefix("whsec_")]
)
async def test_a_secret_of_another_form_sends_nothing(tmp_path: Path, secret: str) -> None:
    async with opened(tmp_path) as (network, adapter, post):
        assert isinstance(await adapter.send(replace(post, access_token=secret)), AuthRefused)
        with pytest.raises(CredentialsRefused, match="whsec_"):
            await adapter.verify("acme", "hook", Credentials(access_token=secret), post.settings)
        assert network.calls == []


async def test_a_secret_that_the_receiver_does_not_have_is_refused(tmp_path: Path) -> None:
    async with opened(tmp_path) as (network, adapter, post):
        assert isinstance(await adapter.send(replace(post, access_token=OTHER)), AuthRefused)
        with pytest.raises(CredentialsRefused, match="401"):
            await adapter.verify("acme", "hook", Credentials(access_token=OTHER), post.settings)
        assert network.effects == []
        assert len(network.problems) == 2


async def test_the_fake_notices_another_body_under_an_id(tmp_path: Path) -> None:
    async with opened(tmp_path) as (network, adapter, post):
        for text in ("one", "two"):
            await adapter.send(replace(post, text=text))
        assert network.problems == ["another body under the id job-1"]


async def test_verify_pings_the_receiver(tmp_path: Path) -> None:
    async with opened(tmp_path) as (network, adapter, post):
        await adapter.verify("acme", "hook", Credentials(access_token=SECRET), post.settings)
        assert (network.pings, network.effects, network.problems) == (1, [], [])
        await adapter.verify("acme", "hook", Credentials(access_token=SECRET), {})
        assert network.pings == 1


@pytest.mark.parametrize("status", [301, 302, 400, 404, 405, 410])
async def test_a_ping_that_is_refused_refuses_the_credentials(tmp_path: Path, status: int) -> None:
    async with opened(tmp_path) as (network, adapter, post):
        network.faults.add(Rule(fault=Fault.ANSWER, status=status))
        with pytest.raises(CredentialsRefused, match=str(status)):
            await adapter.verify("acme", "hook", Credentials(access_token=SECRET), post.settings)


@pytest.mark.parametrize(
    "rule",
    [
        *[Rule(fault=Fault.ANSWER, status=status) for status in (408, 429, 500, 502, 503, 504)],
        Rule(fault=Fault.RESET),
        Rule(fault=Fault.HANG),
    ],
    ids=lambda rule: f"{rule.fault}-{rule.status}",
)
async def test_a_ping_without_an_answer_is_no_refusal(tmp_path: Path, rule: Rule) -> None:
    async with webhook_scene(tmp_path) as scene:
        scene.network.faults.add(rule)
        with pytest.raises(ProviderDown):
            await scene.adapter.verify("acme", "hook", Credentials(access_token=SECRET), scene.post.settings)


SETTINGS: dict[str, Mapping[str, str]] = {
    "settings.url": {},
    "settings.secret": {"url": "https://example.com", "secret": "x"},
}


@pytest.mark.parametrize(
    "url",
    ["", "http://example.com", "https://127.0.0.1/", "https://localhost/", "https://example.com:8443/", "ftp://x"],
)
def test_a_url_that_must_not_be_called_is_refused_by_its_field(url: str) -> None:
    adapter = WebhookAdapter(Outside(), LIMITS, clock=SystemClock())
    with pytest.raises(InvalidField) as refused:
        adapter.check_settings({"url": url})
    assert refused.value.metadata["field"] == "settings.url"


@pytest.mark.parametrize("field", SETTINGS)
def test_a_missing_or_unknown_setting_is_refused_by_its_name(field: str) -> None:
    adapter = WebhookAdapter(Outside(), LIMITS, clock=SystemClock())
    with pytest.raises(InvalidField) as refused:
        adapter.check_settings(SETTINGS[field])
    assert refused.value.metadata["field"] == field


def test_a_url_is_normalised_once() -> None:
    adapter = WebhookAdapter(Outside(), LIMITS, clock=SystemClock())
    good = adapter.check_settings({"url": "HTTPS://Example.COM:443/a b?c#d".replace(" ", "%20")})
    assert good == {"url": "https://example.com/a%20b?c"}
    assert adapter.check_settings(good) == good


async def test_a_name_that_turned_private_is_not_called(tmp_path: Path) -> None:
    outside = Outside(resolve=lambda _host, _port: ["169.254.169.254"])
    adapter = WebhookAdapter(outside, LIMITS, clock=SystemClock())
    async with opened(tmp_path) as (_, _, post):
        moved = replace(post, settings={"url": "https://hooks.example.com/"})
    seen = await adapter.send(moved)
    assert isinstance(seen, NotSent)
    assert (seen.reason, seen.is_unreachable) == ("URL_PRIVATE", False)
    with pytest.raises(CredentialsRefused, match="not public"):
        await adapter.verify("acme", "hook", Credentials(access_token=SECRET), moved.settings)


async def test_a_receiver_that_refuses_connections_got_nothing() -> None:
    adapter = WebhookAdapter(Outside(private_hosts=read_private_hosts("127.0.0.1:1")), LIMITS, clock=SystemClock())
    post = Post(
        external_account_id="hook",
        access_token=SECRET,
        channel="webhook",
        destination="",
        text="hello",
        idempotency_key="job-1",
        settings={"url": "http://127.0.0.1:1/"},
    )
    assert isinstance(await adapter.send(post), NotSent)
    assert isinstance(await adapter.send(replace(post, settings={})), NotSent)
    with pytest.raises(ProviderDown):
        await adapter.verify("acme", "hook", Credentials(access_token=SECRET), post.settings)
