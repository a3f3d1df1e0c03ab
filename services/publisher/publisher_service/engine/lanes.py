"""The lane of a provider: its own senders, and what is claimed for them. One that hangs fills its own lane only."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

from opentelemetry import metrics

from publisher_service.domain.claim import Lane
from publisher_service.engine.work import Work

# Claimed and not settled: enough to keep every sender busy while batches are settled.
_MOST_OPEN = 500
# Not more is claimed than the senders begin within this time, as long as the last requests took: a post that waited
# here for most of its lease would go round once more.
_AHEAD = 2.0
_SHARE_OF_NEWEST = 0.2

_open = metrics.get_meter(__name__).create_gauge(
    "postflow.publish.open", description="Posts that are claimed and not settled, by provider"
)


class ProviderLane:
    def __init__(self, provider: str, *, senders: int, lease: timedelta) -> None:
        self._provider = provider
        self._senders = senders
        self._lease = lease
        self._waiting: asyncio.Queue[Work | None] = asyncio.Queue()
        self._open = 0
        self._seconds = 0.0
        self.show()

    @property
    def now(self) -> Lane:
        """What the provider may get at this moment."""
        return Lane(provider=self._provider, room=self._room(), lease=self._lease)

    def enter(self, work: Work) -> None:
        """Takes a claimed post, to be sent as soon as a sender is free."""
        self._open += 1
        self._waiting.put_nowait(work)

    def leave(self) -> None:
        """A post was settled."""
        self._open -= 1

    def show(self) -> None:
        _open.set(self._open, {"provider": self._provider})

    async def run(self, send: Callable[[Work], Awaitable[None]], seconds: Callable[[], float]) -> None:
        """Sends until `end`, so many at a time."""

        async def sender() -> None:
            while (work := await self._waiting.get()) is not None:
                begun = seconds()
                await send(work)
                self._seconds += _SHARE_OF_NEWEST * (seconds() - begun - self._seconds)

        async with asyncio.TaskGroup() as group:
            for _ in range(self._senders):
                group.create_task(sender())

    def end(self) -> None:
        """Lets the senders end once everything that has entered is sent."""
        for _ in range(self._senders):
            self._waiting.put_nowait(None)

    def _room(self) -> int:
        ahead = self._senders if self._seconds * _MOST_OPEN > _AHEAD * self._senders else _MOST_OPEN
        return max(min(_MOST_OPEN - self._open, ahead - self._waiting.qsize()), 0)
