"""Calls that hold a queue up, let it go on, and set it up."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from queue_service.domain.late_policy import LatePolicy
from queue_service.domain.resuming import OverduePolicy
from queue_service.domain.slot import SlotOrigin, SlotState
from tests.usecase.queue_service.machine.clients import Client, World, answer
from tests.usecase.queue_service.machine.model import LATE_LIMIT, Account, Model, Slot, paced
from tests.usecase.queue_service.machine.step import Ids, Outcome


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
                slot.give_back()


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
