"""ResumeQueue: lets an account post again, and decides what becomes of slots that are overdue.

The decision and the resumption are one transaction, which stores the answer; then Publisher releases its hold. A call
that dies in between is completed by repeating its `request_id`, or by the loop.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from queue_service.adapters.postgres import pauses
from queue_service.adapters.postgres.queue_views import find_queue_view
from queue_service.adapters.postgres.slots import find_slots
from queue_service.application.account_presence import AccountPresence
from queue_service.application.arranger import Arranged, Arranger
from queue_service.application.hold_keeper import HoldKeeper
from queue_service.application.times_on_demand import TimesOnDemand
from queue_service.domain.account import AccountKey, require_etag
from queue_service.domain.free_times import FreeTimes
from queue_service.domain.hold import Hold
from queue_service.domain.policy import Policy
from queue_service.domain.queue_view import Resumed
from queue_service.domain.rearranged import LISTED
from queue_service.domain.resuming import OverduePolicy, resume
from queue_service.domain.schedule_check import ReadTimes
from queue_service.domain.slot import QueueSlot
from servicekit import failpoints
from servicekit.failpoints import failpoint
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.ledger import Answer, Call, RequestLedger

RESUMED = failpoints.declare("queue.resume.resumed")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeOrder:
    account: AccountKey
    overdue: OverduePolicy = OverduePolicy.RESCHEDULE
    etag: str = ""


class ResumeQueue:
    def __init__(
        self,
        *,
        database: Database,
        clock: DatabaseClock,
        ledger: RequestLedger,
        policy: Policy,
        accounts: AccountPresence,
        arranger: Arranger,
        keeper: HoldKeeper,
        times: TimesOnDemand,
        on_slots: Callable[[], None],
    ) -> None:
        """`on_slots` is called when slots may be due that could not be dispatched before."""
        self._database = database
        self._clock = clock
        self._ledger = ledger
        self._policy = policy
        self._accounts = accounts
        self._arranger = arranger
        self._keeper = keeper
        self._times = times
        self._on_slots = on_slots

    async def __call__(self, call: Call[Resumed, Answer], order: ResumeOrder) -> Answer:
        await self._accounts.require(order.account)

        async def attempt(read: ReadTimes | None) -> tuple[Answer, Hold | None]:
            return await self._database.run(partial(self._resume, call, order, read))

        answer, pending = await self._times(order.account, attempt)
        await failpoint(RESUMED)
        if pending:
            await self._keeper.store(pending)
        return answer

    async def _resume(
        self, call: Call[Resumed, Answer], order: ResumeOrder, read: ReadTimes | None, tx: Transaction
    ) -> tuple[Answer, Hold | None]:
        """Returns the answer, and the hold that Publisher has yet to release."""
        now = await self._clock.now(tx.connection)
        past = await self._ledger.recall(tx, call, now=now)
        if past is not None:
            return past, await _pending(tx, order.account)
        snapshot = await self._arranger.lock(tx, order.account, now=now, read=read)
        arranged = Arranged(queue=snapshot.queue)
        if snapshot.queue.pause_time is not None:
            require_etag(snapshot.queue, order.etag)
            free = FreeTimes(snapshot, read)
            arrangement = resume(snapshot, order.overdue, free, now=now, notice=self._policy.notice)
            await pauses.resume(tx, order.account, changes_etag=not arrangement.changes_anything)
            arranged = await self._arranger.apply(tx, snapshot, arrangement, now)
            tx.after_commit(self._on_slots)
        # The answer is given once Publisher has released its hold.
        view = replace(await find_queue_view(tx, order.account, now=now), is_hold_pending=False)
        resumed = Resumed(
            view=view,
            moved=tuple(await _slots(tx, order.account, [slot.id for slot in arranged.moved])),
            canceled=tuple(await _slots(tx, order.account, [slot.id for slot in arranged.canceled])),
        )
        return await self._ledger.answer(tx, call, resumed), await _pending(tx, order.account)


async def _slots(tx: Transaction, account: AccountKey, ids: Sequence[str]) -> list[QueueSlot]:
    """Returns the first of the slots, earliest first."""
    keys = [(account[0], slot_id) for slot_id in ids[:LISTED]]
    found = await find_slots(tx.connection, keys) if keys else []
    return sorted(found, key=lambda slot: slot.schedule_time)


async def _pending(tx: Transaction, account: AccountKey) -> Hold | None:
    found = await pauses.find_hold(tx, account)
    if found is None:
        return None
    hold, is_pending = found
    return hold if is_pending and not hold.in_force else None
