"""What clients and neighbours do, twice each: carried out on the service, and worked out on the model."""

import hashlib
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from queue_service.domain.job import JobState
from queue_service.domain.late_policy import LatePolicy
from queue_service.domain.resuming import OverduePolicy
from queue_service.domain.slot import SlotOrigin, SlotState
from tests.usecase.queue_service.machine.clients import Client, World, answer
from tests.usecase.queue_service.machine.model import (
    ENDED,
    HORIZON,
    LATE_LIMIT,
    LEAD,
    MINUTE,
    Account,
    Model,
    Schedule,
    Slot,
    paced,
    require,
)

Ids = Mapping[tuple[str, str, int], str]
"""The ids of slots by account, draft and number."""
Outcome = str | tuple[str, ...]
STARTED = (JobState.SENDING, JobState.PUBLISHED, JobState.NEEDS_ATTENTION)


class Step(Protocol):
    async def run(self, world: World, client: Client) -> Outcome: ...

    def apply(self, model: Model, ids: Ids) -> Outcome: ...


@dataclass(frozen=True)
class Add:
    draft: str
    accounts: tuple[str, ...] = ()

    async def run(self, world: World, client: Client) -> Outcome:
        return await answer(client.queue.add(self.draft, *self.accounts))

    def apply(self, model: Model, ids: Ids) -> Outcome:
        return model.attempt(lambda: self._add(model))

    def _add(self, model: Model) -> None:
        draft, accounts = model.drafts[self.draft], model.reserve(self.draft, self.accounts)
        for account in accounts:
            account.require_schedule()
        for account in accounts:
            account.first_free(model.now, draft.category)
        for account in accounts:
            account.book(draft, account.take(model.now, draft.category), SlotOrigin.QUEUE)


@dataclass(frozen=True)
class At:
    draft: str
    time: datetime
    accounts: tuple[str, ...] = ()

    async def run(self, world: World, client: Client) -> Outcome:
        return await answer(client.queue.at(self.draft, self.time, *self.accounts))

    def apply(self, model: Model, ids: Ids) -> Outcome:
        return model.attempt(lambda: self._book(model))

    def _book(self, model: Model) -> None:
        require(model.now - MINUTE <= self.time <= model.now + HORIZON, "INVALID_FIELD")
        accounts = model.reserve(self.draft, self.accounts)
        for account in accounts:
            require(not account.near(self.time), "SLOT_TAKEN")
        for account in accounts:
            account.book(model.drafts[self.draft], self.time, SlotOrigin.EXACT)


@dataclass(frozen=True)
class Batch:
    items: tuple[tuple[str, str, datetime | None], ...]

    async def run(self, world: World, client: Client) -> Outcome:
        results = await client.queue.batch(*self.items)
        return tuple(each.error.reason if each.HasField("error") else "OK" for each in results)

    def apply(self, model: Model, ids: Ids) -> Outcome:
        outcomes = {}
        for place, (draft, account, time) in sorted(enumerate(self.items), key=lambda each: each[1][1]):
            step: Step = At(draft, time, (account,)) if time else Add(draft, (account,))
            outcomes[place] = str(step.apply(model, ids))
        return tuple(outcomes[place] for place in range(len(self.items)))


@dataclass(frozen=True)
class Reorder:
    account: str
    drafts: tuple[str, ...]
    etag: str = ""

    async def run(self, world: World, client: Client) -> Outcome:
        return await answer(client.reorder(self.account, self.drafts, self.etag))

    def apply(self, model: Model, ids: Ids) -> Outcome:
        return model.attempt(lambda: self._reorder(model.accounts[self.account]))

    def _reorder(self, account: Account) -> None:
        account.require_etag(self.etag)
        named: list[Slot] = []
        for draft in self.drafts:
            slot = account.of(draft)
            require(slot, "SLOT_NOT_FOUND")
            assert slot
            require(not any(each is slot for each in named), "REORDER_REPEATED")
            require(slot.is_scheduled, "SLOT_NOT_SCHEDULED")
            named.append(slot)
        scheduled = account.scheduled
        require(len(named) == len(scheduled), "REORDER_INCOMPLETE")
        account.etag += account.seat(named, [(slot.time, slot.origin) for slot in scheduled])


@dataclass(frozen=True)
class Shuffle:
    account: str
    seed: int
    etag: str = ""

    async def run(self, world: World, client: Client) -> Outcome:
        return await answer(client.rearranging.shuffle(self.seed, account=self.account, etag=self.etag))

    def apply(self, model: Model, ids: Ids) -> Outcome:
        return model.attempt(lambda: self._shuffle(model.accounts[self.account], ids))

    def _shuffle(self, account: Account, ids: Ids) -> None:
        account.require_etag(self.etag)
        by_category = defaultdict[str, list[Slot]](list)
        for slot in account.live:
            if slot.can_shift:
                by_category[slot.category].append(slot)
        has_moved = False
        for slots in by_category.values():
            seats = [(slot.time, slot.origin) for slot in slots]
            order = sorted(slots, key=lambda slot: self._place(ids[account.id, slot.draft, slot.number]))
            has_moved |= account.seat(order, seats)
        account.etag += has_moved

    def _place(self, slot_id: str) -> bytes:
        """The same seed and queue give the same order, in all releases."""
        return hashlib.sha256(f"{self.seed} {slot_id}".encode()).digest()


@dataclass(frozen=True)
class Skip:
    account: str
    undo: bool = False

    async def run(self, world: World, client: Client) -> Outcome:
        return await answer(client.queue.skip(self.account, undo=self.undo))

    def apply(self, model: Model, ids: Ids) -> Outcome:
        return model.attempt(lambda: self._skip(model.accounts[self.account], model.now))

    def _skip(self, account: Account, now: datetime) -> None:
        if not self.undo:
            account.etag += not account.skip_next
            account.skip_next = True
            return
        account.skipped = [time for time in account.skipped if time > now]
        require(account.skip_next or account.skipped, "NOTHING_SKIPPED")
        account.etag += 1
        if account.skip_next:
            account.skip_next = False
        else:
            account.skipped.pop()


@dataclass(frozen=True)
class Pause:
    account: str
    etag: str = ""

    async def run(self, world: World, client: Client) -> Outcome:
        return await answer(client.pausing.pause(self.account, etag=self.etag))

    def apply(self, model: Model, ids: Ids) -> Outcome:
        return model.attempt(lambda: self._pause(model))

    def _pause(self, model: Model) -> None:
        account = model.accounts[self.account]
        if not account.is_paused:
            account.require_etag(self.etag)
            account.is_paused = True
            account.etag += 1
        for slot in account.live:
            if slot.state is SlotState.DISPATCHED:
                give_back(model, account, slot)


@dataclass(frozen=True)
class Resume:
    account: str
    overdue: OverduePolicy
    etag: str = ""

    async def run(self, world: World, client: Client) -> Outcome:
        return await answer(client.pausing.resume(self.account, overdue=self.overdue, etag=self.etag))

    def apply(self, model: Model, ids: Ids) -> Outcome:
        account = model.accounts[self.account]
        return model.attempt(lambda: self._resume(account, model.now)) if account.is_paused else "OK"

    def _resume(self, account: Account, now: datetime) -> None:
        account.require_etag(self.etag)
        overdue = [slot for slot in account.scheduled if slot.time <= now]
        if overdue:
            self._place(account, overdue, now)
        account.is_paused = False
        account.etag += 1

    def _place(self, account: Account, overdue: list[Slot], now: datetime) -> None:
        if self.overdue is OverduePolicy.CANCEL:
            for slot in overdue:
                slot.cancel("OVERDUE")
        elif self.overdue is OverduePolicy.PUBLISH_PACED:
            others = [slot.time for slot in account.live if slot not in overdue]
            times = paced(others, len(overdue), now, account.pace)
            account.seat(overdue, [(time, slot.origin) for time, slot in zip(times, overdue, strict=True)])
        else:
            times = account.reseated(overdue, now)
            account.seat(overdue, [(time, SlotOrigin.QUEUE) for time in times])


@dataclass(frozen=True)
class Update:
    account: str
    late_policy: LatePolicy | None
    pace: timedelta | None
    etag: str = ""

    async def run(self, world: World, client: Client) -> Outcome:
        update = client.pausing.update
        return await answer(update(self.account, late_policy=self.late_policy, pace=self.pace, etag=self.etag))

    def apply(self, model: Model, ids: Ids) -> Outcome:
        return model.attempt(lambda: self._update(model.accounts[self.account]))

    def _update(self, account: Account) -> None:
        account.require_etag(self.etag)
        before = account.late_policy, account.pace
        limit = account.late_policy.limit(LATE_LIMIT)
        account.late_policy = self.late_policy or account.late_policy
        account.pace = account.pace if self.pace is None else self.pace
        account.etag += before != (account.late_policy, account.pace)
        if limit != account.late_policy.limit(LATE_LIMIT):
            for slot in account.scheduled:
                slot.not_after = account.limit(slot.time)


@dataclass(frozen=True)
class Dispatch:
    async def run(self, world: World, client: Client) -> Outcome:
        await client.dispatch()
        return "OK"

    def apply(self, model: Model, ids: Ids) -> Outcome:
        for account in model.accounts.values():
            for slot in account.scheduled:
                if slot.time <= model.now + LEAD and not account.is_held_up:
                    slot.state = SlotState.DISPATCHED
        return "OK"


@dataclass(frozen=True)
class Report:
    """Publisher reports what has become of a target of the newest slot of a draft."""

    draft: str
    account: str
    channel: str
    state: JobState

    async def run(self, world: World, client: Client) -> Outcome:
        await world.report(client.queue, self.draft, self.account, self.channel, self.state)
        return "OK"

    def apply(self, model: Model, ids: Ids) -> Outcome:
        account = model.accounts[self.account]
        slot = account.of(self.draft)
        if slot and slot.state is SlotState.DISPATCHED and self.channel not in slot.given_back:
            slot.jobs[self.channel] = self.state
            if self.state is JobState.PUBLISHED:
                model.drafts[self.draft].published.add((self.account, self.channel))
            model.settle(account, slot)
        return "OK"


@dataclass(frozen=True)
class RepeatReports:
    """Publisher's last reports come again."""

    number: int

    async def run(self, world: World, client: Client) -> Outcome:
        await client.queue.settle(*world.neighbours.reports[-self.number :])
        return "OK"

    def apply(self, model: Model, ids: Ids) -> Outcome:
        return "OK"


@dataclass(frozen=True)
class PutSchedule:
    account: str
    schedule: Schedule

    async def run(self, world: World, client: Client) -> Outcome:
        await world.put_schedule(self.account, self.schedule)
        return "OK"

    def apply(self, model: Model, ids: Ids) -> Outcome:
        model.accounts[self.account].schedule = self.schedule
        return "OK"


@dataclass(frozen=True)
class Connect:
    account: str
    is_connected: bool

    async def run(self, world: World, client: Client) -> Outcome:
        await world.connect(self.account, is_connected=self.is_connected)
        return "OK"

    def apply(self, model: Model, ids: Ids) -> Outcome:
        model.accounts[self.account].is_connected = self.is_connected
        return "OK"


def give_back(model: Model, account: Account, slot: Slot) -> None:
    """Has Publisher give back the targets of a dispatched slot that have not started."""
    for channel, job in slot.jobs.items():
        if job not in STARTED and job not in ENDED:
            slot.jobs[channel] = JobState.CANCELED
            slot.given_back.add(channel)
    model.settle(account, slot)
