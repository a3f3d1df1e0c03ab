"""Answers that the sandbox provider never gives: redirects, pieces, endless bodies, text that cannot be stored."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from devstack.sandbox.client import SandboxClient
from devstack.sandbox.provider import Sandbox
from publisher_service.adapters.providers.adapter import Limits, ProviderDown
from publisher_service.domain.outcome import (
    Accepted,
    Ambiguous,
    Finding,
    NoProof,
    Outcome,
    RateLimited,
    Rejected,
)
from tests.contract.publisher_service.sandbox import CREDENTIALS, POST, AdapterAt


async def test_a_redirect_is_not_followed(adapter_at: AdapterAt, sandbox: Sandbox) -> None:
    paths: list[str] = []
    moved = f"HTTP/1.1 307 Moved\r\nLocation: {sandbox.url}/v1/accounts/a/posts\r\nContent-Length: 0\r\n\r\n".encode()
    async with answering(moved, paths=paths) as url:
        provider = adapter_at(url)
        assert await provider.send(POST) == Ambiguous(reason="HTTP_307", message="the sandbox answered 307")
        assert await provider.look(POST) == NoProof(message="the look-up answered 307")
        with pytest.raises(ProviderDown):
            await provider.verify("acme", "ext-page", CREDENTIALS, {})
    assert len(paths) == 3
    assert SandboxClient(sandbox.url, sandbox.path).ledger() == []


async def test_an_answer_in_several_packets_is_read_in_full(adapter_at: AdapterAt) -> None:
    head = b"HTTP/1.1 201 Created\r\nContent-Length: 33\r\n\r\n"
    async with answering(head, b'{"id": "sp-1", ', b'"url": "http://x"}') as url:
        seen = await adapter_at(url).send(POST)
    assert isinstance(seen, Accepted)


@pytest.mark.parametrize("status", ["201 Created", "400 Bad Request"])
async def test_an_endless_answer_is_cut_off(adapter_at: AdapterAt, status: str) -> None:
    head = f"HTTP/1.1 {status}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    piece = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    async with answering(head, *[piece] * 50) as url:
        seen = await adapter_at(url, Limits(request_timeout=timedelta(seconds=20))).send(POST)
    expected = Ambiguous if status.startswith("201") else Rejected
    assert isinstance(seen, expected)


async def test_a_long_message_of_the_provider_is_truncated(adapter_at: AdapterAt) -> None:
    body = b'{"error": {"code": "' + b"c" * 900 + b'", "message": "' + b"m" * 900 + b'"}}'
    head = f"HTTP/1.1 400 Bad Request\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    async with answering(head + body) as url:
        seen = await adapter_at(url).send(POST)
    assert seen == Rejected(reason="C" * 64, message="m" * 500)


@pytest.mark.parametrize("bad", ["\\u0000", "\\ud800", "\\udc00\\ud800"])
async def test_text_that_cannot_be_stored_is_no_id_and_is_replaced(adapter_at: AdapterAt, bad: str) -> None:
    async def answered(status: str, body: str) -> tuple[Outcome, Finding]:
        head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n"
        async with answering((head + body).encode()) as url:
            provider = adapter_at(url)
            return await provider.send(POST), await provider.look(POST)

    sent, _ = await answered("201 Created", f'{{"id": "sp-{bad}", "url": "http://x"}}')
    assert isinstance(sent, Ambiguous)
    _, found = await answered("200 OK", f'{{"posts": [{{"id": "{bad}", "url": "http://x"}}]}}')
    assert isinstance(found, NoProof)
    _, found = await answered("200 OK", '{"posts": [{"id": "", "url": "http://x"}]}')
    assert isinstance(found, NoProof)

    sent, _ = await answered("201 Created", f'{{"id": "sp-1", "url": "http://x/{bad}"}}')
    assert isinstance(sent, Accepted)
    refused, _ = await answered("400 Bad Request", f'{{"error": {{"code": "a{bad}", "message": "b{bad}"}}}}')
    assert isinstance(refused, Rejected)
    for shown in (sent.external_url, refused.reason, refused.message):
        assert "\0" not in shown
        assert shown.encode()


async def test_a_retry_after_of_zero_waits_one_second(adapter_at: AdapterAt) -> None:
    async with answering(b"HTTP/1.1 429 Slow\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n") as url:
        seen = await adapter_at(url).send(POST)
    assert isinstance(seen, RateLimited)
    assert seen.retry_after == timedelta(seconds=1)


@pytest.mark.parametrize("header", ["soon", "-1", "Wed, 21 Oct 2065 07:28:00 GMT", "١٢"])
async def test_an_unreadable_retry_after_waits_the_default_time(adapter_at: AdapterAt, header: str) -> None:
    head = f"HTTP/1.1 429 Slow\r\nRetry-After: {header}\r\nContent-Length: 0\r\n\r\n".encode()
    async with answering(head) as url:
        seen = await adapter_at(url).send(POST)
    assert isinstance(seen, RateLimited)
    assert seen.retry_after == timedelta(seconds=5)


@asynccontextmanager
async def answering(*pieces: bytes, paths: list[str] | None = None) -> AsyncIterator[str]:
    """Serves these pieces to every request, each in a packet of its own, until the client closes."""

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
