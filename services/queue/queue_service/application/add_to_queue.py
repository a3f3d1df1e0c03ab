"""Giving a draft the next free weekly slot on each account, all accounts or none.

What Schedule knows is read first. Then, in one transaction and under the locks of the accounts, it is found out whether
that still holds and which of the times are free; if it does not, or takes more times, the call reads again. What has
not been announced here yet is learned from Schedule's answer.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum, auto
from typing import Protocol

from civil.zones import tzdata_version, zone_names
from queue_service.adapters.postgres import account_store, slot_store
from queue_service.application.slot_book import SlotBook
from queue_service.application.slot_mover import SlotMover
from queue_service.domain.account import AccountQueue
from queue_service.domain.allocation import Occupancy, days_of
from queue_service.domain.booking import book
from queue_service.domain.draft import Draft
from queue_service.domain.policy import Policy
from queue_service.domain.search import Search
from queue_service.domain.slot import HORIZON, SlotOrigin
from queue_service.domain.slot_times import SlotTimes
from servicekit.faults import Fault, NotFound, Refused, Unavailable
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.ledger_by_hand import RequestKey
from servicekit.pg.outbox import current_traceparent

_FEW_TIMES, _MANY_TIMES = 64, 1000
_FIRST_WINDOW, _LARGEST_WINDOW = 8, 512
_CHANGES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueOrder:
    organization_id: str
    draft_id: str
    social_account_ids: tuple[str, ...] = ()


class _Again(Enum):
    """Why nothing was booked yet."""

    MORE_TIMES = auto()
    CHANGED = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    draft: Draft
    times: Mapping[str, SlotTimes | Fault]


class Schedule(Protocol):
    async def slot_times(
        self,
        organization_id: str,
        queue: AccountQueue,
        *,
        start: datetime,
        horizon: datetime,
        count: int,
    ) -> SlotTimes: ...


class AddToQueue:
    def __init__(
        self,
        *,
        database: Database,
        clock: DatabaseClock,
        schedule: Schedule,
        slots: SlotBook,
        mover: SlotMover,
        policy: Policy,
    ) -> None:
        self._database = database
        self._clock = clock
        self._schedule = schedule
        self._slots = slots
        self._mover = mover
        self._policy = policy

    async def __call__(self, order: QueueOrder, key: RequestKey) -> bytes:
        count, changes = _FEW_TIMES, 0
        while changes < _CHANGES:
            result = await self._try(order, key, count)
            match result:
                case _Again.MORE_TIMES:
                    count = _MANY_TIMES
                case _Again.CHANGED:
                    changes += 1
                case answer:
                    return answer
        raise _changing()

    async def _try(self, order: QueueOrder, key: RequestKey, count: int) -> bytes | _Again:
        reading = await self._read(order, count)
        return await self._database.run(lambda tx: self._book(tx, order, key, reading))

    async def _read(self, order: QueueOrder, count: int) -> _Reading | Fault:
        """Faults are kept, not raised: a repeated request is answered with its first answer, whatever holds now."""
        wanted = await self._slots.find_draft(order.organization_id, order.draft_id, order.social_account_ids)
        if isinstance(wanted, Fault):
            return wanted
        accounts = wanted.accounts
        async with self._database.read() as connection:
            earliest = await self._clock.now(connection) + self._policy.notice
            known = await account_store.find_accounts(connection, order.organization_id, accounts)
        queues = {account: known.get(account, AccountQueue(social_account_id=account)) for account in accounts}
        async with asyncio.TaskGroup() as group:
            reads = {
                account: group.create_task(self._read_times(order.organization_id, queue, earliest, count))
                for account, queue in queues.items()
            }
        return _Reading(draft=wanted.draft, times={account: read.result() for account, read in reads.items()})

    async def _read_times(
        self, organization_id: str, queue: AccountQueue, earliest: datetime, count: int
    ) -> SlotTimes | Fault:
        try:
            return await self._schedule.slot_times(
                organization_id,
                queue,
                start=queue.frontier.next_open(earliest),
                horizon=earliest - self._policy.notice + HORIZON,
                count=count,
            )
        except NotFound:
            account = queue.social_account_id
            return _refused("NO_SCHEDULE", f"account {account} has no schedule", account)
        except Fault as fault:
            return fault

    async def _book(
        self, tx: Transaction, order: QueueOrder, key: RequestKey, reading: _Reading | Fault
    ) -> bytes | _Again:
        now = await self._clock.now(tx.connection)
        if answer := await self._slots.recall(tx, key, now):
            return answer
        if isinstance(reading, Fault):
            raise reading
        queues = await self._learn(tx, order.organization_id, reading.times, now)
        draft = await self._slots.lock_draft(tx, reading.draft, list(queues))
        searches = _begin(queues, reading.times, now + self._policy.notice)
        if isinstance(searches, _Again):
            return searches
        searches = await self._search(tx, order.organization_id, searches)
        if again := await self._give_up(tx, order.organization_id, searches):
            return again
        return await self._take(tx, key, draft, searches, now)

    async def _learn(
        self, tx: Transaction, organization_id: str, times: Mapping[str, SlotTimes | Fault], now: datetime
    ) -> Mapping[str, AccountQueue]:
        """The accounts, locked, with all that Schedule has told of them, and their slots where the law has them."""
        queues = await account_store.lock_accounts(tx.connection, organization_id, list(times))
        news = [
            read.schedule
            for account, read in times.items()
            if isinstance(read, SlotTimes) and read.schedule and queues[account].learns_from(read.schedule)
        ]
        if news:
            await account_store.save_schedules(tx.connection, news)
            queues = await account_store.lock_accounts(tx.connection, organization_id, list(times))
        return await self._mover.move_those_of(tx, organization_id, queues, now)

    async def _search(
        self, tx: Transaction, organization_id: str, searches: Mapping[str, Search]
    ) -> Mapping[str, Search]:
        size = _FIRST_WINDOW
        while windows := {account: search.window(size) for account, search in searches.items() if search.can_go_on}:
            occupancy = await _occupancy(tx, organization_id, searches, windows)
            searches = {
                account: search.looked(windows[account], occupancy[account]) if account in windows else search
                for account, search in searches.items()
            }
            size = min(size * 4, _LARGEST_WINDOW)
        return searches

    async def _give_up(self, tx: Transaction, organization_id: str, searches: Mapping[str, Search]) -> _Again | None:
        """When times are missing. What the search has learned is kept, so that it is never walked again."""
        unfinished = {account: search for account, search in searches.items() if search.found is None}
        if not unfinished:
            return None
        for account, search in unfinished.items():
            if search.is_exhausted:
                raise _refused(
                    "HORIZON_EXHAUSTED", f"account {account} has no free slot within {HORIZON.days} days", account
                )
        await account_store.save_frontiers(
            tx.connection, organization_id, {account: search.frontier for account, search in unfinished.items()}
        )
        if any(search.start < search.times.after for search in unfinished.values()):
            return _Again.CHANGED
        return _Again.MORE_TIMES

    async def _take(
        self, tx: Transaction, key: RequestKey, draft: Draft, searches: Mapping[str, Search], now: datetime
    ) -> bytes:
        slots = [
            book(
                draft,
                search.queue,
                search.found,
                slot_id=self._slots.new_id(),
                origin=SlotOrigin.QUEUE,
                late_limit=self._policy.late_limit,
                traceparent=current_traceparent(),
                now=now,
                # The instant is Schedule's, the time on the wall is ours: a newer process looks at it again.
                tzdata_version=min(search.times.tzdata_version, self._mover.release),
                nominal=search.times.nominal_of(search.found),
            )
            for search in searches.values()
            if search.found is not None
        ]
        answer = await self._slots.record(tx, key, slots, now)
        await account_store.save_frontiers(
            tx.connection, draft.organization_id, {account: search.taken() for account, search in searches.items()}
        )
        return answer


def _begin(
    queues: Mapping[str, AccountQueue], times: Mapping[str, SlotTimes | Fault], earliest: datetime
) -> Mapping[str, Search] | _Again:
    """Decides under the locks whether what was read without them still holds."""
    searches: dict[str, Search] = {}
    for account, read in times.items():
        queue = queues[account]
        if isinstance(read, Fault):
            raise read
        if read.schedule_version > queue.schedule_version:
            # The cap is not known: Schedule is of the release before, which only announces it.
            raise _changing()
        if read.schedule_version < queue.schedule_version:
            return _Again.CHANGED
        if not queue.enabled:
            raise _refused("SCHEDULE_DISABLED", f"the schedule of account {account} is switched off", account)
        if queue.time_zone not in zone_names():
            raise _zone_unknown(queue)
        searches[account] = Search(queue=queue, times=read, earliest=earliest, frontier=queue.frontier)
    return searches


async def _occupancy(
    tx: Transaction,
    organization_id: str,
    searches: Mapping[str, Search],
    windows: Mapping[str, Sequence[datetime]],
) -> Mapping[str, Occupancy]:
    wanted = [(account, time) for account, window in windows.items() for time in window]
    near = await slot_store.find_near(tx.connection, organization_id, wanted)
    filled = {account: {time for time in window if (account, time) in near} for account, window in windows.items()}
    capped = {account for account in windows if searches[account].queue.max_posts_per_day}
    days = [
        slot_store.Day(social_account_id=account, local_date=day, start=start, end=end)
        for account in capped
        for day, (start, end) in days_of(
            set(windows[account]) - filled[account], searches[account].queue.time_zone
        ).items()
    ]
    counted = await slot_store.count_slots(tx.connection, organization_id, days)
    return {
        account: Occupancy(
            filled=filled[account],
            counted={day: slots for (owner, day), slots in counted.items() if owner == account},
        )
        for account in windows
    }


def _changing() -> Unavailable:
    return Unavailable(
        "SCHEDULE_CHANGING", "the schedule of an account is changing; try again", retry_after=timedelta(seconds=1)
    )


def _zone_unknown(queue: AccountQueue) -> Refused:
    """As Schedule says it when it has the release, too."""
    account, zone, release = queue.social_account_id, queue.time_zone, tzdata_version()
    return Refused(
        "UNKNOWN_TIME_ZONE",
        f"the schedule of account {account} is in {zone!r}, which tzdata {release} does not have: give it another "
        "time_zone",
        metadata={"social_account_id": account, "time_zone": zone, "tzdata_version": release},
    )


def _refused(reason: str, message: str, social_account_id: str) -> Refused:
    return Refused(reason, message, metadata={"social_account_id": social_account_id})
