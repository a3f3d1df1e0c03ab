"""Watchers of the use cases among the fakes of `Queue`, on a real stream."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING

from nats.aio.client import Client

from postflow.bus.v1.bus_pb2 import Envelope, Event
from postflow.publisher.v1.publisher_events_pb2 import PostJobChanged
from queue_service.application.account_check import AccountCheck
from queue_service.application.account_presence import AccountPresence
from queue_service.application.shared_hearing import SharedHearing
from queue_service.application.watch_queue import Rhythm, WatchQueue
from queue_service.application.watched_queues import WatchedQueues
from queue_service.domain.queue_view import QueueView
from queue_service.domain.settlement import JobReport
from queue_service.domain.slot import QueueSlot
from queue_service.domain.stream import Hearing
from queue_service.domain.watching import Mark, News
from queue_service.wire import watching as wire
from servicekit.bus.feed import Feed
from servicekit.ids import Uuid7Source
from servicekit.messaging.envelopes import outgoing
from topology import EVENTS, events_subject

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from tests.usecase.queue_service.conftest import Queue

PAGE = ("acme", "page")


class FakeHearing:
    """Queue has applied the events up to here, as a test says."""

    def __init__(self) -> None:
        self.sequence = 0
        self.meanwhile: Callable[[], Awaitable[None]] | None = None

    async def hearing(self) -> Hearing:
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile:
            await meanwhile()
        return Hearing(self.sequence, self.sequence)


class Watcher:
    """A reader of a watch, with the newest of each slot."""

    def __init__(self, news: "AsyncGenerator[News, None]") -> None:
        self._news = news
        self.slots: dict[str, QueueSlot] = {}
        self.view: QueueView | None = None
        self.views = 0
        self.is_caught_up = False
        self.mark: Mark | None = None
        self.read_drafts: list[str] = []
        self.messages = 0

    async def read(self) -> News:
        async with asyncio.timeout(10):
            news = await anext(self._news)
        if news.slot:
            self.slots[news.slot.draft_id] = news.slot
            self.read_drafts.append(news.slot.draft_id)
        if news.view:
            self.view, self.views = news.view, self.views + 1
        self.is_caught_up |= news.is_caught_up
        self.mark = news.mark
        self.messages += 1
        return news

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(10):
            while not condition():
                await self.read()

    async def caught_up(self) -> None:
        await self.until(lambda: self.is_caught_up)

    async def until_state(self, draft_id: str, state: str) -> None:
        await self.until(lambda: draft_id in self.slots and self.slots[draft_id].state == state)


class Watching:
    """WatchQueue of one process. Nothing is polled: `look` is a step of its loop."""

    def __init__(self, queue: "Queue", connection: Client, rhythm: Rhythm, most: int = 10) -> None:
        self._queue = queue
        self._connection = connection
        self.hearing = FakeHearing()
        self.feed = Feed(connection, stream=EVENTS.name, subjects=wire.SUBJECTS, decode=wire.hints, most=most)
        self.queues = WatchedQueues(queue.database, most_per_organization=most // 2)
        self.watch_queue = WatchQueue(
            database=queue.database,
            clock=queue.clock,
            feed=self.feed,
            queues=self.queues,
            hearing=SharedHearing(self.hearing, period=0),
            accounts=AccountPresence(queue.database, AccountCheck(queue.accounts)),
            lead=queue.policy.lead,
            rhythm=rhythm,
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Watching"]:
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(self.feed.run(stop))
            try:
                yield self
            finally:
                stop.set()

    @asynccontextmanager
    async def watching(self, since: Mark | None = None, account: str = "page") -> AsyncIterator[Watcher]:
        async with aclosing(self.watch_queue(("acme", account), since)) as news:
            yield Watcher(news)

    async def relay(self) -> int:
        """Publishes what Queue has announced since the last call, all in one message; returns its sequence."""
        rows, self._queue.offered[:] = list(self._queue.offered), []
        message = outgoing(rows)
        return (await self._connection.jetstream().publish(message.subject, message.payload)).seq

    async def report(self, *reports: JobReport) -> int:
        """Publishes what Publisher announces, without Queue applying it; returns the sequence."""
        events = [_event(each) for each in reports]
        payload = Envelope(events=events).SerializeToString()
        return (await self._connection.jetstream().publish(events_subject("publisher", "post_job"), payload)).seq


def _event(report: JobReport) -> Event:
    changed = PostJobChanged(organization_id=report.organization_id)
    job = changed.post_job
    job.id, job.draft_id, job.version, job.slot_id = report.job_id, report.draft_id, report.version, report.slot_id
    job.target.social_account_id, job.target.channel = report.social_account_id, report.channel
    job.target.destination = report.destination
    return Event(
        id=Uuid7Source().new(),
        type=changed.DESCRIPTOR.full_name,
        organization_id=report.organization_id,
        payload=changed.SerializeToString(),
    )
