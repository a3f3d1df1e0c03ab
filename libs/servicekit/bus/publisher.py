"""Publishes with acknowledgements, pipelined: every message is acknowledged, and hundreds are in flight at once."""

import asyncio
import itertools
import json
import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import (
    BadHeaderError,
    BadSubjectError,
    MaxPayloadError,
)
from nats.errors import Error as NatsError

from servicekit.bus.connection import check_open
from servicekit.run.loops import wait

_log = logging.getLogger(__name__)

_WINDOW = 1000
_WINDOW_BYTES = 8 * 1024 * 1024
_LOOK_PERIOD = 0.1
_TURN = 100  # messages after which we yield to the loop, since the client never does


STREAM_FULL = "the stream is full"
"""A reason for a refusal. Room comes when messages are taken out, so an immediate retry is of no use."""

# The storage of the server or account is full. A stream's own limit shares its code with failures to store.
_NO_STORAGE = frozenset({10023, 10028, 10047})
_LIMITED, _LIMIT = 10077, "maximum "


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message to publish. The stream drops another one with the same id; without an id it may store a copy."""

    subject: str
    payload: bytes
    message_id: str = ""


@dataclass(frozen=True, slots=True)
class Stored:
    """The stream has the message under this sequence; `duplicate`: it had it before."""

    sequence: int
    duplicate: bool = False


class Answers(list[Stored | None]):
    """An answer per message, and the number of refusals by reason."""

    def __init__(self, answers: Iterable[Stored | None] = (), refusals: Mapping[str, int] | None = None) -> None:
        super().__init__(answers)
        self.refusals: Counter[str] = Counter(refusals or {})

    @property
    def full(self) -> int:
        """Returns how many messages were refused because the stream, or its storage, is full."""
        return self.refusals[STREAM_FULL]


class Publisher(Protocol):
    async def publish(self, messages: Sequence[Outgoing]) -> Sequence[Stored | None]: ...


class _Window:
    """Messages in flight together, each with its answer, which is None before it comes and after a refusal."""

    def __init__(self, messages: Sequence[Outgoing]) -> None:
        self.messages = messages
        self.answers: list[Stored | None] = [None] * len(messages)
        self.refusals: Counter[str] = Counter()
        self.open = set(range(len(messages)))
        self.done = asyncio.Event()

    def answer(self, index: int, answer: Stored | str) -> None:
        if index not in self.open:
            return
        self.open.discard(index)
        if isinstance(answer, str):
            self.refusals[answer] += 1
        else:
            self.answers[index] = answer
        if not self.open:
            self.done.set()


class PipelinedPublisher:
    """Returns an answer per message; None: the stream has not acknowledged it, and `refusals` may say why.

    If the connection comes back within the timeout, unanswered messages are sent again: of those without an id the
    stream may then have two.
    """

    def __init__(self, connection: Client, *, timeout: float = 5.0) -> None:
        self._connection = connection
        self._timeout = timeout
        self._inbox = ""
        self._tokens = itertools.count()
        self._waiting: dict[str, tuple[_Window, int]] = {}

    async def publish(self, messages: Sequence[Outgoing]) -> Answers:
        answers = Answers()
        for window in _windows(messages):
            await self._carry(window)
            answers += window.answers
            answers.refusals += window.refusals
            if window.open:  # the next ones would fare no better
                break
        answers += [None] * (len(messages) - len(answers))
        return answers

    async def _carry(self, window: _Window) -> None:
        tokens: list[str] = []
        deadline = _now() + self._timeout
        try:
            while window.open and _now() < deadline:
                check_open(self._connection)
                connections = -1
                if self._connection.is_connected:
                    connections = self._connection.stats["reconnects"]
                    await self._send(window, tokens)
                while not self._has_moved_on(window, connections) and _now() < deadline:
                    await wait(window.done, min(_LOOK_PERIOD, deadline - _now()))
        finally:
            for token in tokens:
                self._waiting.pop(token, None)
        for refusal, count in window.refusals.items():
            _log.warning("nats: %d of %d messages were refused: %s", count, len(window.messages), refusal)
        if window.open and self._connection.is_connected:
            _log.warning(
                "nats: %d of %d messages were not acknowledged in time", len(window.open), len(window.messages)
            )

    def _has_moved_on(self, window: _Window, connections: int) -> bool:
        """Returns whether everything is answered, or the connection over which it was sent is gone."""
        reconnected = self._connection.is_connected and self._connection.stats["reconnects"] != connections
        return reconnected or not window.open

    async def _send(self, window: _Window, tokens: list[str]) -> None:
        try:
            inbox = await self._subscribed()
            for index in sorted(window.open):
                message = window.messages[index]
                token = f"{next(self._tokens):x}"
                tokens.append(token)
                self._waiting[token] = (window, index)
                try:
                    await self._connection.publish(
                        message.subject,
                        message.payload,
                        reply=f"{inbox}.{token}",
                        headers={"Nats-Msg-Id": message.message_id} if message.message_id else None,
                    )
                except (BadSubjectError, BadHeaderError, MaxPayloadError) as error:
                    # An invalid message must not block those after it.
                    window.answer(index, f"{type(error).__name__} on {message.subject}")
                if index % _TURN == 0:
                    await asyncio.sleep(0)
        except NatsError as error:
            _log.info("nats: publishing is interrupted: %r", error)

    async def _subscribed(self) -> str:
        if not self._inbox:
            inbox = self._connection.new_inbox()
            await self._connection.subscribe(f"{inbox}.*", cb=self._answered)
            self._inbox = inbox
        return self._inbox

    async def _answered(self, message: Msg) -> None:
        waiting = self._waiting.pop(message.subject.rpartition(".")[2], None)
        if waiting is not None:
            window, index = waiting
            window.answer(index, _read(message))


def _now() -> float:
    return asyncio.get_running_loop().time()


def _windows(messages: Sequence[Outgoing]) -> Iterator[_Window]:
    start, size = 0, 0
    for end, message in enumerate(messages):
        if end - start == _WINDOW or (end > start and size + len(message.payload) > _WINDOW_BYTES):
            yield _Window(messages[start:end])
            start, size = end, 0
        size += len(message.payload)
    if start < len(messages):
        yield _Window(messages[start:])


def _read(message: Msg) -> Stored | str:
    if not message.data:
        return "there is no such stream"
    answer = json.loads(message.data)
    if error := answer.get("error"):
        code, text = error.get("err_code"), str(error.get("description"))
        return STREAM_FULL if code in _NO_STORAGE or (code == _LIMITED and text.startswith(_LIMIT)) else text
    return Stored(int(answer["seq"]), bool(answer.get("duplicate")))
