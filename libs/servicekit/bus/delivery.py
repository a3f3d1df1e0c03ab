"""One delivery of one message, and what a consumer can answer."""

import json
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


class Delivery:
    """Answers go straight to the reply subject: unlike the client's own methods they may be repeated and corrected."""

    __slots__ = ("_connection", "_message")

    def __init__(self, connection: Client, message: Msg) -> None:
        self._connection = connection
        self._message = message

    @property
    def subject(self) -> str:
        return self._message.subject

    @property
    def payload(self) -> bytes:
        return self._message.data

    @property
    def sequence(self) -> int:
        return self._message.metadata.sequence.stream

    async def ack(self) -> None:
        await self._connection.publish(self._message.reply, b"+ACK")

    async def retry_in(self, delay: timedelta) -> None:
        nanoseconds = max(int(delay.total_seconds() * 1e9), 1)
        await self._connection.publish(self._message.reply, b"-NAK " + json.dumps({"delay": nanoseconds}).encode())

    async def in_progress(self) -> None:
        await self._connection.publish(self._message.reply, b"+WPI")

    async def terminate(self) -> None:
        await self._connection.publish(self._message.reply, b"+TERM")
