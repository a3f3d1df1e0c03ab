"""One reader of a stream for any number of listeners in this process, each of which hears what concerns its key.

It passes on hints: names of things that have changed, with the greatest version that was announced of each. A
listener that falls behind holds each name once, so it costs no more than the things that it listens to.

The reader begins with the first listener and ends with the last. A listener that goes on after a point in the past
first gets the hints since then through a reader of its own.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Hashable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import NamedTuple, TypeVar

from nats.aio.client import Client
from nats.js.api import StreamInfo

from servicekit.bus.ordered import OrderedReader
from servicekit.faults import Fault, LimitReached, OutOfRange, Unavailable
from servicekit.run.loops import wait
from servicekit.run.transient import is_transient

_ROUNDING = timedelta(milliseconds=1)  # clients and releases round the creation time of a stream differently
_REPLAY_LIMIT = 30.0  # seconds
_LOOK_PERIOD = 0.25
_IDLE_PERIOD = 15.0
_MOST_REPLAYS = 4
_MOST_NAMES = 100_000

T = TypeVar("T")


class Point(NamedTuple):
    """A place in a stream: its creation time tells it from another one of the same name."""

    create_time: datetime
    sequence: int


class Hint(NamedTuple):
    """Something of a key has changed. `version` is 0 for things that are announced after they have been stored."""

    key: Hashable
    name: Hashable
    version: int


class Heard(NamedTuple):
    """The sequence of the first message about a thing that the listener has not taken yet, and its newest version."""

    first_sequence: int
    version: int


Decode = Callable[[bytes, Collection[str]], Iterable[Hint]]
"""Returns the hints of a message that concern these organizations."""


class Listener:
    """Holds the hints for a key until they are taken."""

    def __init__(self, key: Hashable) -> None:
        self.key = key
        self._hints: dict[Hashable, Heard] = {}
        self._fault: Fault | None = None
        self.news = asyncio.Event()
        """Set when there is something to take."""

    def take(self) -> Mapping[Hashable, Heard]:
        """Returns the hints since the last call. Raises a Fault once hints may be missing."""
        if self._fault:
            raise self._fault
        hints, self._hints = self._hints, {}
        self.news.clear()
        return hints

    def tell(self, sequence: int, name: Hashable, version: int) -> None:
        known = self._hints.get(name)
        first = min(known.first_sequence, sequence) if known else sequence
        self._hints[name] = Heard(first, max(known.version, version) if known else version)
        if len(self._hints) > _MOST_NAMES:
            self.fail(LimitReached("WATCH_TOO_SLOW", "the messages are not read as fast as they come; go on later"))
        self.news.set()

    def fail(self, fault: Fault) -> None:
        self._fault = self._fault or fault
        self._hints.clear()
        self.news.set()


class Feed:
    """Listens to the subjects of a stream. It is a background part of its process, which runs it."""

    def __init__(
        self,
        connection: Client,
        *,
        stream: str,
        subjects: Sequence[str],
        decode: Decode,
        most: int,
        longest: int = 100_000,
        patience: timedelta = timedelta(seconds=10),
    ) -> None:
        """`most` listeners are taken. `longest` is the most messages that are read again for one of them, and
        `patience` the time without the stream after which they hear of it.
        """
        self.name = f"feed of {stream}"
        self._connection = connection
        self._stream = stream
        self._subjects = subjects
        self._decode = decode
        self._most = most
        self._longest = longest
        self._patience = patience.total_seconds()
        self._listeners: dict[Hashable, set[Listener]] = defaultdict(set)
        self._organizations: dict[str, int] = defaultdict(int)
        self._count = 0
        self._wanted = asyncio.Event()
        self._opened = asyncio.Event()
        self._replays = asyncio.Semaphore(_MOST_REPLAYS)
        self._created: datetime | None = None
        self._position = 0

    @property
    def point(self) -> Point:
        """The last message of which every listener has heard."""
        assert self._created is not None
        return Point(self._created, self._position)

    @asynccontextmanager
    async def listening(self, organization: str, key: Hashable, after: Point | None) -> AsyncIterator[Listener]:
        """Yields a listener for what comes after the point, or from now on.

        Refuses with OUT_OF_RANGE if the stream does not have all messages since then.
        """
        if self._count >= self._most:
            raise LimitReached("TOO_MANY_WATCHERS", "this server has as many watchers as it takes", retry_after=_SECOND)
        listener = Listener(key)
        self._add(organization, listener)
        try:
            await self._until_open()
            if after is not None:
                await self._replay(organization, listener, after)
            yield listener
        finally:
            self._remove(organization, listener)

    async def run(self, stop: asyncio.Event) -> None:
        async with asyncio.TaskGroup() as group:
            stopped = group.create_task(self._wake_when(stop))
            while not stop.is_set():
                await wait(self._wanted, _IDLE_PERIOD)
                if self._count and not stop.is_set():
                    await self._serve(stop)
            stopped.cancel()

    async def _wake_when(self, stop: asyncio.Event) -> None:
        await stop.wait()
        self._wanted.set()

    async def _serve(self, stop: asyncio.Event) -> None:
        """Reads until nobody listens any more."""
        self._position, self._created = 0, None
        reader: OrderedReader | None = None
        lost_since, looked = time.monotonic(), time.monotonic()
        try:
            while self._count and not stop.is_set():
                try:
                    if reader is None or reader.is_broken:
                        reader = await self._reopen(reader)
                    elif time.monotonic() > looked + _IDLE_PERIOD:
                        looked = time.monotonic()
                        await self._advance(reader)
                    lost_since = time.monotonic()
                except Exception as error:
                    if not is_transient(error):
                        raise
                    self._opened.clear()
                    if time.monotonic() - lost_since > self._patience:
                        self._fail(_unreachable)
                await wait(stop, _LOOK_PERIOD)
        finally:
            self._opened.clear()
            if reader:
                await reader.close()

    async def _reopen(self, broken: OrderedReader | None) -> OrderedReader:
        if broken:
            await broken.close()
        info = await self._look()
        if self._created is None:
            self._created, self._position = info.created, info.state.last_seq
        elif not _has_all_since(info, self.point):
            self._fail(_expired)
            self._created, self._position = info.created, info.state.last_seq
        reader = OrderedReader(self._connection, self._stream, self._subjects, self._receive)
        try:
            await reader.open(self._position + 1)
        except BaseException:
            await reader.close()
            raise
        self._opened.set()
        return reader

    async def _advance(self, reader: OrderedReader) -> None:
        """Passes over messages of other subjects: a point that stays behind would be lost with the oldest messages."""
        before = (await self._look()).state.last_seq
        if await reader.is_idle():
            self._position = max(self._position, before)

    def _receive(self, sequence: int, payload: bytes) -> None:
        for hint in self._decode(payload, self._organizations.keys()):
            for listener in self._listeners.get(hint.key, ()):
                listener.tell(sequence, hint.name, hint.version)
        self._position = max(self._position, sequence)

    async def _replay(self, organization: str, listener: Listener, after: Point) -> None:
        """Tells the listener what was announced after the point, at least up to when it was added."""
        info = await self._asked(self._look())
        if not _has_all_since(info, after):
            raise _expired()
        if after.sequence >= info.state.last_seq:
            return

        def receive(sequence: int, payload: bytes) -> None:
            for hint in self._decode(payload, (organization,)):
                if hint.key == listener.key:
                    listener.tell(sequence, hint.name, hint.version)

        async with self._replays:
            reader = OrderedReader(self._connection, self._stream, self._subjects, receive)
            try:
                await self._asked(reader.open(after.sequence + 1))
                if reader.pending > self._longest:
                    raise _expired()
                async with asyncio.timeout(_REPLAY_LIMIT):
                    while not reader.is_done.is_set():
                        if reader.is_broken:
                            raise _unreachable()
                        await wait(reader.is_done, _LOOK_PERIOD)
            except TimeoutError:
                raise _unreachable() from None
            finally:
                await reader.close()

    async def _until_open(self) -> None:
        try:
            async with asyncio.timeout(self._patience):
                await self._opened.wait()
        except TimeoutError:
            raise _unreachable() from None

    async def _look(self) -> StreamInfo:
        return await self._connection.jetstream(timeout=2.0).stream_info(self._stream)

    @staticmethod
    async def _asked(asking: Awaitable[T]) -> T:
        try:
            return await asking
        except Exception as error:
            if not is_transient(error):
                raise
            raise _unreachable() from error

    def _add(self, organization: str, listener: Listener) -> None:
        self._listeners[listener.key].add(listener)
        self._organizations[organization] += 1
        self._count += 1
        self._wanted.set()

    def _remove(self, organization: str, listener: Listener) -> None:
        self._count -= 1
        if not self._count:
            self._wanted.clear()
        self._organizations[organization] -= 1
        if not self._organizations[organization]:
            del self._organizations[organization]
        self._listeners[listener.key].discard(listener)
        if not self._listeners[listener.key]:
            del self._listeners[listener.key]

    def _fail(self, fault: Callable[[], Fault]) -> None:
        for listeners in self._listeners.values():
            for listener in listeners:
                listener.fail(fault())


def _has_all_since(info: StreamInfo, point: Point) -> bool:
    """Returns whether it is the same stream, and has every message after the point."""
    is_same = info.created is not None and abs(info.created - point.create_time) <= _ROUNDING
    return is_same and info.state.first_seq - 1 <= point.sequence <= info.state.last_seq


def _unreachable() -> Unavailable:
    return Unavailable("STREAM_UNREACHABLE", "the stream of events is unreachable; try again", retry_after=_SECOND)


def _expired() -> OutOfRange:
    return OutOfRange("RESUME_TOKEN_EXPIRED", "what has changed since then is not kept any more; begin without a token")


_SECOND = timedelta(seconds=1)
