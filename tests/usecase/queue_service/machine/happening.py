"""Events of neighbours, and the loops of the service."""

from dataclasses import dataclass
from datetime import datetime

from queue_service.domain.job import JobState
from queue_service.domain.slot import SlotOrigin, SlotState
from tests.usecase.queue_service.machine.clients import Client, World
from tests.usecase.queue_service.machine.model import (
    HORIZON,
    LEAD,
    MINUTE,
    Account,
    Draft,
    Model,
    Refusal,
    Schedule,
    Slot,
    paced,
)
from tests.usecase.queue_service.machine.step import Ids, Outcome


@dataclass(frozen=True)
class Dispatch:
    async def run(self, world: World, client: Client) -> Outcome:
        await client.dispatch()
        return "OK"

    def apply(self, model: Model, ids: Ids) -> Outcome:
        for account in model.accounts.values():
            if not account.is_held_up and not account.late(model.now):
                for slot in account.scheduled:
                    if slot.time <= model.now + LEAD:
                        slot.state = SlotState.DISPATCHED
        return "OK"


@dataclass(frozen=True)
class Reslot:
    """Late slots get other times."""

    async def run(self, world: World, client: Client) -> Outcome:
        await client.reslot_late()
        return "OK"

    def apply(self, model: Model, ids: Ids) -> Outcome:
        for account in model.accounts.values():
            if not account.is_held_up and (late := account.late(model.now)):
                self._reslot(account, late, model)
        return "OK"

    @staticmethod
    def _reslot(account: Account, late: list[Slot], model: Model) -> None:
        try:
            seats = [(time, SlotOrigin.QUEUE) for time in account.reseated(late, model.now)]
        except Refusal:
            others = [slot.time for slot in account.without(*late).live]
            times = paced(others, len(late), model.now, account.pace)
            seats = [(time, slot.origin) for time, slot in zip(times, late, strict=True)]
        account.seat(late, seats)
        account.etag += 1


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
            slot.settle()
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
class AskForTime:
    """An approved draft asks for a time, on all its accounts."""

    draft: str
    time: datetime

    async def run(self, world: World, client: Client) -> Outcome:
        await world.ask_for_time(client.queue, self.draft, self.time)
        return "OK"

    def apply(self, model: Model, ids: Ids) -> Outcome:
        draft = model.drafts[self.draft]
        if draft.asked != self.time:
            draft.asked = self.time
            for account in draft.targets:
                self._answer(draft, model.accounts[account], model.now)
        return "OK"

    def _answer(self, draft: Draft, account: Account, now: datetime) -> None:
        """A slot that somebody else gave to the draft stays; so does one whose new time cannot be given."""
        slot = account.of(draft.id)
        live = slot if slot and slot.is_live else None
        others = account.without(live) if live else account
        if not now - MINUTE <= self.time <= now + HORIZON or others.near(self.time):
            return
        if live and live.is_scheduled and live.origin is SlotOrigin.DRAFT:
            account.etag += account.seat([live], [(self.time, SlotOrigin.DRAFT)])
        elif not live and draft.unpublished(account.id):
            account.book(draft, self.time, SlotOrigin.DRAFT)


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
