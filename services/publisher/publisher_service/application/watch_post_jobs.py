"""WatchPostJobs: sends post jobs as they change.

The watcher listens before it reads, so no change falls between. Events only say which jobs to read: a watcher that is
read slowly is sent the newest state of each job, and costs no more than the names of those that have changed.
"""

import time
from collections import defaultdict
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta

from opentelemetry import metrics

from publisher_service.adapters.postgres.jobs import list_jobs
from publisher_service.adapters.postgres.watching import find_jobs
from publisher_service.domain.post_job import JobFilter
from publisher_service.domain.watching import NOT_ENDED, Mark, News, Pending, Watched, advanced, changes
from servicekit.bus.feed import Feed, Listener, Point
from servicekit.faults import LimitReached
from servicekit.pg.database import Database
from servicekit.run.levels import Level
from servicekit.run.loops import wait

_meter = metrics.get_meter(__name__)
_watchers = _meter.create_gauge("postflow.publisher.watchers", description="Calls of WatchPostJobs that are in flight")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rhythm:
    """The number of jobs that are read at once, and when a message with only a token is sent, if that is newer."""

    page: int = 100
    idle: timedelta = timedelta(seconds=20)


class WatchPostJobs:
    def __init__(
        self, *, database: Database, feed: Feed, most_per_organization: int, rhythm: Rhythm | None = None
    ) -> None:
        self._database = database
        self._feed = feed
        self._most = most_per_organization
        self._rhythm = rhythm or Rhythm()
        self._counts: dict[str, int] = defaultdict(int)
        self._level = Level(_watchers)
        self._level.set(0)

    async def __call__(self, watched: Watched, since: Mark | None) -> AsyncGenerator[News, None]:
        """Yields the changes after the mark, or all jobs that have not ended, and the changes from now on."""
        after = Point(since.create_time, since.sequence) if since else None
        with self._admitted(watched.organization_id):
            async with self._feed.listening(watched.organization_id, watched.key, after) as listener:
                watch = _Watch(self._database, self._feed, self._rhythm, watched, listener, since)
                while True:
                    for news in await watch.next():
                        yield news

    @contextmanager
    def _admitted(self, organization: str) -> Iterator[None]:
        """Counts a watcher of the organization, which has a share of all watchers at most."""
        if self._counts[organization] >= self._most:
            message = f"the organization has {self._most} watchers on this server, its share of them"
            raise LimitReached("TOO_MANY_WATCHERS", message, retry_after=timedelta(seconds=1))
        self._counts[organization] += 1
        self._level.set(sum(self._counts.values()))
        try:
            yield
        finally:
            self._counts[organization] -= 1
            if not self._counts[organization]:
                del self._counts[organization]
            self._level.set(sum(self._counts.values()))


class _Watch:
    """One watcher: how far it has come, and what it still has to be sent."""

    def __init__(
        self,
        database: Database,
        feed: Feed,
        rhythm: Rhythm,
        watched: Watched,
        listener: Listener,
        since: Mark | None,
    ) -> None:
        self._database = database
        self._feed = feed
        self._rhythm = rhythm
        self._watched = watched
        self._listener = listener
        self._pending = Pending()
        # The events up to here are pending, or have been taken into account.
        self._point = self._take()
        self._mark = since or Mark(
            create_time=self._point.create_time, sequence=self._pending.safe(self._point.sequence)
        )
        self._sent, self._sent_at = self._mark.sequence, time.monotonic()

    async def next(self) -> list[News]:
        """Returns the next messages, or none after a while."""
        news = await self._changes() if self._mark.is_caught_up else await self._page()
        if news:
            self._mark = news[-1].mark
            self._sent, self._sent_at = self._mark.sequence, time.monotonic()
        return news

    async def _page(self) -> list[News]:
        """Returns the next of all jobs that have not ended."""
        wanted = JobFilter(
            organization_id=self._watched.organization_id,
            draft_id=self._watched.draft_id,
            social_account_id=self._watched.social_account_id,
            states=NOT_ENDED,
        )
        async with self._database.read() as connection:
            jobs = await list_jobs(connection, wanted, before=self._mark.after, limit=self._rhythm.page)
        news = [News(mark=replace(self._mark, after=(job.create_time, job.id)), job=job) for job in jobs]
        if len(jobs) < self._rhythm.page:
            news.append(News(mark=replace(self._mark, after=None, is_caught_up=True), is_caught_up=True))
        return news

    async def _changes(self) -> list[News]:
        self._point = self._take()
        while ids := self._pending.take(self._rhythm.page):
            async with self._database.read() as connection:
                jobs = await find_jobs(connection, self._watched.organization_id, ids)
            safe = self._pending.safe(self._point.sequence)
            if found := changes(filter(self._watched.takes, jobs), self._mark, safe=safe):
                return found
        self._mark = replace(
            advanced(self._mark, self._pending.safe(self._point.sequence)), create_time=self._point.create_time
        )
        now, idle_at = time.monotonic(), self._sent_at + self._rhythm.idle.total_seconds()
        if self._mark.sequence > self._sent and now >= idle_at:
            return [News(mark=self._mark)]
        await wait(self._listener.news, max(idle_at - now, 1.0))
        return []

    def _take(self) -> Point:
        """Takes what was heard; returns the point up to which that is all: nothing may be heard in between."""
        hints, point = self._listener.take(), self._feed.point
        self._pending.add({str(name): heard.first_sequence for name, heard in hints.items()})
        return point
