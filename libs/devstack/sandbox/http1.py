"""HTTP/1.1 as far as the sandbox provider needs it: requests of a known length, answered in their order.

docs/adr/0034 compares its cost with aiohttp's.
"""

import asyncio
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import cast

LONGEST_HEAD = 16_384
LONGEST_BODY = 65_536
JSON = "application/json"
_PHRASES = {status.value: status.phrase for status in HTTPStatus}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    method: str
    path: str
    query: str
    headers: dict[str, str]
    """Headers by their names in lower case; the last of several wins."""
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class _Head:
    method: str
    path: str
    query: str
    headers: dict[str, str]
    length: int
    keep_alive: bool


class _Malformed(Exception):
    def __init__(self, status: int, problem: str) -> None:
        super().__init__(problem)
        self.status = status


class Connection(asyncio.Protocol):
    """Hands over one request at a time; the next waits for its answer, even if there never is one."""

    def __init__(
        self,
        serve: Callable[[Request, "Connection"], None],
        refuse: Callable[[int, str], bytes],
        open_ones: set["Connection"],
    ) -> None:
        self._serve = serve
        self._refuse = refuse
        self._open_ones = open_ones
        self._buffer = bytearray()
        self._head: _Head | None = None
        self._busy = False
        self._keep_alive = True
        self._transport: asyncio.Transport

    @property
    def is_local(self) -> bool:
        host = str(self._transport.get_extra_info("peername")[0])
        return host == "::1" or host.removeprefix("::ffff:").startswith("127.")

    def answer(self, status: int, body: bytes, *, content_type: str = JSON, headers: str = "") -> None:
        """Answers, unless the client has gone. `headers` are whole lines, each with its line end."""
        if self._transport.is_closing():
            return
        close = "" if self._keep_alive else "Connection: close\r\n"
        head = (
            f"HTTP/1.1 {status} {_PHRASES.get(status, '')}\r\n"
            f"Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\n{headers}{close}\r\n"
        )
        self._transport.write(head.encode("latin-1") + body)
        self._busy = False
        if not self._keep_alive:
            self._transport.close()
        elif self._buffer:
            self._advance()

    def reset(self) -> None:
        """Cuts the connection so that the client sees ECONNRESET, not an orderly end."""
        connection = cast(socket.socket | None, self._transport.get_extra_info("socket"))
        if connection is not None and not self._transport.is_closing():
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._open_ones.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._open_ones.discard(self)
        self._buffer.clear()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if not self._busy:
            self._advance()
        elif len(self._buffer) > LONGEST_HEAD + LONGEST_BODY:
            self._transport.abort()

    def _advance(self) -> None:
        try:
            request = self._next_request()
        except _Malformed as problem:
            self._keep_alive = False
            self.answer(problem.status, self._refuse(problem.status, str(problem)))
            return
        if request is not None:
            self._busy = True
            self._serve(request, self)

    def _next_request(self) -> Request | None:
        if self._head is None:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                if len(self._buffer) > LONGEST_HEAD:
                    raise _Malformed(431, "the head of the request is too long")
                return None
            self._head = _parse_head(self._buffer[:end].decode("latin-1"))
            del self._buffer[: end + 4]
            if (
                self._head.length
                and not self._buffer
                and self._head.headers.get("expect", "").lower() == "100-continue"
            ):
                self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        head = self._head
        if len(self._buffer) < head.length:
            return None
        self._head = None
        self._keep_alive = head.keep_alive
        body = bytes(self._buffer[: head.length])
        del self._buffer[: head.length]
        return Request(method=head.method, path=head.path, query=head.query, headers=head.headers, body=body)


def _parse_head(text: str) -> _Head:
    first, *lines = text.split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise _Malformed(400, "not an HTTP/1 request")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon:
            raise _Malformed(400, "a header line without a colon")
        headers[name.lower()] = value.strip()
    if "transfer-encoding" in headers:
        raise _Malformed(411, "give the Content-Length")
    length = headers.get("content-length", "0")
    if not (length.isascii() and length.isdigit()):
        raise _Malformed(400, "the Content-Length is not a number")
    if int(length) > LONGEST_BODY:
        raise _Malformed(413, f"the body is longer than {LONGEST_BODY} bytes")
    path, _, query = words[1].partition("?")
    default = "keep-alive" if words[2] == "HTTP/1.1" else "close"
    return _Head(
        method=words[0],
        path=path,
        query=query,
        headers=headers,
        length=int(length),
        keep_alive=headers.get("connection", default).lower() != "close",
    )
