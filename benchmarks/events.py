"""Reads from the streams what went through them, and waits until all of it has been applied."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

import nats
from nats.js import JetStreamContext

from devstack.stack import Stack
from postflow.bus.v1 import bus_pb2
from postflow.ops.v1 import operations_service_pb2
from postflow.ops.v1.operations_service_pb2_grpc import OperationsServiceStub

if TYPE_CHECKING:
    from postflow.ops.v1.operations_service_pb2_grpc import OperationsServiceAsyncStub
from servicekit.rpc import open_channel
from topology import EVENTS, PUBLISH

T = TypeVar("T")

_PERIOD = 0.05


class Events:
    def __init__(self, stream: JetStreamContext, services: Sequence["OperationsServiceAsyncStub"]) -> None:
        self._stream = stream
        self._services = services

    async def envelopes(self) -> int:
        """Returns how many messages EVENTS has ever had."""
        return await self._messages(EVENTS.name)

    async def events(self, after: int, last: int, *, context: str = "") -> int:
        """Returns the events in the messages of EVENTS up to the last, of one context or of all."""
        found = 0
        for sequence in range(after + 1, last + 1):
            message = await self._stream.get_msg(EVENTS.name, seq=sequence, direct=True)
            assert message.subject is not None
            if message.subject.startswith(f"events.{context}"):
                found += len(bus_pb2.Envelope.FromString(message.data or b"").events)
        return found

    async def commands(self) -> int:
        """Returns how many messages PUBLISH has ever had."""
        return await self._messages(PUBLISH.name)

    async def command_time(self, sequence: int) -> datetime:
        """Returns when PUBLISH has stored the command of this sequence."""
        message = await self._stream.get_msg(PUBLISH.name, seq=sequence)
        assert message.time is not None
        return message.time

    async def sent(self, commands: int, *, within: float) -> None:
        """Waits until PUBLISH has had so many messages."""
        async with asyncio.timeout(within):
            while await self.commands() < commands:  # noqa: ASYNC110 - the server tells no event
                await asyncio.sleep(_PERIOD)

    async def drained(self, commands: float, snapshot: Callable[[], T], *, within: float) -> T:
        """Waits until PUBLISH has had so many messages, none is left, and their events are applied."""
        async with asyncio.timeout(within):
            while not await self._taken(commands):  # noqa: ASYNC110 - the server tells no event
                await asyncio.sleep(_PERIOD)
        return await self.settled(snapshot, within=within)

    async def settled(self, snapshot: Callable[[], T], *, within: float = 60.0) -> T:
        """Waits until every event is published and applied, also those that the applying has caused.

        Returns a snapshot of that moment, taken before the services are asked whether it has come.
        """
        async with asyncio.timeout(within):
            while True:
                if await self._applied():
                    taken, envelopes = snapshot(), await self.envelopes()
                    # Twice, because the consumers may announce something after the outboxes were looked at.
                    if await self._quiet() and await self._quiet() and await self.envelopes() == envelopes:
                        return taken
                await asyncio.sleep(_PERIOD)

    async def _quiet(self) -> bool:
        return await self._published() and await self._applied()

    async def _taken(self, commands: float) -> bool:
        state = (await self._stream.stream_info(PUBLISH.name)).state
        return state.last_seq >= commands and state.messages == 0

    async def _applied(self) -> bool:
        consumers = await self._stream.consumers_info(EVENTS.name)
        return not any(consumer.num_pending or consumer.num_ack_pending for consumer in consumers)

    async def _published(self) -> bool:
        for service in self._services:
            stats = await service.GetStats(operations_service_pb2.GetStatsRequest())
            if stats.outbox.backlog:
                return False
        return True

    async def _messages(self, stream: str) -> int:
        return (await self._stream.stream_info(stream)).state.last_seq


@asynccontextmanager
async def opened(stack: Stack) -> AsyncIterator[Events]:
    client = await nats.connect(stack.nats_url)
    async with AsyncExitStack() as channels:
        channels.push_async_callback(client.close)
        services = [
            OperationsServiceStub(await channels.enter_async_context(open_channel(target)))
            for target in stack.targets.values()
        ]
        yield Events(client.jetstream(), services)
