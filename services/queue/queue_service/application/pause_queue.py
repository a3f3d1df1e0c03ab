"""PauseQueue: stops an account. After OK no post of it starts, except those that the answer lists.

The queue is paused first, so dispatch passes it over from then on: it locks the account before it claims slots. What it
has claimed before, Publisher's hold keeps from starting, even if the commands come after the hold. Then the slots are
taken back. A call that dies in between is completed by repeating its `request_id`, or by the loops.
"""

from dataclasses import dataclass
from functools import partial

from queue_service.adapters.postgres import pauses
from queue_service.adapters.postgres.accounts import lock_or_add_queues
from queue_service.adapters.postgres.queue_views import find_queue_view
from queue_service.application.account_presence import AccountPresence
from queue_service.application.hold_keeper import HoldKeeper
from queue_service.domain.account import AccountKey, require_etag
from queue_service.domain.hold import Hold
from queue_service.domain.queue_view import Paused
from servicekit import failpoints
from servicekit.failpoints import failpoint
from servicekit.faults import Unavailable
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.ledger import Answer, Call, RequestLedger

PAUSED = failpoints.declare("queue.pause.paused")
HELD = failpoints.declare("queue.pause.held")

_ATTEMPTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseOrder:
    account: AccountKey
    pauser: str = ""
    reason: str = ""
    etag: str = ""


class PauseQueue:
    def __init__(
        self,
        *,
        database: Database,
        clock: DatabaseClock,
        ledger: RequestLedger,
        accounts: AccountPresence,
        keeper: HoldKeeper,
    ) -> None:
        self._database = database
        self._clock = clock
        self._ledger = ledger
        self._accounts = accounts
        self._keeper = keeper

    async def __call__(self, call: Call[Paused, Answer], order: PauseOrder) -> Answer:
        await self._accounts.require(order.account)
        answer, hold = await self._database.run(partial(self._pause, call, order))
        await failpoint(PAUSED)
        for _ in range(_ATTEMPTS):
            if answer is not None:
                return answer
            in_flight = await self._keeper.store(hold)
            await failpoint(HELD)
            answer, hold = await self._database.run(partial(self._finish, call, hold, in_flight))
        raise Unavailable("HOLD_PENDING", "the queue is being paused and resumed; repeat the request")

    async def _pause(
        self, call: Call[Paused, Answer], order: PauseOrder, tx: Transaction
    ) -> tuple[Answer | None, Hold]:
        """Returns the stored answer of a call that has been answered, and the queue's hold."""
        now = await self._clock.now(tx.connection)
        past = await self._ledger.recall(tx, call, now=now)
        queue = (await lock_or_add_queues(tx, [order.account]))[order.account]
        if past is None and queue.pause_time is None:
            require_etag(queue, order.etag)
            await pauses.pause(tx, order.account, pauser=order.pauser, reason=order.reason, now=now)
        found = await pauses.find_hold(tx, order.account)
        assert found is not None
        return past, found[0]

    async def _finish(
        self, call: Call[Paused, Answer], stored: Hold, in_flight: tuple[str, ...], tx: Transaction
    ) -> tuple[Answer | None, Hold]:
        """Returns the answer, unless the queue has been resumed and paused again since: then that hold counts."""
        now = await self._clock.now(tx.connection)
        past = await self._ledger.recall(tx, call, now=now)
        if past is not None:
            return past, stored
        found = await pauses.find_hold(tx, stored.account)
        assert found is not None
        hold, _ = found
        if hold.in_force and hold.revision != stored.revision:
            return None, hold
        view = await find_queue_view(tx, stored.account, now=now)
        return await self._ledger.answer(tx, call, Paused(view=view, in_flight=in_flight)), hold
