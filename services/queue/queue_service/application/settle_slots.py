"""Settling slots by what Publisher announces of their post jobs: a batch of events takes two statements.

A slot is announced again, under its next revision, when a target has come back to it and its job lacks the slot's time.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime

from queue_service.adapters.postgres import settlement
from queue_service.adapters.postgres.accounts import lock_queues, reopen_frontiers
from queue_service.adapters.postgres.plans import pin_plans
from queue_service.adapters.postgres.slots import find_slots
from queue_service.domain.account import AccountQueue
from queue_service.domain.allocation import reopened_by
from queue_service.domain.frontier import Frontier
from queue_service.domain.job import ENDED, FINAL
from queue_service.domain.policy import Policy
from queue_service.domain.settlement import JobReport, Progress, has_lost_its_time, settle
from queue_service.domain.slot import COUNTED, LIVE, SPACING
from queue_service.wire.announcements import slot_scheduled
from servicekit import failpoints
from servicekit.failpoints import failpoint
from servicekit.pg.database import Transaction
from servicekit.pg.outbox import Outbox

APPLIED = failpoints.declare("queue.settle.applied")

_Key = tuple[str, str]
_Pair = tuple[Progress, Progress]


class SettleSlots:
    def __init__(self, policy: Policy, outbox: Outbox) -> None:
        self._policy = policy
        self._outbox = outbox

    async def __call__(self, tx: Transaction, reports: Sequence[JobReport], now: datetime) -> None:
        # Accounts are locked before slots, here as everywhere. These reports free a place under the cap. A report that
        # comes before the slot's time may free one too, and `_reopen` locks its account late: if that deadlocks with a
        # dispatcher, the transaction is run again.
        await pin_plans(tx.connection)
        freeing = {(each.organization_id, each.social_account_id) for each in reports if each.state in ENDED - FINAL}
        queues = await lock_queues(tx.connection, freeing)
        pairs = await _settle_by_slot(tx, reports, now)
        pairs |= await _settle_by_draft(tx, _without_live_slot(reports, pairs.values()), pairs, now)
        changed = [(before, after) for before, after in pairs.values() if before != after]
        if changed:
            await settlement.save_progress(tx.connection, [after for _, after in changed], now=now)
            await self._reopen(tx, changed, queues, now)
            await self._announce(tx, {_key(after) for _, after in changed if has_lost_its_time(after)}, now)
            await failpoint(APPLIED)

    async def _reopen(
        self, tx: Transaction, changed: Iterable[_Pair], queues: Mapping[_Key, AccountQueue], now: datetime
    ) -> None:
        """Lets the next search find the times that are free again, unless they are too near to be given out."""
        earliest = now + self._policy.notice
        reopening = [(before, after) for before, after in changed if _may_reopen(before, after, earliest)]
        others = {_account(slot) for slot, _ in reopening} - queues.keys()
        locked = {**queues, **await lock_queues(tx.connection, others)}
        frontiers: dict[_Key, Frontier] = {}
        for before, after in reopening:
            queue = locked[_account(after)]
            reopened = reopened_by(
                after.schedule_time,
                before.state,
                after.state,
                cap=queue.max_posts_per_day,
                time_zone=queue.time_zone,
            )
            if reopened and reopened[1] > earliest:
                frontiers[_account(after)] = frontiers.get(_account(after), queue.frontier).reopened(*reopened)
        await reopen_frontiers(tx.connection, frontiers)

    async def _announce(self, tx: Transaction, slots: Collection[_Key], now: datetime) -> None:
        if slots:
            ordered = sorted(slots)
            await settlement.raise_revisions(tx.connection, ordered, now=now)
            found = await find_slots(tx.connection, ordered)
            await self._outbox.append(tx, [slot_scheduled(slot) for slot in found], now=now)


async def _settle_by_slot(tx: Transaction, reports: Sequence[JobReport], now: datetime) -> dict[_Key, _Pair]:
    by_slot = defaultdict[_Key, list[JobReport]](list)
    for report in reports:
        if report.slot_id:
            by_slot[report.organization_id, report.slot_id].append(report)
    slots = await settlement.lock_progress(tx.connection, by_slot)
    return {_key(slot): (slot, settle(slot, by_slot[_key(slot)], now=now)) for slot in slots}


async def _settle_by_draft(
    tx: Transaction, reports: Sequence[JobReport], settled: Mapping[_Key, _Pair], now: datetime
) -> dict[_Key, _Pair]:
    """Settles newer slots of the same draft by reports about older ones: a target that was sent is not sent again.

    `settled` are the slots that have had reports of their own in this batch, which are not stored yet.
    """
    by_draft = defaultdict[tuple[str, str, str], list[JobReport]](list)
    for report in reports:
        by_draft[report.organization_id, report.draft_id, report.social_account_id].append(report)
    pairs: dict[_Key, _Pair] = {}
    for slot in await settlement.lock_live_progress(tx.connection, by_draft):
        before, so_far = settled.get(_key(slot), (slot, slot))
        its_reports = by_draft[slot.organization_id, slot.draft_id, slot.social_account_id]
        pairs[_key(slot)] = before, settle(so_far, its_reports, now=now)
    return pairs


def _without_live_slot(reports: Sequence[JobReport], pairs: Iterable[_Pair]) -> list[JobReport]:
    """Returns final reports whose own slot is unknown or not live: a newer slot may wait for them."""
    live = {(before.organization_id, before.slot_id) for before, _ in pairs if before.state in LIVE}
    return [each for each in reports if each.state in FINAL and (each.organization_id, each.slot_id) not in live]


def _may_reopen(before: Progress, after: Progress, earliest: datetime) -> bool:
    """Rules out most slots cheaply: one that was sent in time, like almost all, frees nothing. Never wrongly false."""
    if before.state is after.state:
        return False
    return after.state not in COUNTED or after.schedule_time + SPACING > earliest


def _key(slot: Progress) -> _Key:
    return slot.organization_id, slot.slot_id


def _account(slot: Progress) -> _Key:
    return slot.organization_id, slot.social_account_id
