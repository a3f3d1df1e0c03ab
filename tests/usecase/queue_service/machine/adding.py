"""Calls that add drafts to queues."""

from bisect import bisect_left
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from postflow.queue.v1.queue_service_pb2 import QueuePlace
from queue_service.domain.slot import SlotOrigin
from tests.usecase.queue_service.machine.clients import Client, World, answer
from tests.usecase.queue_service.machine.model import HORIZON, MINUTE, NOTICE, Account, Model, Refusal, Slot, require
from tests.usecase.queue_service.machine.step import Ids, Outcome, Step

_MOST = 1000
"""More slot times than a run ever fills."""


@dataclass(frozen=True)
class Add:
    draft: str
    accounts: tuple[str, ...] = ()
    in_front: bool = False

    async def run(self, world: World, client: Client) -> Outcome:
        place = QueuePlace.QUEUE_PLACE_FRONT if self.in_front else QueuePlace.QUEUE_PLACE_END
        return await answer(client.queue.add(self.draft, *self.accounts, place=place))

    def apply(self, model: Model, ids: Ids) -> Outcome:
        return model.attempt(lambda: (self._share_next if self.in_front else self._add)(model))

    def _add(self, model: Model) -> None:
        draft, accounts = model.drafts[self.draft], model.reserve(self.draft, self.accounts)
        for account in accounts:
            account.require_schedule()
        for account in accounts:
            account.first_free(model.now, draft.category)
        for account in accounts:
            account.book(draft, account.take(model.now, draft.category), SlotOrigin.QUEUE)

    def _share_next(self, model: Model) -> None:
        """The draft gets the first slot time that it can have, and the slots up to the first free one shift."""
        draft, accounts = model.drafts[self.draft], model.reserve(self.draft, self.accounts)
        heads = [head(account, draft.category, model.now) for account in accounts]
        for account, (line, free) in zip(accounts, heads, strict=True):
            times = [*(slot.time for slot in line), free]
            account.seat(line, [(time, SlotOrigin.QUEUE) for time in times[1:]])
            account.book(draft, times[0], SlotOrigin.QUEUE)


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


def head(account: Account, category: str, now: datetime) -> tuple[list[Slot], datetime]:
    """Returns the slots that a draft at the front shifts, and the free time that the last of them gets."""
    schedule = account.require_schedule()
    for name in dict.fromkeys((category, "")):
        free = next(account.free_times(now, name), None)
        if free is not None:
            times = list(islice(schedule.times(now + NOTICE, now, name), _MOST))
            times = times[: bisect_left(times, free)]
            line = [slot for slot in account.shiftable if slot.time in times or slot.category == name]
            first = min((slot.time for slot in line if slot.time in times), default=free)
            return [slot for slot in line if first <= slot.time < free], free
    raise Refusal("HORIZON_EXHAUSTED")
