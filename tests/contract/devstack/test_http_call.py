"""Requests of http_call against a server that answers what a test wants."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from devstack.http_call import NoAnswer, http_call


@asynccontextmanager
async def serving(answer: bytes) -> AsyncIterator[tuple[str, list[bytes]]]:
    """Yields the URL of a server that answers every request with these bytes, and what it was sent."""
    sent: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        sent.append(await reader.readuntil(b"\r\n\r\n") + await reader.readexactly(2))
        writer.write(answer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1")
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", sent


async def test_a_request_is_sent_as_given_and_its_answer_read() -> None:
    async with serving(b"HTTP/1.1 404 Not Found\r\nContent-Length: 3\r\nX-Why: no\r\n\r\nabc") as (url, sent):
        answer = await http_call("PUT", f"{url}/path?x=1", body=b"{}", headers={"X-Mine": "yes"})
    assert (answer.status, answer.headers["x-why"], answer.text) == (404, "no", "abc")
    head, _, body = sent[0].partition(b"\r\n\r\n")
    assert head.startswith(b"PUT /path?x=1 HTTP/1.1\r\nHost: 127.0.0.1:")
    assert b"Content-Length: 2\r\n" in head
    assert head.endswith(b"X-Mine: yes")
    assert body == b"{}"


async def test_an_answer_without_a_length_ends_with_its_connection() -> None:
    async with serving(b"HTTP/1.0 200 OK\r\n\r\nall of it") as (url, _):
        assert (await http_call("GET", url, body=b"{}")).text == "all of it"


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"])
async def test_half_an_answer_is_none(answer: bytes) -> None:
    async with serving(answer) as (url, _):
        with pytest.raises(NoAnswer):
            await http_call("GET", url, body=b"{}")
