"""Calls that rearrange a queue."""

import hashlib
from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from queue_service.domain.slot import SlotOrigin, SlotState
from servicekit.timestamps import timestamp
from tests.usecase.queue_service.machine.clients import Client, World, answer
from tests.usecase.queue_service.machine.model import HORIZON, MINUTE, NOTICE, Account, Model, Seat, Slot, require
from tests.usecase.queue_service.machine.step import Ids, Outcome


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
        account.etag += account.seat(named, [slot.seat for slot in scheduled])


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
            seats = [slot.seat for slot in slots]
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
class Remove:
    """Removes the newest slot of a draft."""

    account: str
    draft: str
    close_gap: bool
    etag: str = ""

    async def run(self, world: World, client: Client) -> Outcome:
        slot_id = await world.slot_id(self.account, self.draft)
        return await answer(client.rearranging.remove(slot_id, close_gap=self.close_gap, etag=self.etag))

    def apply(self, model: Model, ids: Ids) -> Outcome:
        return model.attempt(lambda: self._remove(model.accounts[self.account], model.now))

    def _remove(self, account: Account, now: datetime) -> None:
        slot = account.of(self.draft)
        require(slot, "SLOT_NOT_FOUND")
        assert slot
        if slot.state is SlotState.CANCELED:
            return
        if not slot.reason:
            account.require_etag(self.etag)
        if slot.state is SlotState.DISPATCHED:
            account.etag += not slot.reason
            slot.give_back("REMOVED")
            require(not slot.is_live, "TOO_LATE")
            require(slot.reason, "SLOT_NOT_LIVE")
            account.etag += self._close(account, slot, now)
            return
        require(slot.is_scheduled, "SLOT_NOT_LIVE")
        slot.cancel("REMOVED")
        account.etag += 1
        self._close(account, slot, now)

    def _close(self, account: Account, gap: Slot, now: datetime) -> bool:
        """Moves later slots of the same category up by one, and returns whether there were any."""
        if not self.close_gap or gap.origin is not SlotOrigin.QUEUE or gap.time < now + NOTICE:
            return False
        line = [slot for slot in account.shiftable if slot.time > gap.time and slot.category == gap.category]
        return account.seat(line, [gap.seat, *(slot.seat for slot in line)][: len(line)])


@dataclass(frozen=True)
class Clear:
    account: str
    etag: str = ""

    async def run(self, world: World, client: Client) -> Outcome:
        return await answer(client.rearranging.clear(self.account, etag=self.etag))

    def apply(self, model: Model, ids: Ids) -> Outcome:
        return model.attempt(lambda: self._clear(model.accounts[self.account]))

    def _clear(self, account: Account) -> None:
        account.require_etag(self.etag)
        live = account.live
        account.etag += bool(live)
        for slot in live:
            if slot.is_scheduled:
                slot.cancel("CLEARED")
            else:
                slot.give_back("CLEARED")


@dataclass(frozen=True)
class Move:
    """Moves the newest slot of a draft: to the `top`, the `bottom`, before the slot of another draft, or to a time."""

    account: str
    draft: str
    to: str | datetime
    etag: str = ""

    async def run(self, world: World, client: Client) -> Outcome:
        slot_id = await world.slot_id(self.account, self.draft)
        if isinstance(self.to, datetime):
            destination: dict[str, Any] = {"schedule_time": timestamp(self.to)}
        elif self.to in {"top", "bottom"}:
            destination = {f"to_{self.to}": True}
        else:
            destination = {"before_slot_id": await world.slot_id(self.account, self.to)}
        return await answer(client.rearranging.move(slot_id, **destination, etag=self.etag))

    def apply(self, model: Model, ids: Ids) -> Outcome:
        return model.attempt(lambda: self._move(model.accounts[self.account], model.now))

    def _move(self, account: Account, now: datetime) -> None:
        slot = account.of(self.draft)
        require(slot, "SLOT_NOT_FOUND")
        assert slot
        require(slot.is_live, "SLOT_NOT_LIVE")
        account.require_etag(self.etag)
        # Decided as if Publisher had given the slot back.
        state, slot.state = slot.state, SlotState.SCHEDULED
        try:
            seats = self._decide(account, slot, now)
        finally:
            slot.state = state
        if all(each.seat == seat for each, seat in seats):
            return
        if state is SlotState.DISPATCHED:
            slot.give_back()
            require(slot.state is not SlotState.DISPATCHED, "TOO_LATE")
        account.etag += account.seat([each for each, _ in seats], [seat for _, seat in seats])

    def _decide(self, account: Account, slot: Slot, now: datetime) -> list[tuple[Slot, Seat]]:
        others = [each for each in account.shiftable if each is not slot]
        if isinstance(self.to, datetime):
            return self._to_time(account, slot, self.to, now)
        if self.to == "bottom":
            return self._to_bottom(account, slot, now)
        if self.to == "top":
            return before(account, slot, others[0], now) if others else []
        mark = account.of(self.to)
        require(mark is not slot, "INVALID_FIELD")
        require(mark and mark.is_live, "SLOT_NOT_FOUND")
        assert mark
        require(mark.can_shift, "SLOT_NOT_SCHEDULED")
        return before(account, slot, mark, now)

    @staticmethod
    def _to_time(account: Account, slot: Slot, time: datetime, now: datetime) -> list[tuple[Slot, Seat]]:
        require(now - MINUTE <= time <= now + HORIZON, "INVALID_FIELD")
        if time == slot.time:
            return []
        require(not account.without(slot).near(time), "SLOT_TAKEN")
        return [(slot, (time, SlotOrigin.EXACT))]

    @staticmethod
    def _to_bottom(account: Account, slot: Slot, now: datetime) -> list[tuple[Slot, Seat]]:
        left = account.without(slot)
        last = max((each.time for each in left.live), default=now + NOTICE)
        if slot.can_shift and slot.time > last:
            return []
        account.require_schedule()
        return [(slot, (next(left.next_free(now, slot.category, start=last)), SlotOrigin.QUEUE))]


def before(account: Account, slot: Slot, mark: Slot, now: datetime) -> list[tuple[Slot, Seat]]:
    """Returns the seats of the slots once one of them stands before another."""
    shiftable = account.shiftable
    order = [each for each in shiftable if each is not slot]
    place = next(number for number, each in enumerate(order) if each is mark)
    would_move_up = any(slot.time < each.time < mark.time for each in order)
    if slot.can_shift and not (would_move_up and slot.time < now + NOTICE):
        order.insert(place, slot)
        return list(zip(order, [each.seat for each in shiftable], strict=True))
    account.require_schedule()
    free = next(account.without(slot).next_free(now, "", start=mark.time))
    chain = [slot, *(each for each in order[place:] if each.time < free)]
    times = [*(each.time for each in chain[1:]), free]
    return [(each, (time, SlotOrigin.QUEUE)) for each, time in zip(chain, times, strict=True)]
