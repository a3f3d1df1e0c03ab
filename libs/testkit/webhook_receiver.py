"""A webhook on this loop: keeps every request that reaches it, and answers as a test says."""

import asyncio
import json
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self

from testkit.eventually import eventually


@dataclass(frozen=True, slots=True, kw_only=True)
class Posted:
    path: str
    # The names are in lower case.
    headers: Mapping[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    status: int
    headers: Mapping[str, str]


class WebhookReceiver:
    """`async with WebhookReceiver() as receiver:` listens on loopback at `receiver.url`."""

    def __init__(self) -> None:
        self.port = 0
        self.posted: list[Posted] = []
        # While it is cleared, requests are read and get no answer.
        self.awake = asyncio.Event()
        self.awake.set()
        self._answers: deque[_Answer | None] = deque()
        self._usual: _Answer | None = _Answer(status=204, headers={})
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *exc: object) -> None:
        assert self._server is not None
        self._server.close()
        self.awake.set()
        for writer in tuple(self._writers):
            writer.transport.abort()
        await self._server.wait_closed()
        await eventually(lambda: not self._writers, within=5)

    @property
    def place(self) -> tuple[str, int]:
        return "127.0.0.1", self.port

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    @property
    def ids(self) -> list[str]:
        return [each.id for each in self.posted]

    def answer(self, status: int, *, times: int = 1, **headers: str) -> None:
        """Gives this answer next; `retry_after="5"` is a header."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self._answers.extend([_Answer(status=status, headers=named)] * times)

    def usually(self, status: int | None) -> None:
        """Gives this answer from now on, after those that were asked for; None breaks the connection instead."""
        self._usual = None if status is None else _Answer(status=status, headers={})

    def lose(self, *, times: int = 1) -> None:
        """Breaks the connection next, once the request is there."""
        self._answers.extend([None] * times)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            with suppress(OSError, EOFError):
                self.posted.append(await _request(reader))
                await self.awake.wait()
                answer = self._answers.popleft() if self._answers else self._usual
                if answer is not None:
                    lines = "".join(f"{name}: {value}\r\n" for name, value in answer.headers.items())
                    head = f"HTTP/1.1 {answer.status} Said\r\nContent-Length: 0\r\n{lines}\r\n"
                    writer.write(head.encode())
                    await writer.drain()
        finally:
            writer.close()
            self._writers.discard(writer)


async def _request(reader: asyncio.StreamReader) -> Posted:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:-2])}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Posted(path=head[0].split(" ")[1], headers=headers, body=body)
