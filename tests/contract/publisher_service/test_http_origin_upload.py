"""Uploads: a body in pieces goes out as fast as the server reads, and a server may answer before it has read all."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from publisher_service.adapters.providers.http_origin import Answer, ConnectionLost, HttpOrigin
from tests.contract.publisher_service.scripted_server import OK, Wire, scripted

LONG, SHORT = timedelta(seconds=20), timedelta(milliseconds=200)
PIECE = bytes(64 * 1024)
MANY = 400
REFUSED = b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno"


class Body:
    """Counts the pieces that were asked for."""

    def __init__(self, count: int) -> None:
        self.left = count
        self.size = count * len(PIECE)

    async def pieces(self) -> AsyncIterator[bytes]:
        while self.left:
            self.left -= 1
            yield PIECE


async def uploaded(url: str, body: Body, timeout: timedelta = LONG) -> Answer:
    origin = HttpOrigin(url, connections=1)
    try:
        headers = {"Content-Type": "image/jpeg"}
        return await origin.upload("PUT", "/u", headers, body.pieces(), size=body.size, timeout=timeout)
    finally:
        await origin.close()


async def test_all_pieces_arrive_in_their_order() -> None:
    async with scripted(lambda wire: wire.answer(OK)) as server:
        body = Body(3)
        assert (await uploaded(server.url, body)).status == 200
    (request,) = server.requests
    head, _, sent = request.partition(b"\r\n\r\n")
    assert head.startswith(b"PUT /u HTTP/1.1\r\n")
    assert sent == PIECE * 3


async def test_a_server_that_reads_nothing_is_not_flooded() -> None:
    async def reads_nothing(wire: Wire) -> None:
        await asyncio.sleep(3600)

    body = Body(MANY)
    async with scripted(reads_nothing) as server:
        with pytest.raises(TimeoutError):
            await uploaded(server.url, body, SHORT)
    assert body.left > MANY // 2, "what nobody reads was read into memory"


async def test_an_early_refusal_ends_the_upload() -> None:
    async def refuses(wire: Wire) -> None:
        wire.say(REFUSED)
        await asyncio.sleep(3600)

    body = Body(MANY)
    async with scripted(refuses) as server:
        answer = await uploaded(server.url, body)
    assert (answer.status, answer.body) == (413, b"no")
    assert body.left > MANY // 2


async def test_a_connection_that_breaks_ends_the_upload() -> None:
    async def breaks(_wire: Wire) -> None:
        return

    with pytest.raises(ConnectionLost):
        async with scripted(breaks) as server:
            await uploaded(server.url, Body(MANY))


async def test_a_body_that_cannot_be_read_ends_the_request() -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield PIECE
        raise OSError("the disk is gone")

    async with scripted(lambda wire: wire.answer(OK)) as server:
        origin = HttpOrigin(server.url, connections=1)
        with pytest.raises(OSError, match="the disk is gone"):
            await origin.upload("PUT", "/", {}, broken(), size=2 * len(PIECE), timeout=LONG)
        assert origin._idle_connection() is None
        await origin.close()
