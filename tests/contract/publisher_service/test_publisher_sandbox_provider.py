"""The adapter against the real sandbox provider: what each of its answers and failures means for a post."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import aiohttp
import pytest

from devstack.sandbox.client import SandboxClient
from devstack.sandbox.provider import Sandbox
from publisher_service.adapters.providers.adapter import CredentialsRefused, Limits, Post, ProviderAway
from publisher_service.adapters.providers.sandbox import SandboxAdapter
from publisher_service.domain.outcome import (
    Absent,
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

TOKEN = "sandbox-canary-91b7"
POST = Post(
    external_account_id="ext-page",
    access_token=TOKEN,
    channel="facebook",
    destination="",
    text="hello",
    idempotency_key="job-1",
)
LIMITS = Limits(request_timeout=timedelta(milliseconds=400))
Rule = dict[str, object]


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session:
        yield session


@pytest.fixture
def control(sandbox: Sandbox) -> SandboxClient:
    return SandboxClient(sandbox.url, sandbox.path)


@pytest.fixture
def provider(session: aiohttp.ClientSession, sandbox: Sandbox) -> SandboxAdapter:
    return SandboxAdapter(session, f"{sandbox.url}/", LIMITS)


async def test_a_post_is_accepted_under_the_name_that_the_provider_gave(
    provider: SandboxAdapter, control: SandboxClient
) -> None:
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


async def test_the_same_key_again_is_the_same_post(provider: SandboxAdapter, control: SandboxClient) -> None:
    assert await provider.send(POST) == await provider.send(POST)
    assert len(control.effects()) == 1


@pytest.mark.parametrize(
    ("rule", "outcome", "effects"),
    [
        ({"fault": "reset_before_effect"}, Ambiguous(reason="CONNECTION_LOST", message=""), 0),
        ({"fault": "effect_then_reset"}, Ambiguous(reason="CONNECTION_LOST", message=""), 1),
        ({"fault": "hang_without_effect"}, Ambiguous(reason="TIMEOUT_AFTER_WRITE", message=""), 0),
        ({"fault": "effect_then_hang"}, Ambiguous(reason="TIMEOUT_AFTER_WRITE", message=""), 1),
        ({"fault": "slow", "seconds": 1}, Ambiguous(reason="TIMEOUT_AFTER_WRITE", message=""), 0),
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
async def test_every_failure_has_its_meaning(
    provider: SandboxAdapter, control: SandboxClient, rule: Rule, outcome: Any, effects: int
) -> None:
    await control.faults(rule)
    seen = await provider.send(POST)
    assert seen == replace(outcome, message=_message(seen))
    assert _message(seen)
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
    ],
    ids=lambda value: getattr(value, "reason", "") or type(value).__name__,
)
async def test_what_the_provider_refuses_of_itself_is_refused(
    provider: SandboxAdapter, control: SandboxClient, post: Post, outcome: Any
) -> None:
    seen = await provider.send(post)
    assert seen == replace(outcome, message=_message(seen))
    assert _message(outcome) in _message(seen)
    assert control.effects() == []


async def test_a_refusal_because_the_key_is_taken_does_not_say_that_nothing_is_out(provider: SandboxAdapter) -> None:
    await provider.send(POST)
    seen = await provider.send(replace(POST, text="another text"))
    assert isinstance(seen, Ambiguous)
    assert seen.reason == "IDEMPOTENCY_KEY_REUSED"


async def test_a_refusal_because_the_first_request_is_still_worked_on_proves_nothing(
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


async def test_a_connection_that_is_refused_has_sent_nothing(
    session: aiohttp.ClientSession, free_port: Callable[[], int]
) -> None:
    provider = SandboxAdapter(session, f"http://127.0.0.1:{free_port()}", LIMITS)
    assert (await _not_sent(provider)).reason == "CONNECTION_REFUSED"
    with pytest.raises(ProviderAway):
        await provider.verify("ext-page", TOKEN)
    assert isinstance(await provider.look(POST), NoProof)


async def test_a_name_that_nobody_has_has_sent_nothing(session: aiohttp.ClientSession) -> None:
    await _not_sent(SandboxAdapter(session, "http://nobody.invalid:1", Limits(request_timeout=timedelta(seconds=5))))


async def _not_sent(provider: SandboxAdapter) -> NotSent:
    seen = await provider.send(POST)
    assert isinstance(seen, NotSent)
    return seen


async def test_a_look_finds_what_is_there_and_what_is_not(provider: SandboxAdapter, control: SandboxClient) -> None:
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
async def test_a_look_that_fails_proves_nothing(provider: SandboxAdapter, control: SandboxClient, rule: Rule) -> None:
    await control.faults(rule | {"operation": "lookup"})
    seen = await provider.look(POST)
    assert isinstance(seen, NoProof)
    assert TOKEN not in seen.message


async def test_two_posts_under_one_key_prove_nothing(provider: SandboxAdapter, control: SandboxClient) -> None:
    await control.mode("ext-page", "lookup")
    await provider.send(POST)
    await provider.send(POST)
    assert isinstance(await provider.look(POST), NoProof)


async def test_a_look_where_none_is_possible_proves_nothing(provider: SandboxAdapter, control: SandboxClient) -> None:
    await control.mode("ext-page", "blind")
    assert isinstance(await provider.look(POST), NoProof)


@pytest.mark.parametrize("token", ["nonsense", "sandbox-revoked"])
async def test_bad_credentials_are_refused(provider: SandboxAdapter, token: str) -> None:
    with pytest.raises(CredentialsRefused) as refused:
        await provider.verify("ext-page", token)
    assert token not in str(refused.value)


async def test_an_account_that_is_not_there_is_refused(provider: SandboxAdapter) -> None:
    with pytest.raises(CredentialsRefused):
        await provider.verify("missing-one", TOKEN)
    await provider.verify("ext-page", TOKEN)


@pytest.mark.parametrize("name", ["a/../b", "a?b=c", "a#b", "ä ö", "urn:li:person:1", "a%2Fb", "@chat"])
async def test_any_name_of_an_account_is_one_step_of_the_path(
    provider: SandboxAdapter, control: SandboxClient, name: str
) -> None:
    await provider.verify(name, TOKEN)
    assert isinstance(await provider.send(replace(POST, external_account_id=name)), Accepted)
    (effect,) = control.effects()
    assert effect["account"] == name
    assert isinstance(await provider.look(replace(POST, external_account_id=name)), Found)


@pytest.mark.parametrize("fault", ["hang_without_effect", "reset_before_effect", "status"])
async def test_a_provider_that_cannot_say_is_away(provider: SandboxAdapter, control: SandboxClient, fault: str) -> None:
    await control.faults({"fault": fault, "operation": "account", "status": 503})
    with pytest.raises(ProviderAway):
        await provider.verify("ext-page", TOKEN)


@asynccontextmanager
async def answering(*pieces: bytes, paths: list[str] | None = None) -> AsyncIterator[str]:
    """A server that answers every request with these pieces, each in a packet of its own, until nobody listens."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            if paths is not None:
                paths.append(head.split()[1].decode())
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0.01)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def test_a_redirect_is_not_followed(session: aiohttp.ClientSession, sandbox: Sandbox) -> None:
    paths: list[str] = []
    moved = f"HTTP/1.1 307 Moved\r\nLocation: {sandbox.url}/v1/accounts/a/posts\r\nContent-Length: 0\r\n\r\n".encode()
    async with answering(moved, paths=paths) as url:
        provider = SandboxAdapter(session, url, LIMITS)
        assert await provider.send(POST) == Ambiguous(reason="HTTP_307", message="the sandbox answered 307")
        assert await provider.look(POST) == NoProof(message="the look-up answered 307")
        with pytest.raises(ProviderAway):
            await provider.verify("ext-page", TOKEN)
    assert len(paths) == 3
    assert SandboxClient(sandbox.url, sandbox.path).ledger() == []


async def test_an_answer_in_pieces_is_read_whole(session: aiohttp.ClientSession) -> None:
    head = b"HTTP/1.1 201 Created\r\nContent-Length: 33\r\n\r\n"
    async with answering(head, b'{"id": "sp-1", ', b'"url": "http://x"}') as url:
        seen = await SandboxAdapter(session, url, LIMITS).send(POST)
    assert isinstance(seen, Accepted)


@pytest.mark.parametrize("status", ["201 Created", "400 Bad Request"])
async def test_an_answer_without_end_is_cut_off(session: aiohttp.ClientSession, status: str) -> None:
    head = f"HTTP/1.1 {status}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    piece = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    async with answering(head, *[piece] * 50) as url:
        seen = await SandboxAdapter(session, url, Limits(request_timeout=timedelta(seconds=20))).send(POST)
    expected = Ambiguous if status.startswith("201") else Rejected
    assert isinstance(seen, expected)


async def test_a_message_of_the_provider_is_shown_in_part_only(session: aiohttp.ClientSession) -> None:
    body = b'{"error": {"code": "' + b"c" * 900 + b'", "message": "' + b"m" * 900 + b'"}}'
    head = f"HTTP/1.1 400 Bad Request\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    async with answering(head + body) as url:
        seen = await SandboxAdapter(session, url, LIMITS).send(POST)
    assert seen == Rejected(reason="C" * 64, message="m" * 500)


@pytest.mark.parametrize("bad", ["\\u0000", "\\ud800", "\\udc00\\ud800"])
async def test_what_no_database_can_hold_is_neither_a_name_nor_shown(session: aiohttp.ClientSession, bad: str) -> None:
    async def told(status: str, body: str) -> tuple[Outcome, Finding]:
        head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n"
        async with answering((head + body).encode()) as url:
            provider = SandboxAdapter(session, url, LIMITS)
            return await provider.send(POST), await provider.look(POST)

    sent, _ = await told("201 Created", f'{{"id": "sp-{bad}", "url": "http://x"}}')
    assert isinstance(sent, Ambiguous)
    _, found = await told("200 OK", f'{{"posts": [{{"id": "{bad}", "url": "http://x"}}]}}')
    assert isinstance(found, NoProof)
    _, found = await told("200 OK", '{"posts": [{"id": "", "url": "http://x"}]}')
    assert isinstance(found, NoProof)

    sent, _ = await told("201 Created", f'{{"id": "sp-1", "url": "http://x/{bad}"}}')
    assert isinstance(sent, Accepted)
    refused, _ = await told("400 Bad Request", f'{{"error": {{"code": "a{bad}", "message": "b{bad}"}}}}')
    assert isinstance(refused, Rejected)
    for shown in (sent.external_url, refused.reason, refused.message):
        assert "\0" not in shown
        assert shown.encode()


async def test_a_wait_of_no_time_is_a_wait(session: aiohttp.ClientSession) -> None:
    async with answering(b"HTTP/1.1 429 Slow\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n") as url:
        seen = await SandboxAdapter(session, url, LIMITS).send(POST)
    assert isinstance(seen, RateLimited)
    assert seen.retry_after == timedelta(seconds=1)


@pytest.mark.parametrize("told", ["soon", "-1", "Wed, 21 Oct 2065 07:28:00 GMT", "١٢"])
async def test_a_wait_that_cannot_be_read_is_the_usual_one(session: aiohttp.ClientSession, told: str) -> None:
    head = f"HTTP/1.1 429 Slow\r\nRetry-After: {told}\r\nContent-Length: 0\r\n\r\n".encode()
    async with answering(head) as url:
        seen = await SandboxAdapter(session, url, LIMITS).send(POST)
    assert isinstance(seen, RateLimited)
    assert seen.retry_after == timedelta(seconds=5)


async def test_no_token_is_shown(
    provider: SandboxAdapter, caplog: pytest.LogCaptureFixture, control: SandboxClient
) -> None:
    with caplog.at_level(logging.DEBUG):
        await control.faults({"fault": "effect_then_reset"})
        seen: list[Outcome | Finding] = [await provider.send(POST), await provider.look(POST)]
    assert TOKEN not in repr(seen)
    assert TOKEN not in repr(POST)
    assert TOKEN not in caplog.text


def _message(outcome: Any) -> str:
    return str(getattr(outcome, "message", ""))
