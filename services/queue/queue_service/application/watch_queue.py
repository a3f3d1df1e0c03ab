"""WatchQueue: sends the slots of an account as they change.

The watcher listens before it reads, so no change falls between. Events only say which slots to read: a watcher that is
read slowly is sent the newest state of each slot, and costs no more than the names of those that have changed.
"""

import time
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from queue_service.adapters.postgres import watching
from queue_service.adapters.postgres.queue_views import find_queue_view
from queue_service.adapters.postgres.slots import find_slots, list_slots
from queue_service.application.account_presence import AccountPresence
from queue_service.application.shared_hearing import SharedHearing
from queue_service.application.watched_queues import Pulse, WatchedQueues
from queue_service.domain.account import AccountKey
from queue_service.domain.listing import Filter, Position
from queue_service.domain.policy import MOST_LEAD
from queue_service.domain.slot import LIVE, QueueSlot
from queue_service.domain.watching import Announced, Change, Mark, News, Pending, QueueState, in_order
from servicekit.bus.feed import Feed, Listener, Point
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database
from servicekit.pg.session import Session
from servicekit.run.loops import wait

_FIRST_RETRY = 0.05
_LAST_RETRY = 2.0
_EARLY = timedelta(seconds=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rhythm:
    """The number of slots that are read at once, and when a watcher acts without a change."""

    page: int = 100
    # A message with only a token, if that is newer than the last one.
    idle: timedelta = timedelta(seconds=20)
    # Looks for dispatched slots when some may be.
    look: timedelta = timedelta(seconds=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    database: Database
    clock: DatabaseClock
    feed: Feed
    hearing: SharedHearing
    lead: timedelta
    rhythm: Rhythm


class WatchQueue:
    def __init__(
        self,
        *,
        database: Database,
        clock: DatabaseClock,
        feed: Feed,
        queues: WatchedQueues,
        hearing: SharedHearing,
        accounts: AccountPresence,
        lead: timedelta,
        rhythm: Rhythm | None = None,
    ) -> None:
        self._queues = queues
        self._accounts = accounts
        self._feed = feed
        self._parts = _Parts(
            database=database, clock=clock, feed=feed, hearing=hearing, lead=lead, rhythm=rhythm or Rhythm()
        )

    async def __call__(self, account: AccountKey, since: Mark | None) -> AsyncGenerator[News, None]:
        """Yields the news of an account after the mark, or all live slots and the news from now on."""
        with self._queues.admitted(account[0]):
            await self._accounts.require(account)
            after = Point(since.create_time, since.sequence) if since else None
            async with self._feed.listening(account[0], account, after) as listener:
                with self._queues.watched(account, listener.news) as pulse:
                    watch = _Watch(self._parts, account, listener, pulse)
                    await watch.begin(since)
                    while True:
                        for news in await watch.next():
                            yield news


class _Watch:
    """One watcher: how far it has come, and what it still has to be sent."""

    def __init__(self, parts: _Parts, account: AccountKey, listener: Listener, pulse: Pulse) -> None:
        self._parts = parts
        self._account = account
        self._listener = listener
        self._pulse = pulse
        self._pending = Pending()
        # The events up to here are pending, or have been taken into account.
        self._point: Point
        self._mark: Mark
        self._state: QueueState
        # The slots that were found not to be SCHEDULED when they were last looked for; those of them that have not been
        # sent yet; and the mark's `low` after these.
        self._dispatched: Mapping[str, tuple[str, int]] = {}
        self._unsent: list[str] = []
        self._next_low: datetime | None = None
        self._retry, self._retry_at = _FIRST_RETRY, 0.0
        self._has_changed, self._look_at = False, 0.0
        self._sent_at, self._sent = time.monotonic(), 0

    async def begin(self, since: Mark | None) -> None:
        self._take()
        async with self._parts.database.read_session() as session:
            self._state = await self._read_state(session)
            low = None if since else await watching.first_scheduled(session, self._account)
        self._mark = since or Mark(
            create_time=self._point.create_time,
            sequence=self._pending.safe(self._point.sequence),
            settings=self._state.settings,
            limits=self._state.limits,
            low=low,
            after=Position(),
        )
        self._sent = self._mark.sequence

    async def next(self) -> list[News]:
        """Returns the next messages, or none after a while."""
        if self._unsent:
            news = await self._send_dispatched()
        else:
            news = await self._page() if self._mark.after else await self._changes()
        if news:
            self._sent_at, self._sent = time.monotonic(), self._mark.sequence
        return news

    async def _page(self) -> list[News]:
        """Returns the next of all live slots."""
        organization_id, social_account_id = self._account
        wanted = Filter(organization_id=organization_id, social_account_id=social_account_id, states=tuple(LIVE))
        assert self._mark.after
        size = self._parts.rhythm.page
        async with self._parts.database.read() as connection:
            slots = await list_slots(connection, wanted, after=self._mark.after, size=size, dispatched_until=None)
        news = []
        for slot in slots:
            place = Position(schedule_time=slot.schedule_time, slot_id=slot.id)
            self._mark = replace(self._mark.with_slot(slot), after=place)
            news.append(News(mark=self._mark, slot=slot))
        if len(slots) < size:
            self._mark = replace(self._mark, after=None)
            news.append(News(mark=self._mark, is_caught_up=True))
        return news

    async def _changes(self) -> list[News]:
        self._take()
        now = time.monotonic()
        if self._pending.has_fresh:
            return await self._settle(tried=False)
        if self._pending.has_tried and now >= self._retry_at:
            return await self._settle(tried=True)
        if self._has_changed or now >= self._look_at:
            return await self._look()
        self._mark = self._advanced()
        if self._mark.sequence > self._sent and now >= self._idle_at:
            return [News(mark=self._mark)]
        await wait(self._listener.news, self._pause(now))
        return []

    def _take(self) -> None:
        """Takes what was heard, with the point up to which that is all: nothing may be heard in between."""
        hints, self._point = self._listener.take(), self._parts.feed.point
        for name, heard in hints.items():
            assert isinstance(name, Change)
            until, version = self._point.sequence, heard.version
            self._pending.add(name, first=heard.first_sequence, until=until, version=version)
        self._has_changed |= self._pulse.take()

    @property
    def _idle_at(self) -> float:
        return self._sent_at + self._parts.rhythm.idle.total_seconds()

    def _pause(self, now: float) -> float:
        ends = [self._look_at, max(self._idle_at, now + 1.0)]
        if self._pending.has_tried:
            ends.append(self._retry_at)
        return max(min(ends) - now, 0.0)

    async def _settle(self, *, tried: bool) -> list[News]:
        """Reads the slots of pending changes, and returns those that have them."""
        heard = await self._parts.hearing.heard() if tried else 0
        changes = self._pending.first(self._parts.rhythm.page, tried=tried)
        slots = await self._read(changes)
        stored = [each for each in changes if each.is_stored(slots, heard)]
        self._pending.settle(stored, [each for each in changes if each not in stored])
        self._put_off(progressed=bool(stored), tried=tried)
        ordered = in_order(stored, slots.values())
        news = []
        for place, (_, slot) in enumerate(ordered):
            later = ordered[place + 1][0] - 1 if place + 1 < len(ordered) else None
            self._mark = self._advanced(later).with_slot(slot)
            news.append(News(mark=self._mark, slot=slot))
        return news

    def _put_off(self, *, progressed: bool, tried: bool) -> None:
        if progressed or not tried:
            self._retry = _FIRST_RETRY
        self._retry_at = time.monotonic() + self._retry
        self._retry = min(2 * self._retry, _LAST_RETRY)

    async def _read(self, changes: list[Announced]) -> dict[str, QueueSlot]:
        """Reads the slots that changed, and other live slots of their drafts if Publisher announced it."""
        organization_id = self._account[0]
        ids = {each.change.slot_id for each in changes if each.change.slot_id}
        drafts = sorted({each.change.draft_id for each in changes if each.change.draft_id})
        async with self._parts.database.read_session() as session:
            if drafts:
                ids.update(await watching.live_slots_of(session, self._account, drafts))
            found = await find_slots(session.connection, sorted((organization_id, each) for each in ids))
        return {slot.id: slot for slot in found if slot.account == self._account}

    async def _look(self) -> list[News]:
        """Returns the queue if it has changed, and the slots that were dispatched."""
        self._has_changed = False
        news: list[News] = []
        async with self._parts.database.read_session() as session:
            now = await self._parts.clock.now(session.connection)
            self._state = await self._read_state(session)
            if self._state.settings != self._mark.settings:
                view = await find_queue_view(session, self._account, now=now)
                self._mark = replace(self._advanced(), settings=self._state.settings)
                news.append(News(mark=self._mark, view=view))
            await self._find_dispatched(session, now)
        if self._state.limits != self._mark.limits:
            self._mark = replace(self._mark, limits=self._state.limits, after=Position())
        self._look_at = time.monotonic() + self._until_look(now)
        return news

    async def _read_state(self, session: Session) -> QueueState:
        self._pulse.seen = (await watching.read_states(session, [self._account]))[self._account]
        return self._pulse.seen

    async def _find_dispatched(self, session: Session, now: datetime) -> None:
        """Finds slots that have left SCHEDULED without an event.

        The first SCHEDULED slot is read before the others, so a slot that is dispatched in between is found.
        """
        if self._mark.low is None:
            return
        low = await watching.first_scheduled(session, self._account)
        found = await watching.find_not_scheduled(session, self._account, self._mark.low, now + MOST_LEAD)
        self._unsent = [slot_id for slot_id, seen in found.items() if self._dispatched.get(slot_id) != seen]
        self._dispatched, self._next_low = found, low
        if not self._unsent:
            self._mark = replace(self._mark, low=low)

    async def _send_dispatched(self) -> list[News]:
        size = self._parts.rhythm.page
        now, self._unsent = self._unsent[:size], self._unsent[size:]
        async with self._parts.database.read_session() as session:
            slots = await find_slots(session.connection, [(self._account[0], slot_id) for slot_id in now])
        news = [News(mark=self._mark, slot=slot) for slot in slots]
        if not self._unsent:
            self._mark = replace(self._mark, low=self._next_low)
            news[-1] = replace(news[-1], mark=self._mark)
        return news

    def _until_look(self, now: datetime) -> float:
        """Returns the seconds until slots may have been dispatched that have not been looked for."""
        rhythm = self._parts.rhythm
        if self._mark.low is None or self._state.is_held_up:
            return rhythm.idle.total_seconds()
        ahead = self._mark.low - self._parts.lead - _EARLY - now
        return min(max(ahead, rhythm.look), rhythm.idle).total_seconds()

    def _advanced(self, until: int | None = None) -> Mark:
        """Returns the mark after all events that have been taken into account, up to `until` at most."""
        safe = self._pending.safe(self._point.sequence)
        return self._mark.advanced(self._point.create_time, safe if until is None else min(safe, until))
