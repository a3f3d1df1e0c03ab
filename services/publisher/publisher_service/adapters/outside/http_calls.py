"""HTTP requests to addresses that users named: one request per connection, no redirects, no cookies, no decompression.

Nothing of an answer is kept but what the caller asks for next: its body comes in pieces of at most 64 KiB, and while
the caller is busy the server waits.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from datetime import timedelta
from typing import Final

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from publisher_service.adapters.outside.network import Outside, abort
from publisher_service.adapters.outside.refusals import AnswerLost
from publisher_service.adapters.outside.urls import OutsideUrl
from servicekit.record import record

LONGEST_PIECE: Final = 64 * 1024
_LONGEST_HEAD: Final = 64 * 1024
_UNSAFE: Final = re.compile(r"[\x00-\x1f\x7f]")


@record(frozen=True, slots=True, kw_only=True)
class OutsideAnswer:
    """A whole answer, with as much of its body as was asked for."""

    status: int
    # The names are in lower case. Of repeated headers the first counts.
    headers: Mapping[bytes, bytes]
    body: bytes


async def call(
    outside: Outside,
    organization_id: str,
    url: OutsideUrl,
    *,
    method: str,
    headers: Mapping[str, str],
    body: bytes = b"",
    timeout: timedelta,
    most: int = LONGEST_PIECE,
) -> OutsideAnswer:
    """Makes one request, and reads `most` bytes of the answer's body at most.

    Raises AddressRefused or Unreachable if nothing of it has left. After AnswerLost it may have.
    """
    try:
        async with asyncio.timeout(timeout.total_seconds()):
            request = exchange(
                outside, organization_id, url, method=method, headers=headers, body=body, connect_timeout=timeout / 2
            )
            async with request as incoming:
                return OutsideAnswer(
                    status=incoming.status, headers=incoming.headers, body=await _beginning(incoming, most)
                )
    except TimeoutError:
        raise AnswerLost("TIMEOUT", f"{url.shown} did not answer in time") from None


@asynccontextmanager
async def exchange(
    outside: Outside,
    organization_id: str,
    url: OutsideUrl,
    *,
    method: str,
    headers: Mapping[str, str],
    body: bytes = b"",
    connect_timeout: timedelta,
) -> AsyncIterator["Incoming"]:
    """Sends a request, and yields the answer once its head is there. The caller bounds the time.

    Raises AddressRefused or Unreachable if nothing of the request has left, AnswerLost if it may have.
    """
    request = _head(method, url, headers, body) + body
    tls = outside.tls if url.scheme == "https" else None
    reader, writer = await outside.connect(organization_id, url.host, url.port, tls=tls, timeout=connect_timeout)
    try:
        incoming = Incoming(reader, url.shown)
        await _write(writer, request, url.shown)
        await incoming.read_head()
        yield incoming
    finally:
        abort(writer)


class Incoming:
    """An answer that is being received. The parser calls the methods `on_...`."""

    def __init__(self, reader: asyncio.StreamReader, shown: str) -> None:
        self._reader = reader
        self._shown = shown
        self._parser = HttpResponseParser(self)
        # How many bytes were body, and how many were not: of these, those that came since the last of the body.
        self._size = self._around = self._since_body = 0
        self._pieces: list[bytes] = []
        self._has_head = self._is_complete = self._ends_with_connection = False
        self.status = 0
        # The names are in lower case. Of repeated headers the first counts.
        self.headers: dict[bytes, bytes] = {}

    async def read_head(self) -> None:
        while not self._has_head:
            await self._receive()
        if self.headers.get(b"transfer-encoding", b"chunked").lower() != b"chunked":
            raise AnswerLost("UNREADABLE", f"{self._shown} answers in an encoding that we did not ask for")

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """Yields the body as it arrives. Raises AnswerLost if it ends early."""
        while self._pieces or not self._is_complete:
            if self._pieces:
                piece = b"".join(self._pieces)
                self._pieces.clear()
                yield piece
            else:
                await self._receive()

    async def _receive(self) -> None:
        try:
            data = await self._reader.read(LONGEST_PIECE)
        except OSError:
            raise AnswerLost("CONNECTION_LOST", f"{self._shown} broke the connection") from None
        if not data:
            self._end()
            return
        before = self._size
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade):
            if not self._is_complete:  # what follows a complete answer does not matter
                raise AnswerLost("UNREADABLE", f"{self._shown} answers with something that is no HTTP") from None
        if not self._is_complete:
            self._require_an_end(len(data), self._size - before)

    def _require_an_end(self, received: int, body: int) -> None:
        """Refuses endless headers, trailers and framing of chunks. Framing may be as long as the body.

        The parser copies what it has of a header again with each piece.
        """
        self._around += received - body
        self._since_body = 0 if body else self._since_body + received
        if self._since_body > _LONGEST_HEAD or self._around > _LONGEST_HEAD + self._size:
            raise AnswerLost("UNREADABLE", f"{self._shown} answers with endless headers")

    def _end(self) -> None:
        if not (self._has_head and self._ends_with_connection):
            raise AnswerLost("CONNECTION_LOST", f"{self._shown} broke the connection before its answer was complete")
        self._is_complete = True

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._has_head:
            self.headers.setdefault(name.lower(), value)

    def on_headers_complete(self) -> None:
        if not self._has_head:
            self.status = self._parser.get_status_code()
            self._has_head = self.status >= 200
            self._ends_with_connection = not self.headers.keys() & {b"content-length", b"transfer-encoding"}

    def on_body(self, data: bytes) -> None:
        if not self._is_complete:
            self._size += len(data)
            self._pieces.append(data)

    def on_message_complete(self) -> None:
        if self._has_head:
            self._is_complete = True
        else:
            self.headers.clear()  # "100 Continue" and the like: the answer follows


async def _write(writer: asyncio.StreamWriter, request: bytes, shown: str) -> None:
    try:
        writer.write(request)
        await writer.drain()
    except OSError:
        raise AnswerLost("CONNECTION_LOST", f"{shown} broke the connection") from None


async def _beginning(incoming: Incoming, most: int) -> bytes:
    body = b""
    async with aclosing(incoming.pieces()) as pieces:
        async for piece in pieces:
            body += piece
            if len(body) >= most:
                break
    return body[:most]


def _head(method: str, url: OutsideUrl, headers: Mapping[str, str], body: bytes) -> bytes:
    """Returns the head of a request. Refuses what would begin another header, or another request."""
    common = {
        "Host": url.authority,
        "User-Agent": "PostFlow",
        "Accept": "*/*",
        "Accept-Encoding": "identity",
        "Connection": "close",
    }
    if body or method != "GET":
        common["Content-Length"] = str(len(body))
    lines = {**common, **headers}
    if _UNSAFE.search("".join((method, url.target, *lines, *lines.values()))):
        raise ValueError("a request has a control character in its path or headers")
    text = "".join([f"{name}: {value}\r\n" for name, value in lines.items()])
    return f"{method} {url.target} HTTP/1.1\r\n{text}\r\n".encode()
