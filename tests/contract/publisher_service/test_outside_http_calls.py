"""A request to an address of a user is answered, bounded in time and memory, or fails with what is known of it."""

import asyncio
import ssl
from collections.abc import Mapping
from contextlib import aclosing
from datetime import timedelta

import pytest

from publisher_service.adapters.outside.http_calls import LONGEST_PIECE, OutsideAnswer, call, exchange
from publisher_service.adapters.outside.network import Outside
from publisher_service.adapters.outside.refusals import AddressRefused, AnswerLost, Unreachable
from testkit.eventually import eventually
from tests.contract.publisher_service.scripted_server import OK, ScriptedServer, Wire, scripted

LONG, SHORT = timedelta(seconds=20), timedelta(milliseconds=200)
TLS = tuple[ssl.SSLContext, ssl.SSLContext]


async def called(
    server: ScriptedServer,
    target: str = "/hook?canary",
    *,
    body: bytes = b"",
    headers: Mapping[str, str] | None = None,
    timeout: timedelta = LONG,
    most: int = LONGEST_PIECE,
) -> OutsideAnswer:
    outside = Outside(private_hosts={("127.0.0.1", server.port)})
    url = outside.read_url(f"{server.url}{target}")
    method = "POST" if body else "GET"
    return await call(outside, "acme", url, method=method, headers=headers or {}, body=body, timeout=timeout, most=most)


async def test_a_request_is_written_as_http() -> None:
    async with scripted(lambda wire: wire.answer(OK)) as server:
        answer = await called(server, body=b"{}", headers={"X-Signature": "é"})
        assert (answer.status, answer.body) == (200, b"ok")
        head, _, body = server.requests[0].partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    assert (first, body) == ("POST /hook?canary HTTP/1.1", b"{}")
    assert {f"Host: 127.0.0.1:{server.port}", "X-Signature: é", "Content-Length: 2"} < set(lines)
    assert {"Accept-Encoding: identity", "Connection: close"} < set(lines)
    assert not any(line.lower().startswith(("cookie", "authorization", "referer")) for line in lines)


async def test_a_control_character_begins_no_other_header() -> None:
    async with scripted(lambda wire: wire.answer(OK)) as server:
        for headers in ({"A": "b\r\nC: d"}, {"A\r\nB": "c"}):
            with pytest.raises(ValueError, match="control character"):
                await called(server, headers=headers)
        assert server.connections == 0


@pytest.mark.parametrize(
    ("said", "status", "body"),
    [
        ([OK], 200, b"ok"),
        ([OK, OK], 200, b"ok"),
        ([OK, b"nonsense"], 200, b"ok"),
        ([b"HTTP/1.1 204 No\r\n\r\n"], 204, b""),
        ([b"HTTP/1.1 100 Continue\r\nA: 1\r\n\r\nHTTP/1.1 103 Hints\r\n\r\n", OK], 200, b"ok"),
        (
            [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\nT: 1\r\n\r\n"],
            200,
            b"abc",
        ),
        ([b"HTTP/1.1 200 OK\r\n\r\nuntil ", b"the end"], 200, b"until the end"),
        ([b"HTTP/1.0 404 No\r\nContent-Length: 1\r\n\r\nx"], 404, b"x"),
        ([b"HTTP/1.1 302 Found\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n"], 302, b""),
    ],
    ids=[
        "length",
        "two answers",
        "nonsense after",
        "empty",
        "informational",
        "chunked",
        "until closed",
        "1.0",
        "found",
    ],
)
async def test_every_form_of_answer_is_read(said: list[bytes], status: int, body: bytes) -> None:
    async with scripted(lambda wire: wire.answer(*said)) as server:
        answer = await called(server)
        assert (answer.status, answer.body, server.connections) == (status, body, 1)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (b"", "CONNECTION_LOST"),
        (b"HTTP/1.1 200 OK\r\nContent-Le", "CONNECTION_LOST"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok", "CONNECTION_LOST"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n", "CONNECTION_LOST"),
        (b"220 smtp.example.com ESMTP\r\n", "UNREADABLE"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "UNREADABLE"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "UNREADABLE"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "UNREADABLE"),
        (b"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\nabc", "UNREADABLE"),
        (b"HTTP/1.1 200 OK\r\nA: " + b"a" * 100_000, "UNREADABLE"),
        (b"HTTP/1.1 200 OK\r\n" + b"A: a\r\n" * 20_000, "UNREADABLE"),
    ],
    ids=lambda value: value[-30:].decode() if isinstance(value, bytes) else value,
)
async def test_a_broken_answer_says_that_the_request_may_have_left(said: bytes, reason: str) -> None:
    async with scripted(lambda wire: wire.answer(said)) as server:
        with pytest.raises(AnswerLost) as lost:
            await called(server)
    assert lost.value.reason == reason
    assert "canary" not in str(lost.value)


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("begin", "more"),
    [
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 1000),
        (CHUNKED + b"0\r\nA: ", b"b" * 20_000),
        (CHUNKED + b"30d40\r\n" + b"b" * 200_000 + b"\r\n0\r\nA: ", b"b" * 20_000),
        (CHUNKED + b"0\r\n", b"A: b\r\n" * 4000),
        (CHUNKED + b"1;a=", b"b" * 20_000),
        (CHUNKED, b"1\r\nb\r\n" * 4000),
    ],
    ids=["informational", "trailer", "trailer of a body", "trailers", "extension of a chunk", "tiny chunks"],
)
async def test_an_answer_that_never_ends_is_given_up(begin: bytes, more: bytes) -> None:
    written = 0

    async def endless(wire: Wire) -> None:
        nonlocal written
        await wire.answer(begin)
        while written < 32_000_000:  # the buffers of both sockets hold less
            await wire.write(more)
            written += len(more)
        await wire.until_closed()

    async with scripted(endless) as server:
        with pytest.raises(AnswerLost) as lost:
            await called(server, most=10_000_000)
    assert (lost.value.reason, written < 32_000_000) == ("UNREADABLE", True)


async def test_a_long_body_may_come_in_small_chunks() -> None:
    async with scripted(lambda wire: wire.answer(CHUNKED, b"8\r\n12345678\r\n" * 50_000, b"0\r\n\r\n")) as server:
        assert len((await called(server, most=1_000_000)).body) == 400_000


async def test_nothing_has_left_if_no_connection_is_made() -> None:
    outside = Outside(private_hosts={("127.0.0.1", 1)})
    with pytest.raises(Unreachable):
        await call(
            outside, "acme", outside.read_url("http://127.0.0.1:1/?canary"), method="GET", headers={}, timeout=LONG
        )
    refusing = Outside(resolve=lambda _host, _port: ["10.0.0.1"])
    url = refusing.read_url("https://files.example.com/?canary")
    with pytest.raises(AddressRefused):
        await call(refusing, "acme", url, method="GET", headers={}, timeout=LONG)


async def test_a_server_that_says_nothing_is_given_up() -> None:
    async def silent(wire: Wire) -> None:
        await wire.request()
        await wire.until_closed()

    async with scripted(silent) as server:
        with pytest.raises(AnswerLost, match="TIMEOUT"):
            await called(server, timeout=SHORT)
        await eventually(lambda: server.ended == 1)


async def test_no_more_of_a_body_is_read_than_was_asked_for() -> None:
    async def endless(wire: Wire) -> None:
        await wire.request()
        wire.say(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            await wire.write(b"a" * 10_000)

    async with scripted(endless) as server:
        assert (await called(server, most=1000)).body == b"a" * 1000
        assert (await called(server, most=LONGEST_PIECE * 3)).body == b"a" * LONGEST_PIECE * 3
        await eventually(lambda: server.ended == 2)


async def test_a_slow_reader_holds_the_server_up_and_pieces_stay_small() -> None:
    written = 0

    async def fast(wire: Wire) -> None:
        nonlocal written
        await wire.request()
        wire.say(b"HTTP/1.1 200 OK\r\nContent-Length: 64000000\r\n\r\n")
        for _ in range(64):
            await wire.write(b"a" * 1_000_000)
            written += 1_000_000

    async with scripted(fast) as server:
        outside = Outside(private_hosts={("127.0.0.1", server.port)})
        url = outside.read_url(server.url)
        async with exchange(outside, "acme", url, method="GET", headers={}, connect_timeout=LONG) as incoming:
            await eventually(lambda: written > 0)
            before = -1
            while before < written:  # until it stands still
                before = written
                for _ in range(100):
                    await asyncio.sleep(0.001)
            assert written < 32_000_000  # the buffers of both sockets, and 64 KiB
            async with aclosing(incoming.pieces()) as pieces:
                sizes = [len(piece) async for piece in pieces]
    assert (sum(sizes), max(sizes) <= LONGEST_PIECE) == (64_000_000, True)


async def test_a_tls_server_is_called_by_its_name(certificate: TLS) -> None:
    serving, trusting = certificate
    async with scripted(lambda wire: wire.answer(OK), tls=serving) as server:
        hosts = {("localhost", server.port)}
        outside = Outside(private_hosts=hosts, resolve=lambda _host, _port: ["127.0.0.1"], tls=trusting)
        url = outside.read_url(f"https://localhost:{server.port}/a")
        answer = await call(outside, "acme", url, method="GET", headers={}, timeout=LONG)
        assert answer.body == b"ok"
        assert f"Host: localhost:{server.port}".encode() in server.requests[0]


async def test_no_connection_outlives_a_cancelled_call() -> None:
    async with scripted(Wire.until_closed) as server, asyncio.TaskGroup() as group:
        calling = group.create_task(called(server))
        await eventually(lambda: server.connections == 1)
        calling.cancel()
        await eventually(lambda: server.ended == 1)
