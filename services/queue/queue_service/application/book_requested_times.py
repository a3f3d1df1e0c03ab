"""Giving approved drafts slots at the times that they ask for, in the transaction that saves them.

No other service is asked: a slot on an account that cannot post is booked all the same, and shown as BLOCKED. What
cannot be given is announced as SlotRefused. A slot that was booked so moves when its draft asks for another time; it
stays when the draft loses its approval, or asks for no time any more.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from queue_service.adapters.postgres.accounts import lock_or_add_queues
from queue_service.adapters.postgres.drafts import lock_drafts
from queue_service.adapters.postgres.requested_times import find_asked_before, find_live_slots
from queue_service.adapters.postgres.slots import find_near
from queue_service.application.arranger import Arranger
from queue_service.application.slot_mover import SlotMover
from queue_service.application.slot_recorder import SlotRecorder
from queue_service.domain.account import AccountKey, AccountQueue
from queue_service.domain.booking import Place
from queue_service.domain.draft import Draft, DraftKey, LockedDraft, SavedDraft
from queue_service.domain.moving_to_requested import move_to_requested
from queue_service.domain.requested_time import (
    AskedBefore,
    LiveSlot,
    RefusedTime,
    Request,
    Step,
    answer,
    asking_accounts,
    asks_for_slots,
)
from queue_service.domain.slot import QueueSlot, SlotOrigin
from queue_service.domain.taken_times import TakenTimes
from queue_service.wire.announcements import slot_refused
from servicekit.pg.database import Transaction
from servicekit.pg.outbox import Outbox, current_traceparent


@dataclass(slots=True, kw_only=True)
class _Locked:
    """Holds the drafts that ask for slots, with all that the answers depend on."""

    drafts: Mapping[DraftKey, LockedDraft]
    live: Mapping[tuple[DraftKey, str], LiveSlot]
    taken: TakenTimes
    queues: dict[AccountKey, AccountQueue]
    booked: list[QueueSlot] = field(default_factory=list)
    refused: list[RefusedTime] = field(default_factory=list)
    moving: defaultdict[AccountKey, list[Request]] = field(default_factory=lambda: defaultdict(list))

    def add(self, slots: Sequence[QueueSlot]) -> None:
        self.booked += slots
        self.taken.add(slots)
        for slot in slots:
            self.queues[slot.account] = replace(self.queues[slot.account], last_sequence=slot.sequence)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """Requests for slots, and their accounts, which are locked."""

    requests: Sequence[Request] = ()
    drafts: Sequence[Draft] = ()
    queues: Mapping[AccountKey, AccountQueue] = field(default_factory=dict)


class RequestedTimes:
    def __init__(self, *, mover: SlotMover, record: SlotRecorder, arranger: Arranger, outbox: Outbox) -> None:
        self._mover = mover
        self._record = record
        self._arranger = arranger
        self._outbox = outbox

    async def lock(self, tx: Transaction, saved: Sequence[SavedDraft], now: datetime) -> Asking:
        """Picks the announcements that ask for slots and locks their accounts, before the drafts are saved.

        Accounts are locked before drafts, each in the order of their keys, as everywhere.
        """
        candidates = [each for each in saved if asks_for_slots(each)]
        if not candidates:
            return Asking()
        before = await find_asked_before(tx, [each.draft.key for each in candidates])
        requests = [request for each in candidates for request in _requests(each, before.get(each.draft.key))]
        if not requests:
            return Asking()
        accounts = {request.account for request in requests}
        queues = await self._mover.bring_up_to_date(tx, await lock_or_add_queues(tx, accounts), now)
        asking = {request.draft for request in requests}
        drafts = [each.draft for each in candidates if each.draft.key in asking]
        return Asking(requests=requests, drafts=drafts, queues=queues)

    async def book(self, tx: Transaction, asking: Asking, now: datetime) -> None:
        """Books, moves or refuses slots of drafts that have been saved."""
        if not asking.requests:
            return
        drafts = await lock_drafts(tx, asking.drafts)
        stored = await find_asked_before(tx, drafts.keys())
        # A newer announcement may have been saved before the locks: that one has asked for what the draft wants.
        requests = [each for each in asking.requests if each.draft_version == stored[each.draft].version]
        locked = _Locked(
            drafts=drafts,
            live=await find_live_slots(tx, drafts.keys()),
            taken=TakenTimes(await find_near(tx, [(each.account, each.schedule_time) for each in requests])),
            queues=dict(asking.queues),
        )
        for request in requests:
            self._answer(request, locked, now)
        await self._record.store(tx, locked.booked, now)
        await self._move_all(tx, locked, now)
        await self._outbox.append(tx, [slot_refused(each, now) for each in locked.refused], now=now)

    def _answer(self, request: Request, locked: _Locked, now: datetime) -> None:
        draft = locked.drafts[request.draft]
        unpublished = draft.draft.without({each.target for each in draft.published})
        live = locked.live.get((request.draft, request.social_account_id))
        decided = answer(
            request,
            live=live,
            has_targets=bool(unpublished.targets_on(request.social_account_id)),
            # A slot that moves may be the one in the way: that is seen when the whole queue is read.
            blocking=None if live else locked.taken.blocking(request.account, request.schedule_time),
            now=now,
        )
        if isinstance(decided, RefusedTime):
            locked.refused.append(decided)
        elif decided is Step.MOVE:
            locked.moving[request.account].append(request)
        elif decided is Step.BOOK:
            place = Place(
                queue=locked.queues[request.account],
                schedule_time=request.schedule_time,
                origin=SlotOrigin.DRAFT,
                tzdata_version=self._mover.release,
            )
            locked.add(self._record.book(unpublished, [place], traceparent=current_traceparent(), now=now))

    async def _move_all(self, tx: Transaction, locked: _Locked, now: datetime) -> None:
        for account in sorted(locked.moving):
            snapshot = await self._arranger.snapshot(tx, account, locked.queues[account], now=now)
            arrangement, refused = move_to_requested(snapshot, locked.moving[account], release=self._mover.release)
            locked.refused += refused
            await self._arranger.apply(tx, snapshot, arrangement, now)


def _requests(saved: SavedDraft, before: AskedBefore | None) -> list[Request]:
    assert saved.requested_time
    return [
        Request(
            draft=saved.draft.key,
            draft_version=saved.version,
            social_account_id=account,
            schedule_time=saved.requested_time,
        )
        for account in sorted(asking_accounts(saved, before))
    ]
