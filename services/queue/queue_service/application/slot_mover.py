"""Moving the slots of accounts whose zone has got another law: placed, announced, accounted for, in one transaction."""

import asyncio
import logging
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from opentelemetry import metrics

from queue_service import wire
from queue_service.adapters.postgres import relocation as store
from queue_service.adapters.postgres.account_store import lock_accounts
from queue_service.domain.account import AccountQueue
from queue_service.domain.policy import Policy
from queue_service.domain.relocation import Behind, Obstacle, Outdated, Relocated, relocate
from servicekit.pg.database import Transaction
from servicekit.pg.outbox import Outbox
from servicekit.run.zeros import from_zero

_ANNOUNCED_AT_ONCE = 500
_OBSTACLES = {
    Obstacle.TAKEN: "another slot stands there",
    Obstacle.NO_SUCH_DATE: "there is no such date any more",
    Obstacle.NO_SUCH_ZONE: "there is no such zone any more",
}

_log = logging.getLogger(__name__)
_meter = metrics.get_meter("queue_service")
_moved = from_zero(
    _meter.create_counter(
        "postflow.queue.slots.moved", description="Slots that got another time because the law of their zone changed"
    )
)
_obstructed = from_zero(
    _meter.create_counter(
        "postflow.queue.slots.obstructed",
        description="Slots that could not have the time that they are meant for by a new law, by what stood in the way",
    ),
    *({"obstacle": obstacle.value} for obstacle in _OBSTACLES),
)


class SlotMover:
    def __init__(self, *, outbox: Outbox, policy: Policy, release: str) -> None:
        """`release` of the IANA database is what this process has."""
        self._outbox = outbox
        self._policy = policy
        self.release = release

    async def move_those_of(
        self, tx: Transaction, organization_id: str, queues: Mapping[str, AccountQueue], now: datetime
    ) -> Mapping[str, AccountQueue]:
        """Of these accounts, which are locked, as they are after it.

        Who adds a slot calls it first: at the instants of an older law times seem to be free that are not.
        """
        behind = [
            Behind(organization_id, account, queue.tzdata_version)
            for account, queue in queues.items()
            if queue.slots_behind and queue.tzdata_version <= self.release
        ]
        if not behind:
            return queues
        await self.move(tx, behind, now)
        return await lock_accounts(tx.connection, organization_id, list(queues))

    async def move(self, tx: Transaction, accounts: Sequence[Behind], now: datetime) -> None:
        """The accounts are locked."""
        outdated = await store.lock_outdated(tx.connection, accounts)
        relocated = await self._relocated(tx, accounts, outdated, now) if outdated else []
        moved = await store.place(tx.connection, relocated, release=self.release, now=now) if relocated else []
        changed = {(slot.organization_id, slot.social_account_id) for slot in moved}
        await store.caught_up(tx.connection, accounts, changed=changed)
        for first in range(0, len(moved), _ANNOUNCED_AT_ONCE):
            news = [wire.slot_moved(slot) for slot in moved[first : first + _ANNOUNCED_AT_ONCE]]
            await self._outbox.append(tx, news, now=now)
        tx.after_commit(lambda: _tell(relocated))

    async def _relocated(
        self, tx: Transaction, accounts: Sequence[Behind], outdated: Iterable[Outdated], now: datetime
    ) -> list[Relocated]:
        standing = defaultdict[tuple[str, str], list[datetime]](list)
        for account, moment in await store.find_standing(tx.connection, accounts):
            standing[account].append(moment)
        slots = defaultdict[tuple[str, str], list[Outdated]](list)
        for slot in outdated:
            slots[slot.organization_id, slot.social_account_id].append(slot)
        earliest = now + self._policy.notice
        relocated: list[Relocated] = []
        for account, theirs in slots.items():
            relocated += relocate(theirs, standing[account], earliest=earliest)
            await asyncio.sleep(0)  # it takes milliseconds, and posts are due meanwhile
        return relocated


def _tell(relocated: Sequence[Relocated]) -> None:
    _moved.add(sum(each.is_moved for each in relocated))
    obstructed = [each for each in relocated if each.obstacle]
    for obstacle, number in Counter(each.obstacle for each in obstructed).items():
        _obstructed.add(number, {"obstacle": obstacle})
    for each in obstructed:
        slot = each.slot
        _log.warning(
            "slot %s of account %s of %s is meant for %s in %s, but goes out at %s: %s",
            slot.slot_id,
            slot.social_account_id,
            slot.organization_id,
            slot.nominal,
            slot.time_zone,
            each.schedule_time,
            _OBSTACLES[each.obstacle],
        )
