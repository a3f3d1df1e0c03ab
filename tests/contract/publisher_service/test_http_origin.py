"""A request on a new connection ends in an answer, or in an error that says whether it may have left."""

import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import timedelta

import pytest

from publisher_service.adapters.providers.http_origin import Answer, ConnectionLost, HttpOrigin, NotConnected
from tests.contract.publisher_service.scripted_server import OK, Wire, scripted

LONG, SHORT = timedelta(seconds=20), timedelta(milliseconds=100)
OriginAt = Callable[..., HttpOrigin]


@pytest.fixture
async def origin_at() -> AsyncIterator[OriginAt]:
    made: list[HttpOrigin] = []

    def origin(url: str, connections: int = 8, **settings: object) -> HttpOrigin:
        made.append(HttpOrigin(url, connections=connections, **settings))  # type: ignore[arg-type]
        return made[-1]

    yield origin
    for each in made:
        await each.close()


async def test_a_request_is_written_as_http(origin_at: OriginAt) -> None:
    async with scripted(lambda wire: wire.answer(OK)) as server:
        answer = await origin_at(f"{server.url}/base/").post("/posts?a=b", {"X-Key": "é"}, b"body", timeout=LONG)
    assert (answer.status, answer.body) == (200, b"ok")
    head, _, body = server.requests[0].partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    assert (first, body) == ("POST /base/posts?a=b HTTP/1.1", b"body")
    assert f"Host: 127.0.0.1:{server.port}" in lines
    assert {"X-Key: é", "Content-Length: 4", "Accept-Encoding: identity"} < set(lines)


@pytest.mark.parametrize(
    ("said", "status", "headers", "body"),
    [
        ([OK], 200, {b"content-length": b"2"}, b"ok"),
        ([b"HTTP/1.1 204 No\r\nA: 1\r\nA: 2\r\n\r\n"], 204, {b"a": b"1"}, b""),
        (
            [b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nA: 1\r\n\r\n", OK],
            200,
            {b"content-length": b"2"},
            b"ok",
        ),
        (
            [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\nT: 1\r\n\r\n"],
            200,
            {b"transfer-encoding": b"chunked"},
            b"abc",
        ),
        ([b"HTTP/1.1 200 OK\r\n\r\nuntil ", b"the end"], 200, {}, b"until the end"),
        ([b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx"], 200, {b"content-length": b"1"}, b"x"),
    ],
    ids=["length", "empty", "informational", "chunked", "until closed", "HTTP/1.0"],
)
async def test_every_form_of_answer_is_read(
    origin_at: OriginAt, said: list[bytes], status: int, headers: Mapping[bytes, bytes], body: bytes
) -> None:
    async with scripted(lambda wire: wire.answer(*said)) as server:
        answer = await origin_at(server.url).post("/", {}, b"", timeout=LONG)
    assert answer == Answer(status, headers, body)


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"HTTP/1.1 201 Cre",
        b"HTTP/1.1 201 Created\r\nContent-Length: 20\r\n\r\n{",
        b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{}",
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"SMTP here\r\n\r\n",
        b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 20_000,
    ],
    ids=["none", "status", "length", "chunks", "continue", "no HTTP", "upgrade", "two lengths", "endless headers"],
)
async def test_a_broken_answer_may_follow_a_request_that_left(origin_at: OriginAt, said: bytes) -> None:
    async with scripted(lambda wire: wire.answer(said)) as server:
        with pytest.raises(ConnectionLost) as lost:
            await origin_at(server.url).post("/", {}, b"once", timeout=LONG)
    assert not lost.value.was_stale
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("begin", "more"),
    [
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 1000),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: ", b"b" * 20_000),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;a=", b"b" * 20_000),
    ],
    ids=["informational", "trailer", "extension of a chunk"],
)
async def test_an_answer_that_never_ends_is_given_up(origin_at: OriginAt, begin: bytes, more: bytes) -> None:
    async def endless(wire: Wire) -> None:
        await wire.answer(begin)
        while True:
            await wire.write(more)

    async with scripted(endless) as server:
        with pytest.raises(ConnectionLost, match="endless"):
            await origin_at(server.url).post("/", {}, b"", timeout=LONG)


async def test_a_body_beyond_the_limit_is_empty(origin_at: OriginAt) -> None:
    async def endless(wire: Wire) -> None:
        await wire.answer(b"HTTP/1.1 403 No\r\nContent-Length: 99999999\r\n\r\n", b"x" * 70_000)
        await wire.until_closed()

    async with scripted(endless) as server:
        answer = await origin_at(server.url).post("/", {}, b"", timeout=LONG)
    assert (answer.status, answer.body) == (403, b"")


async def test_silence_after_the_request_is_a_timeout(origin_at: OriginAt) -> None:
    async def silent(wire: Wire) -> None:
        await wire.answer(b"HTTP/1.1 100 Continue\r\n\r\n")
        await wire.until_closed()

    async with scripted(silent) as server:
        with pytest.raises(TimeoutError):
            await origin_at(server.url).post("/", {}, b"", timeout=SHORT)
    assert server.connections == 1


async def test_a_server_that_refuses_connections_got_nothing(origin_at: OriginAt, free_port: Callable[[], int]) -> None:
    with pytest.raises(NotConnected, match="ConnectionRefusedError"):
        await origin_at(f"http://127.0.0.1:{free_port()}").post("/", {}, b"", timeout=LONG)


async def test_a_tls_server_that_never_shakes_hands_got_nothing(origin_at: OriginAt) -> None:
    async with scripted(lambda wire: wire.until_closed()) as server:
        with pytest.raises(NotConnected, match="TimeoutError"):
            await origin_at(f"https://127.0.0.1:{server.port}").post("/", {}, b"", timeout=SHORT)


async def test_a_server_without_tls_got_nothing(origin_at: OriginAt) -> None:
    async def plain(wire: Wire) -> None:
        wire.say(OK)
        await wire.until_closed()

    async with scripted(plain) as server:
        with pytest.raises(NotConnected):
            await origin_at(f"https://127.0.0.1:{server.port}").post("/", {}, b"", timeout=LONG)
    assert server.requests == []


async def test_tls_needs_a_certificate_that_is_trusted(
    origin_at: OriginAt, certificate: tuple[ssl.SSLContext, ssl.SSLContext]
) -> None:
    serving, trusting = certificate
    async with scripted(lambda wire: wire.answer(OK), tls=serving) as server:
        url = f"https://localhost:{server.port}"
        with pytest.raises(NotConnected, match="SSLCertVerificationError"):
            await origin_at(url).post("/", {}, b"", timeout=LONG)
        assert (await origin_at(url, tls=trusting).post("/", {}, b"", timeout=LONG)).body == b"ok"
        with pytest.raises(NotConnected, match="SSLCertVerificationError"):
            await origin_at(f"https://127.0.0.1:{server.port}", tls=trusting).post("/", {}, b"", timeout=LONG)
    assert len(server.requests) == 1


@pytest.mark.parametrize("bad", ["a\r\nX: y", "a\nb", "a\0"])
async def test_a_control_character_is_refused_before_anything_is_sent(origin_at: OriginAt, bad: str) -> None:
    async with scripted(lambda wire: wire.answer(OK)) as server:
        for path, headers in ((f"/{bad}", {}), ("/", {"Authorization": bad})):
            with pytest.raises(ValueError, match="control character"):
                await origin_at(server.url).post(path, headers, b"", timeout=LONG)
    assert server.connections == 0


async def test_proxies_of_the_environment_are_ignored(origin_at: OriginAt, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    async with scripted(lambda wire: wire.answer(OK)) as server:
        assert (await origin_at(server.url).get("/", {}, timeout=LONG)).status == 200
