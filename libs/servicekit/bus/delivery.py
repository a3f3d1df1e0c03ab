"""One delivery of one message, and what a consumer can answer."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from nats.aio.client import Client
from nats.aio.msg import Msg


@dataclass(frozen=True, slots=True)
class Ack:
    """Done: the effect is committed."""


@dataclass(frozen=True, slots=True)
class RetryIn:
    """Not now: the same message again after the delay."""

    delay: timedelta


@dataclass(frozen=True, slots=True)
class Park:
    """Never: into the dead letters with it."""

    reason: str


Disposition = Ack | RetryIn | Park

_SHORT = 9  # tokens of the older form


class Answers:
    """The way back to the stream for what it delivered; closed while nobody knows whether it is still the same stream.

    An answer names a sequence. Given to a stream that was wiped or rolled back meanwhile, it would acknowledge whatever
    message has that number now, and nobody would ever see that one.
    """

    def __init__(self, connection: Client) -> None:
        self._connection = connection
        self._connections = connection.stats["reconnects"]
        self._waiting: dict[str, Callable[[], bytes]] = {}
        self._suspended = False
        self._void = False

    async def send(self, subject: str, answer: Callable[[], bytes], *, keep: bool = True) -> None:
        """`keep`: what cannot be said now is said later, unless something else is said in its place before."""
        if self._void:
            return
        if not self._suspended and self._is_connected():
            await self._connection.publish(subject, answer())
        elif keep:
            self._waiting[subject] = answer

    def suspend(self) -> None:
        self._suspended = True

    def void(self) -> None:
        """It is another stream: those messages no longer exist."""
        self._void = True
        self._waiting.clear()

    async def resume(self) -> None:
        """It is the same stream: gives the answers that had to wait."""
        self._connections, self._suspended = self._connection.stats["reconnects"], False
        waiting, self._waiting = self._waiting, {}
        for subject, answer in waiting.items():
            await self.send(subject, answer)

    def _is_connected(self) -> bool:
        return self._connection.is_connected and self._connection.stats["reconnects"] == self._connections


class Delivery:
    """Answers may be repeated and corrected, unlike those of the client's own message."""

    __slots__ = ("_answers", "_message")

    def __init__(self, answers: Answers, message: Msg) -> None:
        self._answers = answers
        self._message = message

    @property
    def subject(self) -> str:
        return self._message.subject

    @property
    def payload(self) -> bytes:
        return self._message.data

    @property
    def sequence(self) -> int:
        return stream_sequence(self._message.reply)

    async def ack(self) -> None:
        await self._answers.send(self._message.reply, _acknowledge)

    async def retry_in(self, delay: timedelta) -> None:
        until = _now() + delay.total_seconds()
        await self._answers.send(
            self._message.reply, lambda: b'-NAK {"delay": %d}' % max(int((until - _now()) * 1e9), 1)
        )

    async def in_progress(self) -> None:
        await self._answers.send(self._message.reply, lambda: b"+WPI", keep=False)

    async def terminate(self) -> None:
        await self._answers.send(self._message.reply, lambda: b"+TERM")


def stream_sequence(reply: str) -> int:
    """From the subject to answer on, which has two forms: the newer one names domain and account first."""
    tokens = reply.split(".")
    return int(tokens[5 if len(tokens) == _SHORT else 7])


def still_pending(reply: str) -> int:
    """How many messages the consumer had not been given yet."""
    tokens = reply.split(".")
    return int(tokens[8 if len(tokens) == _SHORT else 10])


def _acknowledge() -> bytes:
    return b"+ACK"


def _now() -> float:
    return asyncio.get_running_loop().time()
