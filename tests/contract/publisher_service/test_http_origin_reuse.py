"""Connections that are used again: each answer belongs to its request, and no request is sent twice but a GET."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from publisher_service.adapters.providers.http_origin import Answer, ConnectionLost, HttpOrigin, NotConnected
from testkit.eventually import eventually
from tests.contract.publisher_service.scripted_server import OK, ScriptedServer, Wire, scripted

LONG, SHORT = timedelta(seconds=20), timedelta(milliseconds=100)


@pytest.fixture
async def origins() -> AsyncIterator[list[HttpOrigin]]:
    made: list[HttpOrigin] = []
    yield made
    for each in made:
        await each.close()


def connected(origins: list[HttpOrigin], server: ScriptedServer, connections: int = 8) -> HttpOrigin:
    origins.append(HttpOrigin(server.url, connections=connections))
    return origins[-1]


async def posted(origin: HttpOrigin, body: bytes = b"", timeout: timedelta = LONG) -> Answer:
    return await origin.post("/", {}, body, timeout=timeout)


async def serving(wire: Wire) -> None:
    """Answers each request with its own body."""
    while True:
        body = (await wire.request()).partition(b"\r\n\r\n")[2]
        wire.say(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body), body)


async def test_a_connection_is_used_again(origins: list[HttpOrigin]) -> None:
    async with scripted(serving) as server:
        origin = connected(origins, server)
        assert [(await posted(origin, b"%d" % number)).body for number in range(3)] == [b"0", b"1", b"2"]
    assert server.connections == 1


async def test_a_connection_that_the_server_has_closed_is_not_used(origins: list[HttpOrigin]) -> None:
    async with scripted(lambda wire: wire.answer(OK)) as server:
        origin = connected(origins, server)
        for _ in range(3):
            await posted(origin)
            await eventually(lambda: origin._idle_connection() is None)
    assert len(server.requests) == 3


async def test_a_post_on_a_stale_connection_is_not_sent_again(origins: list[HttpOrigin]) -> None:
    async def closes_unanswered(wire: Wire) -> None:
        await wire.answer(OK)
        await wire.request()

    async with scripted(closes_unanswered, serving) as server:
        origin = connected(origins, server)
        await posted(origin)
        with pytest.raises(ConnectionLost) as lost:
            await posted(origin, b"once")
        assert lost.value.was_stale
    assert [request[-4:] for request in server.requests].count(b"once") == 1
    assert server.connections == 1


async def test_a_get_on_a_stale_connection_is_repeated_once(origins: list[HttpOrigin]) -> None:
    async def closes_unanswered(wire: Wire) -> None:
        await wire.answer(OK)
        await wire.request()

    async with scripted(closes_unanswered) as server:
        origin = connected(origins, server)
        await posted(origin)
        assert (await origin.get("/look", {}, timeout=LONG)).status == 200
    assert [b"/look" in request for request in server.requests] == [False, True, True]


async def test_a_get_is_not_repeated_once_the_server_has_answered_anything(origins: list[HttpOrigin]) -> None:
    async def closes_after_informing(wire: Wire) -> None:
        await wire.answer(OK)
        await wire.answer(b"HTTP/1.1 103 Hints\r\n\r\n")

    async with scripted(closes_after_informing, serving) as server:
        origin = connected(origins, server)
        await posted(origin)
        with pytest.raises(ConnectionLost) as lost:
            await origin.get("/look", {}, timeout=LONG)
    assert not lost.value.was_stale
    assert len(server.requests) == 2


async def test_a_get_on_a_new_connection_is_not_repeated(origins: list[HttpOrigin]) -> None:
    async def closes(wire: Wire) -> None:
        await wire.request()

    async with scripted(closes) as server:
        with pytest.raises(ConnectionLost):
            await connected(origins, server).get("/", {}, timeout=LONG)
    assert len(server.requests) == 1


async def test_a_late_answer_is_not_taken_for_the_next_one(origins: list[HttpOrigin]) -> None:
    late = asyncio.Event()

    async def answers_late(wire: Wire) -> None:
        await wire.request()
        await late.wait()
        wire.say(b"HTTP/1.1 201 Created\r\nContent-Length: 4\r\n\r\nlate")
        await wire.until_closed()

    async with scripted(answers_late, serving) as server:
        origin = connected(origins, server)
        with pytest.raises(TimeoutError):
            await posted(origin, b"slow", timeout=SHORT)
        late.set()
        assert (await posted(origin, b"next")).body == b"next"
    assert server.connections == 2


async def test_a_canceled_request_leaves_no_connection_behind(origins: list[HttpOrigin]) -> None:
    async def silent(wire: Wire) -> None:
        await wire.request()
        await wire.until_closed()

    async with scripted(silent, serving) as server, asyncio.TaskGroup() as group:
        origin = connected(origins, server, connections=1)
        sending = group.create_task(posted(origin, b"first"))
        await eventually(lambda: len(server.requests) == 1)
        sending.cancel()
        await eventually(lambda: server.ended == 1)
        assert (await posted(origin, b"next")).body == b"next"


@pytest.mark.parametrize("said", [b"HTTP/1.1 408 Idle\r\nContent-Length: 0\r\n\r\n", b"nonsense"])
async def test_what_nobody_asked_for_is_no_answer(origins: list[HttpOrigin], said: bytes) -> None:
    async def talks(wire: Wire) -> None:
        await wire.answer(OK)
        await asyncio.sleep(0.02)
        wire.say(said)
        await wire.until_closed()

    async with scripted(talks, serving) as server:
        origin = connected(origins, server)
        await posted(origin)
        await eventually(lambda: server.ended == 1)
        assert (await posted(origin, b"next")).body == b"next"


@pytest.mark.parametrize(
    "said",
    [
        OK + OK,
        OK + b"xyz",
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nContent-Length: 70000\r\n\r\n" + b"x" * 70_000,
    ],
    ids=["two answers", "more bytes", "closing", "HTTP/1.0", "too long"],
)
async def test_a_connection_is_not_used_after_such_an_answer(origins: list[HttpOrigin], said: bytes) -> None:
    async def answers(wire: Wire) -> None:
        await wire.answer(said)
        await wire.until_closed()

    async with scripted(answers, serving) as server:
        origin = connected(origins, server)
        assert (await posted(origin)).status == 200
        assert (await posted(origin, b"next")).body == b"next"
    assert server.connections == 2


async def test_an_answer_before_the_request_is_read_ends_the_connection(origins: list[HttpOrigin]) -> None:
    async def refuses(wire: Wire) -> None:
        wire.say(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
        await asyncio.Event().wait()

    async with scripted(refuses, serving) as server:
        origin = connected(origins, server)
        # More than the buffers of both sockets hold.
        assert (await posted(origin, b"x" * 40_000_000)).status == 413
        assert (await posted(origin, b"next")).body == b"next"


async def test_an_idle_connection_is_closed_in_time(origins: list[HttpOrigin]) -> None:
    async with scripted(serving) as server:
        origin = HttpOrigin(server.url, connections=8, kept_idle=SHORT)
        origins.append(origin)
        await posted(origin)
        await eventually(lambda: server.ended == 1)
        assert (await posted(origin, b"next")).body == b"next"


async def test_a_request_waits_for_a_place(origins: list[HttpOrigin]) -> None:
    answer = asyncio.Event()

    async def slow(wire: Wire) -> None:
        while True:
            await wire.request()
            await answer.wait()
            wire.say(OK)

    async with scripted(slow) as server, asyncio.TaskGroup() as group:
        origin = connected(origins, server, connections=1)
        first = group.create_task(posted(origin, b"first"))
        await eventually(lambda: len(server.requests) == 1)
        with pytest.raises(NotConnected, match="TimeoutError"):
            await posted(origin, timeout=SHORT)
        second = group.create_task(posted(origin, b"second"))
        answer.set()
        assert (await first, await second) == (Answer(200, {b"content-length": b"2"}, b"ok"),) * 2
    assert server.connections == 1
    assert [request[-6:] for request in server.requests] == [b"\nfirst", b"second"]
