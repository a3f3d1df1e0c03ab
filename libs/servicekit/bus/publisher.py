"""Publishing with acknowledgements, pipelined: every message is answered for, and hundreds are under way at once."""

import asyncio
import itertools
import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError

log = logging.getLogger(__name__)

_WINDOW = 1000


@dataclass(frozen=True, slots=True)
class Outgoing:
    subject: str
    payload: bytes
    message_id: str


@dataclass(frozen=True, slots=True)
class Stored:
    """The stream has it, under this sequence."""

    sequence: int


class Publisher(Protocol):
    async def publish(self, messages: Sequence[Outgoing]) -> Sequence[Stored | None]: ...


@dataclass(slots=True)
class _Batch:
    answers: list[Stored | None]
    missing: int
    done: asyncio.Event = field(default_factory=asyncio.Event)

    def answer(self, index: int, answer: Stored | None) -> None:
        self.answers[index] = answer
        self.missing -= 1
        if not self.missing:
            self.done.set()


class PipelinedPublisher:
    """`publish` returns one answer per message; None means that the stream did not say it has it, whatever the cause."""

    def __init__(self, connection: Client, *, timeout: float = 5.0) -> None:
        self._connection = connection
        self._timeout = timeout
        self._inbox = ""
        self._tokens = itertools.count()
        self._waiting: dict[str, tuple[_Batch, int]] = {}

    async def publish(self, messages: Sequence[Outgoing]) -> list[Stored | None]:
        if not self._inbox:
            self._inbox = self._connection.new_inbox()
            await self._connection.subscribe(f"{self._inbox}.*", cb=self._answered)
        answers: list[Stored | None] = []
        for start in range(0, len(messages), _WINDOW):
            answers += await self._publish_window(messages[start : start + _WINDOW])
        return answers

    async def _publish_window(self, messages: Sequence[Outgoing]) -> list[Stored | None]:
        batch = _Batch(answers=[None] * len(messages), missing=len(messages))
        tokens: list[str] = []
        try:
            async with asyncio.timeout(self._timeout):
                for index, message in enumerate(messages):
                    token = f"{next(self._tokens):x}"
                    tokens.append(token)
                    self._waiting[token] = (batch, index)
                    await self._connection.publish(
                        message.subject,
                        message.payload,
                        reply=f"{self._inbox}.{token}",
                        headers={"Nats-Msg-Id": message.message_id},
                    )
                await batch.done.wait()
        except TimeoutError:
            log.warning("nats: %d of %d messages were not acknowledged in time", batch.missing, len(messages))
        except NatsError as error:
            log.warning("nats: publishing stopped: %s", error)
        finally:
            for token in tokens:
                self._waiting.pop(token, None)
        return batch.answers

    async def _answered(self, message: Msg) -> None:
        waiting = self._waiting.pop(message.subject.rpartition(".")[2], None)
        if waiting is None:
            return
        batch, index = waiting
        batch.answer(index, _stored(message))


def _stored(message: Msg) -> Stored | None:
    if not message.data:  # no responders: there is no such stream
        return None
    answer = json.loads(message.data)
    if "error" in answer:
        log.warning(
            "nats: %s refused a message: %s", answer.get("stream", "the stream"), answer["error"].get("description")
        )
        return None
    return Stored(int(answer["seq"]))
