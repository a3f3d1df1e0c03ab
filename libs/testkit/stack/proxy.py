"""A TCP proxy between a process and its server, which delays some messages, or all while it is frozen."""

import asyncio
import random
from collections.abc import Sequence
from contextlib import suppress
from typing import Self
from urllib.parse import urlsplit, urlunsplit

CHUNK = 1 << 16


class Proxy:
    """Forwards `proxy.url` to the server of `url` inside `async with Proxy(url) as proxy`.

    Delays data from a client that contains `marker` by one of `delays` (seconds); never delays answers.
    """

    def __init__(self, url: str, *, marker: bytes = b"BEGIN", chance: random.Random | None = None) -> None:
        self.delays: Sequence[float] = ()
        self._url = urlsplit(url)
        self._marker = marker
        self._chance = chance or random.Random()
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()

    @property
    def url(self) -> str:
        assert self._server is not None
        port = self._server.sockets[0].getsockname()[1]
        user, _, _ = self._url.netloc.rpartition("@")
        return urlunsplit(self._url._replace(netloc=f"{user}@127.0.0.1:{port}" if user else f"127.0.0.1:{port}"))

    def freeze(self) -> None:
        """Stops all data until `thaw`; connections stay open."""
        self._flowing.clear()

    def thaw(self) -> None:
        self._flowing.set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *exc: object) -> None:
        assert self._server is not None
        self._server.close()
        self.thaw()
        for writer in tuple(self._writers):
            writer.transport.abort()
        await self._server.wait_closed()

    async def _connected(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            server, to_server = await asyncio.open_connection(self._url.hostname, self._url.port)
            writers = {to_client, to_server}
            self._writers |= writers
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(self._carry(client, to_server, delayed=True))
                    group.create_task(self._carry(server, to_client, delayed=False))
            finally:
                self._writers -= writers
        to_client.close()

    async def _carry(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, *, delayed: bool) -> None:
        with suppress(OSError):
            while data := await source.read(CHUNK):
                if delayed and self.delays and self._marker in data:
                    await asyncio.sleep(self._chance.choice(self.delays))
                await self._flowing.wait()
                sink.write(data)
                await sink.drain()
        # Closing one direction closes both: neither PostgreSQL nor its clients half-close a connection.
        sink.close()
