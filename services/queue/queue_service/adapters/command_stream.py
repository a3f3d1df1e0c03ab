"""The stream of publish commands: how many more it should take, and sending them."""

import asyncio
import logging
from collections.abc import Sequence

from nats.aio.client import Client
from nats.js.errors import NotFoundError
from opentelemetry import metrics

from queue_service import wire
from queue_service.domain.emission import Emission
from servicekit.bus.publisher import Publisher
from servicekit.bus.streams import ensure_stream
from servicekit.run import is_transient
from topology import PUBLISH

_LOOK_PERIOD = 0.25
_LOOK_TIMEOUT = 2.0

_log = logging.getLogger(__name__)
_meter = metrics.get_meter("queue_service")
_sent = _meter.create_counter("postflow.queue.commands", description="Publish commands that the stream has stored")
_unstored = _meter.create_counter(
    "postflow.queue.commands.unstored", description="Publish commands that the stream did not acknowledge"
)
_outstanding = _meter.create_gauge(
    "postflow.queue.commands.outstanding", description="Publish commands in the stream, as the dispatcher knows it"
)


class CommandStream:
    def __init__(self, connection: Client, publisher: Publisher, *, limit: int, max_attempts: int) -> None:
        """`limit` is how many commands may be outstanding: a consumer that holds many more becomes slow."""
        self._connection = connection
        self._publisher = publisher
        self._limit = limit
        self._max_attempts = max_attempts
        self._held = 0
        self._looked = float("-inf")

    async def room(self) -> int:
        """How many commands fit; 0 also when the stream is away. Between two looks what was sent is counted."""
        if not self._connection.is_connected:
            return 0
        if asyncio.get_running_loop().time() - self._looked >= _LOOK_PERIOD:
            try:
                self._held = await self._look()
            except Exception as error:
                if not is_transient(error):
                    raise
                _log.warning("commands wait, the stream is away: %r", error)
                return 0
            self._looked = asyncio.get_running_loop().time()
            _outstanding.set(self._held)
        return max(self._limit - self._held, 0)

    async def send(self, emissions: Sequence[Emission]) -> list[Emission]:
        """Returns those that the stream does not say it has."""
        answers = await self._publisher.publish([wire.publish_command(each, self._max_attempts) for each in emissions])
        missing = [each for each, answer in zip(emissions, answers, strict=True) if answer is None]
        stored = len(emissions) - len(missing)
        self._held += stored
        _sent.add(stored)
        if missing:
            _unstored.add(len(missing))
        return missing

    async def _look(self) -> int:
        js = self._connection.jetstream(timeout=_LOOK_TIMEOUT)
        try:
            return (await js.stream_info(PUBLISH.name)).state.messages
        except NotFoundError:
            return (await ensure_stream(js, PUBLISH)).state.messages
