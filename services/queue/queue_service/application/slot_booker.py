"""Giving slots to drafts for several calls in one transaction.

Each call gets the slots, or the refusal, that it would get if the calls had come one after another.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from queue_service.adapters.postgres.accounts import save_frontiers, save_skips
from queue_service.adapters.postgres.drafts import lock_drafts
from queue_service.adapters.postgres.slots import find_near
from queue_service.application.account_lock import AccountLock
from queue_service.application.slot_recorder import SlotRecorder
from queue_service.application.time_search import TimeSearch
from queue_service.domain.account import AccountKey, AccountQueue
from queue_service.domain.booking import Place, check_exact_time, slot_taken
from queue_service.domain.draft import Draft, DraftKey, LockedDraft
from queue_service.domain.openings import Lack, Opening, Openings
from queue_service.domain.policy import Policy
from queue_service.domain.schedule_check import ReadTimes, current_times, shortage, usable
from queue_service.domain.slot import QueueSlot, SlotOrigin
from queue_service.domain.taken_times import TakenTimes
from servicekit.faults import Fault
from servicekit.pg.database import Transaction
from servicekit.record import record


@record(frozen=True, slots=True, kw_only=True)
class Reading:
    """A draft and the accounts that are to get slots, as a call has read them, in its trace.

    They get the next free times among `times`, or `schedule_time`, for which no times were read.
    """

    draft: Draft
    accounts: tuple[AccountKey, ...]
    times: Mapping[AccountKey, ReadTimes]
    traceparent: str
    schedule_time: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """A call whose draft could not be read, or is refused on its accounts."""

    fault: Fault
    schedule_time: datetime | None = None


@dataclass(slots=True, kw_only=True)
class _Locked:
    """Holds what the calls of a transaction have locked. Each call sees the slots of those before it."""

    queues: dict[AccountKey, AccountQueue]
    drafts: dict[DraftKey, LockedDraft]
    taken: TakenTimes
    openings: dict[AccountKey, Openings]
    # Of the newest slots, which are not stored yet.
    sequences: dict[AccountKey, int] = field(default_factory=dict)

    def add(self, slots: Sequence[QueueSlot], draft: DraftKey) -> None:
        self.taken.add(slots)
        self.drafts[draft] = self.drafts[draft].with_slots(slot.as_blocking() for slot in slots)
        for slot in slots:
            self.sequences[slot.account] = slot.sequence

    def expect(self, readings: Iterable[Reading]) -> None:
        """Announces the drafts that are still to get times."""
        categories = defaultdict[AccountKey, list[str]](list)
        for reading in readings:
            for account in reading.times:
                categories[account].append(reading.draft.category_id)
        for account, openings in self.openings.items():
            openings.expect(categories[account])


class SlotBooker:
    def __init__(self, *, lock: AccountLock, record: SlotRecorder, policy: Policy, release: str) -> None:
        """`release` is the tzdata release of this process."""
        self._lock_accounts = lock
        self._record = record
        self._policy = policy
        self._release = release

    async def __call__(
        self, tx: Transaction, readings: Sequence[Reading | Unread], now: datetime
    ) -> list[Sequence[QueueSlot] | Fault]:
        """Returns the slots or the refusal of each call, and stores the slots."""
        checked = [_checked(reading, now) for reading in readings]
        wanted = [reading for reading in checked if isinstance(reading, Reading)]
        booked = iter(await self._book(tx, wanted, now) if wanted else [])
        return [next(booked) if isinstance(each, Reading) else each for each in checked]

    async def _book(
        self, tx: Transaction, readings: Sequence[Reading], now: datetime
    ) -> list[Sequence[QueueSlot] | Fault]:
        locked = await self._lock(tx, readings, now)
        search = TimeSearch(tx, locked.queues, locked.openings)
        pending = deque(readings)
        outcomes: list[Sequence[QueueSlot] | Fault] = []
        if locked.openings:
            locked.expect(pending)
            await search.look()
        while pending:
            outcome = self._decide(pending[0], locked, now)
            if outcome is None:
                locked.expect(pending)
                await search.look()
            else:
                outcomes.append(outcome)
                pending.popleft()
        await self._store(tx, outcomes, locked, now)
        return outcomes

    async def _lock(self, tx: Transaction, readings: Sequence[Reading], now: datetime) -> _Locked:
        """Locks accounts before drafts, each in the order of their keys, as everywhere."""
        accounts = {account for reading in readings for account in reading.accounts}
        # The items of a batch on an account share their times.
        readings_of_times = list({id(reading.times): reading.times for reading in readings}.values())
        queues = await self._lock_accounts(tx, accounts, readings_of_times, now)
        drafts = await lock_drafts(tx, [reading.draft for reading in readings])
        exact = [(account, each.schedule_time) for each in readings if each.schedule_time for account in each.accounts]
        taken = TakenTimes(await find_near(tx, exact))
        earliest = now + self._policy.notice
        openings = {
            account: Openings(queues[account], times, earliest=earliest)
            for account, times in current_times(queues, readings_of_times, earliest).items()
        }
        return _Locked(queues=queues, drafts=drafts, taken=taken, openings=openings)

    def _decide(self, reading: Reading, locked: _Locked, now: datetime) -> Sequence[QueueSlot] | Fault | None:
        """Returns the slots or the refusal of a call; None if more times have to be looked at."""
        try:
            accounts = [account for _, account in reading.accounts]
            draft = locked.drafts[reading.draft.key].unpublished(reading.draft, accounts)
            places = self._exact(reading, locked) if reading.schedule_time else self._next_free(reading, draft, locked)
        except Fault as fault:
            return fault
        if places is None:
            return None
        slots = self._record.book(draft, places, traceparent=reading.traceparent, now=now)
        locked.add(slots, draft.key)
        return slots

    def _exact(self, reading: Reading, locked: _Locked) -> list[Place]:
        assert reading.schedule_time
        for account in reading.accounts:
            if blocking := locked.taken.blocking(account, reading.schedule_time):
                raise slot_taken(blocking)
        for account in reading.accounts:
            if account in locked.openings:
                locked.openings[account].fill(reading.schedule_time)
        return [
            Place(
                queue=locked.queues[account],
                schedule_time=reading.schedule_time,
                origin=SlotOrigin.EXACT,
                tzdata_version=self._release,
                last_sequence=locked.sequences.get(account, 0),
            )
            for account in reading.accounts
        ]

    def _next_free(self, reading: Reading, draft: Draft, locked: _Locked) -> list[Place] | None:
        for account in reading.accounts:
            usable(locked.queues[account], reading.times[account])
        found = {account: locked.openings[account].find(draft.category_id) for account in reading.accounts}
        if Lack.LOOK in found.values():
            return None
        if lacks := {account[1]: lack for account, lack in found.items() if isinstance(lack, Lack)}:
            raise shortage(lacks)
        return [
            self._taken(locked, account, opening) for account, opening in found.items() if isinstance(opening, Opening)
        ]

    def _taken(self, locked: _Locked, account: AccountKey, opening: Opening) -> Place:
        locked.openings[account].take(opening)
        return Place(
            queue=locked.queues[account],
            schedule_time=opening.time,
            origin=SlotOrigin.QUEUE,
            nominal=opening.nominal,
            # Schedule computed the instant, we compute the local time. The slot gets the older of the two releases, so
            # that a process with a newer one checks it.
            tzdata_version=min(opening.tzdata_version, self._release),
            last_sequence=locked.sequences.get(account, 0),
        )

    async def _store(
        self,
        tx: Transaction,
        outcomes: Iterable[Sequence[QueueSlot] | Fault],
        locked: _Locked,
        now: datetime,
    ) -> None:
        """Stores the slots, and how far the searches have come, so that no call searches the same times again."""
        slots = [slot for outcome in outcomes if not isinstance(outcome, Fault) for slot in outcome]
        await self._record.store(tx, slots, now)
        updated = {account: each.updated(locked.queues[account]) for account, each in locked.openings.items()}
        searched = {account: queue for account, queue in updated.items() if locked.openings[account].has_searched}
        await save_frontiers(tx, searched)
        await save_skips(
            tx, {account: queue for account, queue in updated.items() if locked.openings[account].has_skipped}
        )


def _checked(reading: Reading | Unread, now: datetime) -> Reading | Fault:
    try:
        if reading.schedule_time:
            check_exact_time(reading.schedule_time, now)
    except Fault as fault:
        return fault
    return reading if isinstance(reading, Reading) else reading.fault
