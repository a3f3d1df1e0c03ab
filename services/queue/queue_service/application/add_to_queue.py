"""Giving a draft the next free weekly slot on each account: on all accounts or on none.

The call first reads from Schedule and Drafts. Then one transaction, under the locks of the accounts, checks whether
what it read is still current and which times are free. If it is not current, or the search needs more times, the call
reads again. Schedule's answer also brings changes that have not been announced here yet.

Calls that arrive together share the transaction. Those that share an account or a draft are carried out one after
another in it.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import chain
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
from queue_service.domain.account import AccountKey, AccountQueue, AnnouncedSchedule
from queue_service.domain.booking import Place
from queue_service.domain.draft import Draft, DraftKey, LockedDraft
from queue_service.domain.frontier import Frontier
from queue_service.domain.policy import Policy
from queue_service.domain.search import Search
from queue_service.domain.slot import HORIZON, QueueSlot, SlotOrigin
from queue_service.domain.slot_times import SlotTimes
from servicekit.faults import Fault, NotFound, Refused, Unavailable
from servicekit.gathering import Gathering
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.ledger import Answer, Call, RequestLedger
from servicekit.pg.outbox import current_traceparent
from servicekit.pg.together import Together
from servicekit.run.transient import is_transient

_FEW_TIMES, _MANY_TIMES = 64, 1000
_CHANGES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueOrder:
    organization_id: str
    draft_id: str
    social_account_ids: tuple[str, ...] = ()


class _Again(Unavailable):
    """Makes a call read again: it needs more times, or what it has read has changed."""

    def __init__(self, *, needs_more: bool) -> None:
        super().__init__("SCHEDULE_CHANGING", "read again")
        self.needs_more = needs_more


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A draft and the slot times of its accounts, as a call has read them, in its trace."""

    draft: Draft
    times: Mapping[AccountKey, SlotTimes | Fault]
    traceparent: str

    @property
    def names(self) -> set[tuple[str, AccountKey]]:
        """Returns the draft and the accounts, which no two calls of a round may have in common."""
        return {("draft", self.draft.key), *(("account", account) for account in self.times)}


@dataclass(slots=True, kw_only=True)
class _Locked:
    """Holds what the calls of a transaction have locked. Each round sees the slots of those before it."""

    queues: dict[AccountKey, AccountQueue]
    drafts: dict[DraftKey, LockedDraft]


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
        self._find_draft = find_draft
        self._schedule = schedule
        self._mover = mover
        self._record = record
        self._policy = policy
        self._known = Gathering[Sequence[AccountKey], tuple[datetime, Mapping[AccountKey, AccountQueue]]](
            self._read_queues, share=_tenant, is_shared=_is_down
        )
        self._together = Together(ledger, self.book)

    async def __call__(self, call: Call[Sequence[QueueSlot], Answer], order: QueueOrder) -> Answer:
        count, changes = _FEW_TIMES, 0
        while changes < _CHANGES:
            try:
                return await self._together(call, await self.read(order, count))
            except _Again as again:
                if again.needs_more:
                    count = _MANY_TIMES
                else:
                    changes += 1
        raise _changing()

    async def read(self, order: QueueOrder, count: int = _FEW_TIMES) -> Reading | Fault:
        """Returns faults instead of raising them: a repeated request gets its first answer, even if this fails now."""
        found = await self._find_draft(order.organization_id, order.draft_id, order.social_account_ids)
        if isinstance(found, Fault):
            return found
        accounts = [(order.organization_id, account) for account in found.accounts]
        now, known = await self._known(accounts)
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
        times = {account: read.result() for account, read in reads.items()}
        return Reading(draft=found.draft, times=times, traceparent=current_traceparent())

    async def _read_queues(
        self, asked: Sequence[Sequence[AccountKey]]
    ) -> list[tuple[datetime, Mapping[AccountKey, AccountQueue]]]:
        """Returns the time and what Queue knows of the accounts, for several calls that are in flight."""
        async with self._database.read_session() as session:
            now = await self._clock.now(session.connection)
            known = await find_queues(session, set(chain.from_iterable(asked)))
        return [(now, known)] * len(asked)

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

    async def book(
        self, tx: Transaction, readings: Sequence[Reading | Fault], now: datetime
    ) -> list[Sequence[QueueSlot] | Fault]:
        """Returns the slots or the refusal of each call."""
        outcomes: dict[int, Sequence[QueueSlot] | Fault] = {}
        wanted: dict[int, Reading] = {}
        for place, reading in enumerate(readings):
            if isinstance(reading, Fault):
                outcomes[place] = reading
            else:
                wanted[place] = reading
        if wanted:
            locked = await self._lock(tx, list(wanted.values()), now)
            for together in _rounds(wanted):
                outcomes |= await self._book_round(tx, together, locked, now)
        return [outcomes[place] for place in range(len(readings))]

    async def _lock(self, tx: Transaction, readings: Sequence[Reading], now: datetime) -> _Locked:
        """Locks the accounts, saves their schedules from Schedule's answers, moves their outdated slots; then drafts.

        Accounts are locked before drafts, each in the order of their keys, as everywhere.
        """
        accounts = {account for reading in readings for account in reading.times}
        queues = await lock_or_add_queues(tx, accounts)
        if newer := _newer(queues, readings):
            await save_schedules(tx.connection, newer)
            queues = await lock_or_add_queues(tx, accounts)
        queues = dict(await self._mover.bring_up_to_date(tx, queues, now))
        return _Locked(queues=queues, drafts=await lock_drafts(tx, [reading.draft for reading in readings]))

    async def _book_round(
        self, tx: Transaction, readings: Mapping[int, Reading], locked: _Locked, now: datetime
    ) -> dict[int, Sequence[QueueSlot] | Fault]:
        """Books calls that have neither an account nor a draft in common."""
        outcomes: dict[int, Sequence[QueueSlot] | Fault] = {}
        drafts: dict[int, Draft] = {}
        searches: dict[AccountKey, Search] = {}
        for place, reading in readings.items():
            try:
                draft = _unpublished(reading, locked)
                searches |= _begin(locked.queues, reading.times, now + self._policy.notice)
            except Fault as fault:
                outcomes[place] = fault
            else:
                drafts[place] = draft
        searches = dict(await search_times(tx, searches))
        for place, draft in drafts.items():
            reading = readings[place]
            mine = [(account, searches[account]) for account in reading.times]
            outcomes[place] = _failure(mine) or self._booked(draft, mine, reading.traceparent, locked, now)
        await self._store(tx, outcomes, {place: readings[place] for place in drafts}, searches, locked, now)
        return outcomes

    def _booked(
        self,
        draft: Draft,
        searches: Sequence[tuple[AccountKey, Search]],
        traceparent: str,
        locked: _Locked,
        now: datetime,
    ) -> list[QueueSlot]:
        places = [self._place(search) for _, search in searches]
        slots = self._record.book(draft, places, traceparent=traceparent, now=now)
        locked.drafts[draft.key] = locked.drafts[draft.key].with_slots(slot.as_blocking() for slot in slots)
        for slot, (account, _) in zip(slots, searches, strict=True):
            locked.queues[account] = replace(locked.queues[account], last_sequence=slot.sequence)
        return slots

    async def _store(
        self,
        tx: Transaction,
        outcomes: Mapping[int, Sequence[QueueSlot] | Fault],
        readings: Mapping[int, Reading],
        searches: Mapping[AccountKey, Search],
        locked: _Locked,
        now: datetime,
    ) -> None:
        """Stores the slots, and how far the searches have come, so that no call searches the same times again."""
        slots: list[QueueSlot] = []
        frontiers: dict[AccountKey, Frontier] = {}
        for place, reading in readings.items():
            outcome = outcomes[place]
            if not isinstance(outcome, Fault):
                slots += outcome
                frontiers |= {account: searches[account].taken() for account in reading.times}
            elif isinstance(outcome, _Again):
                unfinished = [account for account in reading.times if searches[account].found is None]
                frontiers |= {account: searches[account].frontier for account in unfinished}
        await self._record.store(tx, slots, now)
        for account, frontier in frontiers.items():
            locked.queues[account] = replace(locked.queues[account], frontier=frontier)
        await save_frontiers(tx, {account: locked.queues[account] for account in frontiers})

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


def _tenant(accounts: Sequence[AccountKey]) -> str:
    return accounts[0][0]


def _is_down(_items: object, error: BaseException) -> bool:
    return is_transient(error)


def _rounds(readings: Mapping[int, Reading]) -> list[dict[int, Reading]]:
    """Splits calls into rounds: a call comes in a later round than those before it with an account or draft of its."""
    rounds: list[dict[int, Reading]] = []
    last: dict[tuple[str, AccountKey], int] = {}
    for place, reading in readings.items():
        number = max((last[name] + 1 for name in reading.names if name in last), default=0)
        if number == len(rounds):
            rounds.append({})
        rounds[number][place] = reading
        last |= dict.fromkeys(reading.names, number)
    return rounds


def _newer(queues: Mapping[AccountKey, AccountQueue], readings: Iterable[Reading]) -> list[AnnouncedSchedule]:
    """Returns schedules that Queue does not know yet, the newest of each account."""
    found: dict[AccountKey, AnnouncedSchedule] = {}
    for reading in readings:
        for account, read in reading.times.items():
            if isinstance(read, Fault) or not read.schedule or not queues[account].learns_from(read.schedule):
                continue
            found[account] = max(found.get(account, read.schedule), read.schedule, key=_age)
    return list(found.values())


def _age(schedule: AnnouncedSchedule) -> tuple[int, str]:
    return schedule.version, schedule.tzdata_version


def _unpublished(reading: Reading, locked: _Locked) -> Draft:
    accounts = [account for _, account in reading.times]
    return locked.drafts[reading.draft.key].unpublished(reading.draft, accounts)


def _begin(
    queues: Mapping[AccountKey, AccountQueue], times: Mapping[AccountKey, SlotTimes | Fault], earliest: datetime
) -> dict[AccountKey, Search]:
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
            raise _Again(needs_more=False)
        if not queue.enabled:
            account = queue.social_account_id
            raise _refused("SCHEDULE_DISABLED", f"the schedule of account {account} is disabled", account)
        if queue.time_zone not in zone_names():
            raise _zone_unknown(queue)
        searches[key] = Search(queue=queue, times=read, earliest=earliest, frontier=queue.frontier)
    return searches


def _failure(searches: Iterable[tuple[AccountKey, Search]]) -> Fault | None:
    """Returns why a call gets no slots, or has to read again, if a search has found nothing."""
    unfinished = [(account, search) for account, search in searches if search.found is None]
    for (_, account), search in unfinished:
        if search.is_exhausted:
            return _refused(
                "HORIZON_EXHAUSTED", f"account {account} has no free slot within {HORIZON.days} days", account
            )
    if not unfinished:
        return None
    return _Again(needs_more=all(search.start >= search.times.after for _, search in unfinished))


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
