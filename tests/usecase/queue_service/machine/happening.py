"""Events of neighbours, and the loops of the service."""

from dataclasses import dataclass

from queue_service.domain.job import JobState
from queue_service.domain.slot import SlotOrigin, SlotState
from tests.usecase.queue_service.machine.clients import Client, World
from tests.usecase.queue_service.machine.model import LEAD, Account, Model, Refusal, Schedule, Slot, paced
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
