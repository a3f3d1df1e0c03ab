"""Settling slots by the events of their post jobs: a batch of events takes a few statements.

Almost every slot ends when its only target is published in time. One statement settles such slots (`_publish`), without
reading them; `queue_service.domain.settlement` decides about the others.

A slot is announced again, under its next revision, when a target has come back to it and its job lacks the slot's time,
and when it was taken back from Publisher.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime

from queue_service.adapters.postgres import settlement
from queue_service.adapters.postgres.accounts import lock_queues, save_frontiers
from queue_service.adapters.postgres.plans import pin_plans
from queue_service.adapters.postgres.slots import find_slots
from queue_service.domain.account import AccountQueue
from queue_service.domain.allocation import reopened_by
from queue_service.domain.job import ENDED, FINAL
from queue_service.domain.policy import Policy
from queue_service.domain.settlement import JobReport, Settled, has_lost_its_time, settle
from queue_service.domain.slot import LIVE, SPACING, QueueSlot
from queue_service.wire.announcements import dispatched_slot_canceled, slot_scheduled, slot_taken_back
from servicekit import failpoints
from servicekit.failpoints import failpoint
from servicekit.pg.database import Transaction
from servicekit.pg.outbox import Announcement, Outbox

APPLIED = failpoints.declare("queue.settle.applied")

_Key = tuple[str, str]


class SettleSlots:
    def __init__(self, policy: Policy, outbox: Outbox) -> None:
        self._policy = policy
        self._outbox = outbox

    async def __call__(self, tx: Transaction, reports: Sequence[JobReport], now: datetime) -> None:
        # A follow-up has no slot, and says nothing about that of its post.
        reports = [each for each in reports if not each.part]
        # Accounts are locked before slots, here as everywhere, because a post that was not sent frees a place under its
        # account's cap. A post that was sent before its slot's time frees one, too, but for these `_reopen` locks the
        # account after the slot. If that deadlocks with a dispatcher, the transaction is run again.
        await pin_plans(tx)
        queues = await lock_queues(tx, {each.account for each in reports if each.state in ENDED - FINAL})
        published = await self._publish(tx, reports, now)
        others = [each for each in reports if each.slot_key not in published]
        settled = await _settle_by_slot(tx, others, now)
        settled |= await _settle_by_draft(tx, _without_live_slot(others, settled.values()), settled, now)
        changed = [each for each in settled.values() if each.before != each.after]
        if changed:
            await settlement.save_progress(tx, [each.after for each in changed], now=now)
            await self._reopen(tx, changed, queues, now)
            if returned := [each.after for each in changed if each.has_returned]:
                await settlement.forget_jobs(tx, returned)
            await self._announce(tx, changed, now)
        if changed or published:
            await failpoint(APPLIED)

    async def _publish(self, tx: Transaction, reports: Sequence[JobReport], now: datetime) -> set[_Key]:
        """Locks all slots that have reports, and settles those that were plainly published and free no time."""
        await settlement.lock_slots(tx, {each.slot_key for each in reports if each.slot_id})
        reported = Counter(each.draft_on_account for each in reports)
        plain = [each for each in reports if each.is_plain_publication and reported[each.draft_on_account] == 1]
        return await settlement.publish(tx, plain, until=now + self._policy.notice - SPACING, now=now)

    async def _reopen(
        self, tx: Transaction, changed: Iterable[Settled], queues: Mapping[_Key, AccountQueue], now: datetime
    ) -> None:
        """Reopens the frontiers for times that are free again, unless they are too near to be given out.

        Locks the accounts of slots that have returned, too.
        """
        earliest = now + self._policy.notice
        freeing = [each for each in changed if each.has_returned or each.may_free_a_time(earliest)]
        late = {each.after.account for each in freeing} - queues.keys()
        locked = {**queues, **await lock_queues(tx, late)}
        opened: dict[_Key, AccountQueue] = {}
        for before, after in freeing:
            queue = locked[after.account]
            reopened = reopened_by(
                after.schedule_time,
                before.state,
                after.state,
                cap=queue.max_posts_per_day,
                time_zone=queue.time_zone,
            )
            if reopened and reopened[1] > earliest:
                opened[after.account] = opened.get(after.account, queue).reopened(*reopened)
        await save_frontiers(tx, opened)

    async def _announce(self, tx: Transaction, changed: Iterable[Settled], now: datetime) -> None:
        """Announces slots that Publisher has to hear of again, under their next revisions, and canceled ones."""
        announcements = {each.after.key: announce for each in changed if (announce := _announcement(each))}
        if not announcements:
            return
        lost = [key for key, announce in announcements.items() if announce is slot_scheduled]
        if lost:
            await settlement.raise_revisions(tx, lost, now=now)
        found = await find_slots(tx.connection, sorted(announcements))
        events = [announcements[slot.organization_id, slot.id](slot) for slot in found]
        await self._outbox.append(tx, events, now=now)


def _announcement(settled: Settled) -> Callable[[QueueSlot], Announcement] | None:
    if settled.has_returned:
        return slot_taken_back
    if settled.is_canceled_as_asked:
        return dispatched_slot_canceled
    return slot_scheduled if has_lost_its_time(settled.after) else None


async def _settle_by_slot(tx: Transaction, reports: Sequence[JobReport], now: datetime) -> dict[_Key, Settled]:
    by_slot = defaultdict[_Key, list[JobReport]](list)
    for report in reports:
        if report.slot_id:
            by_slot[report.slot_key].append(report)
    slots = await settlement.lock_progress(tx, by_slot)
    return {slot.key: Settled(slot, settle(slot, by_slot[slot.key], now=now)) for slot in slots}


async def _settle_by_draft(
    tx: Transaction, reports: Sequence[JobReport], settled: Mapping[_Key, Settled], now: datetime
) -> dict[_Key, Settled]:
    """Applies reports about older slots to newer slots of the same draft: a target that was sent is not sent again.

    `settled` are the slots that have had reports of their own in this batch, which are not stored yet.
    """
    by_draft = defaultdict[tuple[str, str, str], list[JobReport]](list)
    for report in reports:
        by_draft[report.draft_on_account].append(report)
    also_settled: dict[_Key, Settled] = {}
    for slot in await settlement.lock_live_progress(tx, by_draft):
        before, after = settled.get(slot.key, (slot, slot))
        also_settled[slot.key] = Settled(before, settle(after, by_draft[slot.draft_on_account], now=now))
    return also_settled


def _without_live_slot(reports: Sequence[JobReport], settled: Iterable[Settled]) -> list[JobReport]:
    """Returns final reports whose own slot is unknown or not live: a newer slot may wait for them."""
    live = {each.before.key for each in settled if each.before.state in LIVE}
    return [each for each in reports if each.state in FINAL and each.slot_key not in live]
