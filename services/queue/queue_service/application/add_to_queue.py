"""Giving a draft the next free weekly slot on each account: on all accounts or on none.

The call first reads from Schedule and Drafts. Then one transaction, under the locks of the accounts, checks whether
what it read is still current and which times are free. If it is not current, or the search needs more times, the call
reads again. Schedule's answer also brings changes that have not been announced here yet.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum, auto
from typing import Protocol

from civil.zones import tzdata_version, zone_names
from queue_service.adapters.postgres.accounts import (
    find_queues,
    lock_or_add_queues,
    save_frontiers,
    save_schedules,
)
from queue_service.adapters.postgres.drafts import lock_drafts
from queue_service.application.draft_finder import DraftFinder
from queue_service.application.slot_mover import SlotMover
from queue_service.application.slot_recorder import SlotRecorder
from queue_service.application.time_search import search_times
from queue_service.domain.account import AccountKey, AccountQueue
from queue_service.domain.booking import Place
from queue_service.domain.draft import Draft
from queue_service.domain.policy import Policy
from queue_service.domain.search import Search
from queue_service.domain.slot import HORIZON, QueueSlot, SlotOrigin
from queue_service.domain.slot_times import SlotTimes
from servicekit.faults import Fault, NotFound, Refused, Unavailable
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.ledger import Answer, Call, RequestLedger
from servicekit.pg.outbox import current_traceparent

_FEW_TIMES, _MANY_TIMES = 64, 1000
_CHANGES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueOrder:
    organization_id: str
    draft_id: str
    social_account_ids: tuple[str, ...] = ()


class _Again(Enum):
    """The reason why a call has to read again."""

    MORE_TIMES = auto()
    CHANGED = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    draft: Draft
    times: Mapping[AccountKey, SlotTimes | Fault]


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
        ledger: RequestLedger,
        find_draft: DraftFinder,
        schedule: Schedule,
        mover: SlotMover,
        record: SlotRecorder,
        policy: Policy,
    ) -> None:
        self._database = database
        self._clock = clock
        self._ledger = ledger
        self._find_draft = find_draft
        self._schedule = schedule
        self._mover = mover
        self._record = record
        self._policy = policy

    async def __call__(self, call: Call[Sequence[QueueSlot], Answer], order: QueueOrder) -> Answer:
        count, changes = _FEW_TIMES, 0
        while changes < _CHANGES:
            match await self._read_and_book(call, order, count):
                case _Again.MORE_TIMES:
                    count = _MANY_TIMES
                case _Again.CHANGED:
                    changes += 1
                case answer:
                    return answer
        raise _changing()

    async def _read_and_book(
        self, call: Call[Sequence[QueueSlot], Answer], order: QueueOrder, count: int
    ) -> Answer | _Again:
        reading = await self._read(order, count)
        return await self._database.run(lambda tx: self._book(tx, call, order, reading))

    async def _read(self, order: QueueOrder, count: int) -> _Reading | Fault:
        """Returns faults instead of raising them: a repeated request gets its first answer, even if this fails now."""
        found = await self._find_draft(order.organization_id, order.draft_id, order.social_account_ids)
        if isinstance(found, Fault):
            return found
        async with self._database.read_session() as session:
            now = await self._clock.now(session.connection)
            accounts = [(order.organization_id, account) for account in found.accounts]
            known = await find_queues(session, accounts)
        async with asyncio.TaskGroup() as group:
            reads = {
                account: group.create_task(
                    self._read_times(
                        order.organization_id,
                        known.get(account, AccountQueue(social_account_id=account[1])),
                        now,
                        count,
                    )
                )
                for account in accounts
            }
        return _Reading(draft=found.draft, times={account: read.result() for account, read in reads.items()})

    async def _read_times(
        self, organization_id: str, queue: AccountQueue, now: datetime, count: int
    ) -> SlotTimes | Fault:
        try:
            return await self._schedule.slot_times(
                organization_id,
                queue,
                start=queue.frontier.next_open(now + self._policy.notice),
                horizon=now + HORIZON,
                count=count,
            )
        except NotFound:
            account = queue.social_account_id
            return _refused("NO_SCHEDULE", f"account {account} has no schedule", account)
        except Fault as fault:
            return fault

    async def _book(
        self,
        tx: Transaction,
        call: Call[Sequence[QueueSlot], Answer],
        order: QueueOrder,
        reading: _Reading | Fault,
    ) -> Answer | _Again:
        now = await self._clock.now(tx.connection)
        past = await self._ledger.recall(tx, call, now=now)
        if past is not None:
            return past
        if isinstance(reading, Fault):
            raise reading
        queues = await self._lock_and_update(tx, reading.times, now)
        drafts = await lock_drafts(tx, [reading.draft])
        draft = drafts[reading.draft.key].unpublished(reading.draft, [account for _, account in reading.times])
        searches = _begin(queues, reading.times, now + self._policy.notice)
        if isinstance(searches, _Again):
            return searches
        searches = await search_times(tx, searches)
        if again := await _give_up(tx, searches):
            return again
        places = [self._place(search) for search in searches.values()]
        slots = self._record.book(draft, places, traceparent=current_traceparent(), now=now)
        await self._record.store(tx, slots, now)
        await save_frontiers(tx, {account: search.taken() for account, search in searches.items()})
        return await self._ledger.answer(tx, call, slots)

    async def _lock_and_update(
        self, tx: Transaction, times: Mapping[AccountKey, SlotTimes | Fault], now: datetime
    ) -> Mapping[AccountKey, AccountQueue]:
        """Locks the accounts, saves their schedules from Schedule's answers, and moves their outdated slots."""
        queues = await lock_or_add_queues(tx, times)
        newer = [
            read.schedule
            for account, read in times.items()
            if isinstance(read, SlotTimes) and read.schedule and queues[account].learns_from(read.schedule)
        ]
        if newer:
            await save_schedules(tx.connection, newer)
            queues = await lock_or_add_queues(tx, times)
        return await self._mover.bring_up_to_date(tx, queues, now)

    def _place(self, search: Search) -> Place:
        assert search.found is not None
        return Place(
            queue=search.queue,
            schedule_time=search.found,
            origin=SlotOrigin.QUEUE,
            nominal=search.times.nominal_of(search.found),
            # Schedule computed the instant, we compute the local time. The slot gets the older of the two releases, so
            # that a process with a newer one checks it.
            tzdata_version=min(search.times.tzdata_version, self._mover.release),
        )


def _begin(
    queues: Mapping[AccountKey, AccountQueue], times: Mapping[AccountKey, SlotTimes | Fault], earliest: datetime
) -> Mapping[AccountKey, Search] | _Again:
    """Checks under the locks whether what was read before locking is still current."""
    searches: dict[AccountKey, Search] = {}
    for key, read in times.items():
        queue = queues[key]
        if isinstance(read, Fault):
            raise read
        if read.schedule_version > queue.schedule_version:
            # The cap is unknown: Schedule runs the previous release, which announces the cap by events only.
            raise _changing()
        if read.schedule_version < queue.schedule_version:
            return _Again.CHANGED
        if not queue.enabled:
            account = queue.social_account_id
            raise _refused("SCHEDULE_DISABLED", f"the schedule of account {account} is disabled", account)
        if queue.time_zone not in zone_names():
            raise _zone_unknown(queue)
        searches[key] = Search(queue=queue, times=read, earliest=earliest, frontier=queue.frontier)
    return searches


async def _give_up(tx: Transaction, searches: Mapping[AccountKey, Search]) -> _Again | None:
    """Returns why the call has to read again, if a search has found nothing.

    Stores the frontiers of those searches, so that no call searches the same times again.
    """
    unfinished = {account: search for account, search in searches.items() if search.found is None}
    if not unfinished:
        return None
    for (_, account), search in unfinished.items():
        if search.is_exhausted:
            raise _refused(
                "HORIZON_EXHAUSTED", f"account {account} has no free slot within {HORIZON.days} days", account
            )
    await save_frontiers(tx, {account: search.frontier for account, search in unfinished.items()})
    if any(search.start < search.times.after for search in unfinished.values()):
        return _Again.CHANGED
    return _Again.MORE_TIMES


def _changing() -> Unavailable:
    return Unavailable(
        "SCHEDULE_CHANGING", "the schedule of an account is changing; try again", retry_after=timedelta(seconds=1)
    )


def _zone_unknown(queue: AccountQueue) -> Refused:
    """Refuses like Schedule, which does so once it has this tzdata release, too."""
    account, zone, release = queue.social_account_id, queue.time_zone, tzdata_version()
    return Refused(
        "UNKNOWN_TIME_ZONE",
        f"the schedule of account {account} is in {zone!r}, which tzdata {release} does not have; choose another "
        "time_zone",
        metadata={"social_account_id": account, "time_zone": zone, "tzdata_version": release},
    )


def _refused(reason: str, message: str, social_account_id: str) -> Refused:
    return Refused(reason, message, metadata={"social_account_id": social_account_id})
