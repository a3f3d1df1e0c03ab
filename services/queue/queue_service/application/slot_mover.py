"""Moving slots after new time zone data. Everything happens in the caller's transaction."""

import asyncio
import logging
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from opentelemetry import metrics

from queue_service.adapters.postgres import relocation
from queue_service.adapters.postgres.accounts import lock_queues
from queue_service.domain.account import AccountKey, AccountQueue
from queue_service.domain.policy import Policy
from queue_service.domain.relocation import Obstacle, OutdatedAccount, OutdatedSlot, Relocated, relocate
from queue_service.wire.announcements import slot_moved
from servicekit.pg.database import Transaction
from servicekit.pg.outbox import Outbox
from servicekit.run.zeros import from_zero

_ANNOUNCED_AT_ONCE = 500
_OBSTACLES = {
    Obstacle.TAKEN: "another slot has that time",
    Obstacle.NO_SUCH_DATE: "there is no such date any more",
    Obstacle.NO_SUCH_ZONE: "there is no such zone any more",
}

_log = logging.getLogger(__name__)
_meter = metrics.get_meter(__name__)
_moved = from_zero(
    _meter.create_counter("postflow.queue.slots.moved", description="Slots that new time zone data has moved")
)
_obstructed = from_zero(
    _meter.create_counter(
        "postflow.queue.slots.obstructed",
        description="Slots that could not move to the time that new time zone data gives them, by obstacle",
    ),
    *({"obstacle": obstacle.value} for obstacle in _OBSTACLES),
)


class SlotMover:
    def __init__(self, *, outbox: Outbox, policy: Policy, release: str) -> None:
        """`release` is the tzdata release of this process."""
        self._outbox = outbox
        self._policy = policy
        self.release = release

    async def bring_up_to_date(
        self, tx: Transaction, queues: Mapping[AccountKey, AccountQueue], now: datetime
    ) -> Mapping[AccountKey, AccountQueue]:
        """Moves the outdated slots of locked accounts. Returns the accounts, read again.

        A call that adds a slot does this first: while slots are at outdated instants, taken times seem free.
        """
        behind = [
            OutdatedAccount(
                organization_id=organization_id, social_account_id=account, tzdata_version=queue.tzdata_version
            )
            for (organization_id, account), queue in queues.items()
            if queue.slots_behind and queue.tzdata_version <= self.release
        ]
        if not behind:
            return queues
        await self.move_outdated(tx, behind, now)
        return await lock_queues(tx, queues)

    async def move_outdated(self, tx: Transaction, accounts: Sequence[OutdatedAccount], now: datetime) -> None:
        """Moves the outdated slots of locked accounts."""
        outdated = await relocation.lock_outdated(tx.connection, accounts)
        relocated = await self._relocated(tx, accounts, outdated, now) if outdated else []
        moved = await relocation.place(tx.connection, relocated, release=self.release, now=now) if relocated else []
        changed = {(slot.organization_id, slot.social_account_id) for slot in moved}
        await relocation.mark_caught_up(tx.connection, accounts, changed=changed)
        for first in range(0, len(moved), _ANNOUNCED_AT_ONCE):
            events = [slot_moved(slot) for slot in moved[first : first + _ANNOUNCED_AT_ONCE]]
            await self._outbox.append(tx, events, now=now)
        tx.after_commit(lambda: _report(relocated))

    async def _relocated(
        self, tx: Transaction, accounts: Sequence[OutdatedAccount], outdated: Iterable[OutdatedSlot], now: datetime
    ) -> list[Relocated]:
        others = defaultdict[tuple[str, str], list[datetime]](list)
        for account, moment in await relocation.find_others(tx.connection, accounts):
            others[account].append(moment)
        slots = defaultdict[tuple[str, str], list[OutdatedSlot]](list)
        for slot in outdated:
            slots[slot.organization_id, slot.social_account_id].append(slot)
        earliest = now + self._policy.notice
        relocated: list[Relocated] = []
        for account, outdated_slots in slots.items():
            relocated += relocate(outdated_slots, others[account], earliest=earliest)
            await asyncio.sleep(0)  # an account takes milliseconds, in which other posts may become due
        return relocated


def _report(relocated: Sequence[Relocated]) -> None:
    _moved.add(sum(each.is_moved for each in relocated))
    obstructed = [each for each in relocated if each.obstacle]
    for obstacle, number in Counter(each.obstacle for each in obstructed).items():
        _obstructed.add(number, {"obstacle": obstacle})
    for each in obstructed:
        slot = each.slot
        _log.warning(
            "slot %s of account %s of %s cannot move to %s in %s and is scheduled for %s instead: %s",
            slot.slot_id,
            slot.social_account_id,
            slot.organization_id,
            slot.nominal,
            slot.time_zone,
            each.schedule_time,
            _OBSTACLES[each.obstacle],
        )
