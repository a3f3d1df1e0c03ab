"""A server of raw bytes, which does with each connection what a test says."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from ssl import SSLContext

Serve = Callable[["Wire"], Awaitable[None]]

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Wire:
    """The server's end of a connection."""

    def __init__(self, server: "ScriptedServer", reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._server = server
        self._reader = reader
        self._writer = writer

    async def request(self) -> bytes:
        """Reads a request with its body, and notes it in `requests`."""
        head = await self._reader.readuntil(b"\r\n\r\n")
        lengths = [line.split()[1] for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")]
        whole = head + await self._reader.readexactly(int(lengths[0]) if lengths else 0)
        self._server.requests.append(whole)
        return whole

    async def line(self) -> bytes:
        return await self._reader.readline()

    def say(self, *pieces: bytes) -> None:
        self._writer.write(b"".join(pieces))

    async def write(self, piece: bytes) -> None:
        """Writes as fast as the client reads. Raises a ConnectionError once it has closed."""
        self._writer.write(piece)
        await self._writer.drain()

    async def answer(self, *pieces: bytes) -> None:
        await self.request()
        self.say(*pieces)

    async def until_closed(self) -> None:
        """Waits until the client has closed the connection."""
        try:
            while await self._reader.read(65536):
                pass
        except ConnectionError:
            pass


class ScriptedServer:
    def __init__(self) -> None:
        self.port = 0
        self.connections = 0
        self.ended = 0
        self.requests: list[bytes] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@asynccontextmanager
async def scripted(*scripts: Serve, tls: SSLContext | None = None) -> AsyncIterator[ScriptedServer]:
    """Serves the first connection by the first script, and so on; the last serves the others. Each ends by closing."""
    server = ScriptedServer()
    serving: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        serving.add(task)
        script = scripts[min(server.connections, len(scripts) - 1)]
        server.connections += 1
        try:
            await script(Wire(server, reader, writer))
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            server.ended += 1
            writer.close()
            serving.discard(task)

    listening = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    async with listening:
        server.port = listening.sockets[0].getsockname()[1]
        yield server
        for task in serving:
            task.cancel()
        if serving:
            await asyncio.wait(serving)
