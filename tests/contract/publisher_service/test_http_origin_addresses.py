"""A host's name is looked up once for all that connect, and each of its addresses is tried."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any

import pytest

from publisher_service.adapters.providers.http_origin import HttpOrigin, NotConnected
from testkit.eventually import eventually
from tests.contract.publisher_service.scripted_server import OK, ScriptedServer, scripted

LONG, SHORT = timedelta(seconds=20), timedelta(milliseconds=100)


class Names:
    """Answers lookups of any name with `addresses`, once `answers` is set; without addresses as an unknown host."""

    def __init__(self) -> None:
        self.addresses = ["127.0.0.1"]
        self.answers = asyncio.Event()
        self.answers.set()
        self.lookups = 0

    async def getaddrinfo(self, host: str, port: int, **_: object) -> list[Any]:
        self.lookups += 1
        await self.answers.wait()
        if not self.addresses:
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in self.addresses]


@pytest.fixture
async def names(monkeypatch: pytest.MonkeyPatch) -> Names:
    names = Names()
    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", names.getaddrinfo)
    return names


@pytest.fixture
async def origin_of() -> AsyncIterator[Callable[[ScriptedServer], HttpOrigin]]:
    made: list[HttpOrigin] = []

    def origin(server: ScriptedServer) -> HttpOrigin:
        made.append(HttpOrigin(f"http://provider.test:{server.port}", connections=8))
        return made[-1]

    yield origin
    for each in made:
        await each.close()


OriginOf = Callable[[ScriptedServer], HttpOrigin]


async def test_connections_share_a_lookup(names: Names, origin_of: OriginOf) -> None:
    async with scripted(lambda wire: wire.answer(OK)) as server:
        origin = origin_of(server)
        for _ in range(2):
            async with asyncio.TaskGroup() as group:
                posts = [group.create_task(origin.post("/", {}, b"", timeout=LONG)) for _ in range(4)]
            assert [post.result().status for post in posts] == [200] * 4
            await eventually(lambda: server.ended == server.connections)
    assert names.lookups == 1
    assert f"Host: provider.test:{server.port}".encode() in server.requests[0]


async def test_the_next_address_is_tried(names: Names, origin_of: OriginOf) -> None:
    names.addresses = ["127.0.0.2", "127.0.0.1"]  # nothing listens on the first
    async with scripted(lambda wire: wire.answer(OK)) as server:
        assert (await origin_of(server).post("/", {}, b"", timeout=LONG)).status == 200


async def test_a_lookup_that_fails_is_not_kept(names: Names, origin_of: OriginOf) -> None:
    names.addresses = []
    async with scripted(lambda wire: wire.answer(OK)) as server:
        origin = origin_of(server)
        with pytest.raises(NotConnected, match="gaierror"):
            await origin.post("/", {}, b"", timeout=LONG)
        names.addresses = ["127.0.0.1"]
        assert (await origin.post("/", {}, b"", timeout=LONG)).status == 200
    assert names.lookups == 2


async def test_requests_that_have_no_more_time_leave_one_lookup(names: Names, origin_of: OriginOf) -> None:
    names.answers.clear()
    async with scripted(lambda wire: wire.answer(OK)) as server:
        origin = origin_of(server)
        for _ in range(2):
            with pytest.raises(NotConnected, match="TimeoutError"):
                await origin.post("/", {}, b"", timeout=SHORT)
        names.answers.set()
        assert (await origin.post("/", {}, b"", timeout=LONG)).status == 200
    assert names.lookups == 1
