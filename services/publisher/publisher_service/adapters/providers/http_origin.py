"""An HTTP/1.1 client of one server, which says of every failure whether the request may have left.

It does what a post needs: one request per connection at a time, no redirects, no proxies, no cookies, and no request is
ever repeated but a GET. A post costs 23 us of CPU, where aiohttp took 70 (docs/adr/0038). httptools reads the answers.
"""

import asyncio
import re
import ssl
from collections import deque
from collections.abc import AsyncIterable, Awaitable, Mapping
from datetime import timedelta
from typing import Final, TypeVar, cast
from urllib.parse import urlsplit
from weakref import WeakSet

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from publisher_service.adapters.providers.addresses import Addresses
from servicekit.failpoints import declare, droppable, failpoint
from servicekit.record import record

_WRITTEN = declare("publisher.request.written")

# Servers close idle connections after a few seconds to a minute. A request on one that is being closed has an unknown
# outcome, so connections are not kept for long.
_KEPT_IDLE: Final = timedelta(seconds=15)
_LONGEST_ANSWER: Final = 64 * 1024
_LONGEST_HEAD: Final = 64 * 1024
# Room for what is around a body, even one whose bytes each come as a chunk.
_LONGEST_IN_ALL: Final = 1024 * 1024
_UNSAFE: Final = re.compile(r"[\x00-\x1f\x7f]")

T = TypeVar("T")


class NotConnected(Exception):
    """No connection was made: not one byte of the request has left."""


class ConnectionLost(Exception):
    """The connection broke, or its answer cannot be read: the request may have left."""

    # An idle connection was used again and broke without a byte of an answer: the server was just closing it.
    was_stale = False


@record(frozen=True, slots=True, kw_only=False)
class Answer:
    status: int
    # The names are in lower case. Of repeated headers the first counts.
    headers: Mapping[bytes, bytes]
    # Empty if the body is longer than any proper answer.
    body: bytes


class HttpOrigin:
    """The server of a URL, with `connections` at most; waiting for one of them is part of a request's time."""

    def __init__(
        self, url: str, *, connections: int, tls: ssl.SSLContext | None = None, kept_idle: timedelta = _KEPT_IDLE
    ) -> None:
        self.url = url.rstrip("/")
        parts = urlsplit(url)
        self._prefix = parts.path.rstrip("/")
        self._host = parts.hostname or ""
        self._tls = (tls or ssl.create_default_context()) if parts.scheme == "https" else None
        self._port = parts.port or (443 if self._tls else 80)
        self._addresses = Addresses(self._host, self._port)
        name = parts.netloc.rpartition("@")[2]
        self._common = f"Host: {name}\r\nUser-Agent: PostFlow\r\nAccept: */*\r\nAccept-Encoding: identity\r\n"
        self._kept_idle = kept_idle.total_seconds()
        self._places = asyncio.Semaphore(connections)
        self._idle: deque[_Connection] = deque()
        self._sweep: asyncio.TimerHandle | None = None
        self._open: WeakSet[_Connection] = WeakSet()
        droppable(self)

    def path_of(self, url: str) -> str | None:
        """Returns the path and query of a URL of this very server; None for any other."""
        try:
            parts = urlsplit(url)
            place = parts.scheme == "https", parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)
        except ValueError:
            return None
        is_here = place == (self._tls is not None, self._host, self._port) and "@" not in parts.netloc
        if not is_here or not parts.path.startswith(f"{self._prefix}/"):
            return None
        path = parts.path.removeprefix(self._prefix)
        return f"{path}?{parts.query}" if parts.query else path

    def drop_connections(self) -> None:
        """Breaks every open connection, as a network does."""
        for connection in tuple(self._open):
            connection.abort()

    async def get(self, path: str, headers: Mapping[str, str], *, timeout: timedelta) -> Answer:
        """Raises NotConnected, ConnectionLost or TimeoutError. If the connection was stale, a GET is repeated once."""
        deadline = asyncio.get_running_loop().time() + timeout.total_seconds()
        request = self._request("GET", path, headers)
        try:
            return await self._exchange(request, deadline)
        except ConnectionLost as error:
            if not error.was_stale:
                raise
        self._close_idle()
        return await self._exchange(request, deadline)

    async def post(self, path: str, headers: Mapping[str, str], body: bytes, *, timeout: timedelta) -> Answer:
        """Makes one request and never repeats it.

        Raises NotConnected if nothing of it has left; after ConnectionLost and TimeoutError it may have.
        """
        deadline = asyncio.get_running_loop().time() + timeout.total_seconds()
        head = self._request("POST", path, {**headers, "Content-Length": str(len(body))})
        return await self._exchange(head + body, deadline)

    async def upload(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        pieces: AsyncIterable[bytes],
        *,
        size: int,
        timeout: timedelta,
    ) -> Answer:
        """Makes one request with a body of `size` bytes that comes in pieces, as fast as the server takes them.

        Raises as `post` does. A server may answer before it has read all.
        """
        deadline = asyncio.get_running_loop().time() + timeout.total_seconds()
        head = self._request(method, path, {**headers, "Content-Length": str(size)})
        return await self._exchange(head, deadline, pieces)

    async def close(self) -> None:
        self._close_idle()
        self._addresses.close()
        await asyncio.sleep(0)  # a transport closes in the next turn of the loop

    def _request(self, method: str, path: str, headers: Mapping[str, str]) -> bytes:
        """Returns the head of a request. Refuses what would begin another header, or another request."""
        if _UNSAFE.search("".join((path, *headers.values()))):
            raise ValueError("a request has a control character in its path or headers")
        lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
        return f"{method} {self._prefix}{path} HTTP/1.1\r\n{self._common}{lines}\r\n".encode()

    async def _exchange(self, request: bytes, deadline: float, pieces: AsyncIterable[bytes] | None = None) -> Answer:
        if self._places.locked():
            await _in_time(self._places.acquire(), deadline)
        else:
            await self._places.acquire()
        try:
            connection = self._idle_connection() or await self._connect(deadline)
            answer = await connection.exchange(request, deadline, pieces)
            if connection.is_usable:
                self._keep(connection)
            else:
                connection.abort()
            return answer
        finally:
            self._places.release()

    def _idle_connection(self) -> "_Connection | None":
        """Takes the connection that was used last; those that are not needed grow old and are closed."""
        while self._idle:
            connection = self._idle.pop()
            if connection.is_usable:
                return connection
        return None

    async def _connect(self, deadline: float) -> "_Connection":
        addresses = await _in_time(self._addresses.get(), deadline)
        loop = asyncio.get_running_loop()
        for count, address in enumerate(addresses):
            # One that does not answer leaves time for the others.
            share = (deadline - loop.time()) / (len(addresses) - count)
            try:
                return await self._connect_to(address, loop.time() + share)
            except NotConnected:
                if address == addresses[-1]:
                    raise
        raise AssertionError("unreachable")

    async def _connect_to(self, address: str, deadline: float) -> "_Connection":
        connecting = asyncio.get_running_loop().create_connection(
            _Connection, address, self._port, ssl=self._tls, server_hostname=self._host if self._tls else None
        )
        _, connection = await _in_time(connecting, deadline)
        if not connection.is_usable:
            raise NotConnected("closed at once")
        self._open.add(connection)
        return connection

    def _keep(self, connection: "_Connection") -> None:
        self._idle.append(connection)
        if self._sweep is None:
            self._sweep = asyncio.get_running_loop().call_later(self._kept_idle, self._close_old)

    def _close_old(self) -> None:
        now = asyncio.get_running_loop().time()
        self._sweep = None
        while self._idle and self._idle[0].idle_since <= now - self._kept_idle:
            self._idle.popleft().close()
        if self._idle:
            again = self._idle[0].idle_since + self._kept_idle
            self._sweep = asyncio.get_running_loop().call_at(again, self._close_old)

    def _close_idle(self) -> None:
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None
        while self._idle:
            self._idle.pop().close()


async def _in_time(connecting: Awaitable[T], deadline: float) -> T:
    """Waits for a step before the request. A failure there has sent nothing."""
    try:
        async with asyncio.timeout_at(deadline):
            return await connecting
    except OSError as error:  # refused, no such host, TLS failed, or too late
        raise NotConnected(type(error).__name__) from None


class _Connection(asyncio.Protocol):
    """A connection, and the answer that it is waiting for. The parser calls the methods `on_...`."""

    def __init__(self) -> None:
        self.idle_since = 0.0
        self._loop = asyncio.get_running_loop()
        self._parser: HttpResponseParser | None = HttpResponseParser(self)
        self._transport: asyncio.Transport | None = None
        self._answer: asyncio.Future[Answer] | None = None
        self._was_used = False
        # The server closes the connection after this answer, or has sent what nobody asked for.
        self._is_spent = False
        self._received = 0
        # Unset while the server is slower than an upload.
        self._may_write = asyncio.Event()
        self._may_write.set()
        self._begin()

    @property
    def is_usable(self) -> bool:
        return self._transport is not None and not (self._is_spent or self._transport.is_closing())

    async def exchange(self, request: bytes, deadline: float, pieces: AsyncIterable[bytes] | None = None) -> Answer:
        """Sends a request and returns its answer. Raises ConnectionLost, or TimeoutError at the deadline."""
        assert self._transport is not None
        self._received = 0
        self._begin()
        self._answer = self._loop.create_future()
        alarm = self._loop.call_at(deadline, self._expire)
        self._transport.write(request)
        try:
            if pieces is not None:
                await self._write_all(pieces)
            await failpoint(_WRITTEN)
            return await self._answer
        except BaseException:
            self.abort()  # its answer may still come, and must not be taken for that of the next request
            raise
        finally:
            alarm.cancel()
            self._answer = None
            self._was_used = True
            self.idle_since = self._loop.time()

    async def _write_all(self, pieces: AsyncIterable[bytes]) -> None:
        """Writes while the server reads, until it answers or the connection breaks."""
        assert self._transport is not None
        assert self._answer is not None
        async for piece in pieces:
            while not self._may_write.is_set() and not self._answer.done():
                await self._until_writable_or_answered()
            if self._answer.done():
                self._is_spent = True
                return
            self._transport.write(piece)

    async def _until_writable_or_answered(self) -> None:
        assert self._answer is not None
        self._answer.add_done_callback(self._wake_writer)
        try:
            await self._may_write.wait()
        finally:
            self._answer.remove_done_callback(self._wake_writer)

    def _wake_writer(self, _answer: asyncio.Future[Answer]) -> None:
        self._may_write.set()

    def pause_writing(self) -> None:
        self._may_write.clear()

    def resume_writing(self) -> None:
        self._may_write.set()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is none by inheritance

    def data_received(self, data: bytes) -> None:
        if self._waiting() is None or self._parser is None:
            self._is_spent = True
            self.abort()
            return
        self._received += len(data)
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade):
            # If the answer was complete before that, it counts.
            self._lose("unreadable")
        if not self._has_head and self._received > _LONGEST_HEAD:
            self._lose("endless headers")
        if self._received > _LONGEST_IN_ALL:
            self._lose("endless answer")  # trailers, or what belongs to chunks; the body has a limit of its own

    def connection_lost(self, exc: Exception | None) -> None:
        if exc is None and self._has_head and self._ends_with_connection:
            self._finish()
        else:
            self._lose(type(exc).__name__ if exc else "closed by the server")
        self._parser = None  # it refers back to this connection

    def on_message_begin(self) -> None:
        if self._waiting() is None:
            self._is_spent = True  # an answer that nobody asked for

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._has_head:
            self._headers.setdefault(name.lower(), value)

    def on_headers_complete(self) -> None:
        assert self._parser is not None
        self._has_head, self._status = True, self._parser.get_status_code()
        coding = self._headers.get(b"transfer-encoding", b"").lower()
        self._ends_with_connection = b"content-length" not in self._headers and b"chunked" not in coding

    def on_body(self, data: bytes) -> None:
        self._size += len(data)
        if self._size <= _LONGEST_ANSWER:
            self._body.append(data)
        else:
            self._body.clear()
            self._is_spent = True
            self._finish()

    def on_message_complete(self) -> None:
        assert self._parser is not None
        if self._status < 200:
            self._begin()  # "100 Continue" and the like: the answer follows
            return
        if not self._parser.should_keep_alive():
            self._is_spent = True
        self._finish()

    def _begin(self) -> None:
        self._size = self._status = 0
        self._headers: dict[bytes, bytes] = {}
        self._body: list[bytes] = []
        self._has_head = self._ends_with_connection = False

    def _waiting(self) -> asyncio.Future[Answer] | None:
        return None if self._answer is None or self._answer.done() else self._answer

    def _finish(self) -> None:
        assert self._transport is not None
        if (answer := self._waiting()) is not None:
            # A server that answers before it has read the request may close without reading it.
            self._is_spent = self._is_spent or self._transport.get_write_buffer_size() > 0
            answer.set_result(Answer(self._status, self._headers, b"".join(self._body)))

    def _lose(self, why: str) -> None:
        self._is_spent = True
        if (answer := self._waiting()) is not None:
            error = ConnectionLost(why)
            error.was_stale = self._was_used and not self._received
            answer.set_exception(error)

    def _expire(self) -> None:
        if (answer := self._waiting()) is not None:
            answer.set_exception(TimeoutError("no answer in time"))
