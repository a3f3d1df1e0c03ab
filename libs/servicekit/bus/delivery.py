"""One delivery of one message, and the answers of a consumer."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from nats.aio.client import Client
from nats.aio.msg import Msg


@dataclass(frozen=True, slots=True)
class Ack:
    """The effect is committed; the stream may forget the message."""


@dataclass(frozen=True, slots=True)
class RetryIn:
    """The message is redelivered after the delay."""

    delay: timedelta


@dataclass(frozen=True, slots=True)
class Park:
    """The message is never delivered again; it becomes a dead letter."""

    reason: str


Disposition = Ack | RetryIn | Park

_OLD_FORM = 9  # tokens


class Answers:
    """Sends answers to the stream; holds them back while it is unknown whether it is still the same stream.

    An answer names a sequence. Sent to a stream that was wiped or rolled back meanwhile, it would acknowledge another
    message that has this sequence now, which nobody would ever receive.
    """

    def __init__(self, connection: Client) -> None:
        self._connection = connection
        self._connections = connection.stats["reconnects"]
        self._waiting: dict[str, Callable[[], bytes]] = {}
        self._suspended = False
        self._void = False

    async def send(self, subject: str, answer: Callable[[], bytes], *, keep: bool = True) -> None:
        """Sends an answer, or keeps it for later if `keep`; a newer answer to the same delivery replaces a kept one."""
        if self._void:
            return
        if not self._suspended and self._is_connected():
            await self._connection.publish(subject, answer())
        elif keep:
            self._waiting[subject] = answer

    def suspend(self) -> None:
        self._suspended = True

    def void(self) -> None:
        """Drops all answers: it is another stream, in which those messages do not exist."""
        self._void = True
        self._waiting.clear()

    async def resume(self) -> None:
        """Sends the answers that were held back: it is the same stream."""
        self._connections, self._suspended = self._connection.stats["reconnects"], False
        waiting, self._waiting = self._waiting, {}
        for subject, answer in waiting.items():
            await self.send(subject, answer)

    def _is_connected(self) -> bool:
        return self._connection.is_connected and self._connection.stats["reconnects"] == self._connections


class Delivery:
    """A delivered message, whose answer may be repeated and corrected, unlike that of the client's own class."""

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
    """Reads the sequence from the reply subject, which has two forms: the newer names domain and account first."""
    tokens = reply.split(".")
    return int(tokens[5 if len(tokens) == _OLD_FORM else 7])


def still_pending(reply: str) -> int:
    """Reads how many messages the consumer has not been given yet."""
    tokens = reply.split(".")
    return int(tokens[8 if len(tokens) == _OLD_FORM else 10])


def _acknowledge() -> bytes:
    return b"+ACK"


def _now() -> float:
    return asyncio.get_running_loop().time()
