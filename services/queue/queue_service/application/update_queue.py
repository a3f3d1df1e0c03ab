"""UpdateQueue: changes what happens to late posts of an account, and the pace of overdue ones.

A new late policy gives the account's SCHEDULED slots other latest times at once, in the transaction that stores it: the
etag, the policy and the slots always agree. Publisher hears of it by the commands, which say the latest time. Posts
that have been dispatched keep theirs.
"""

import asyncio
from dataclasses import dataclass
from datetime import datetime, timedelta

from queue_service.adapters.postgres import pauses
from queue_service.adapters.postgres.accounts import lock_or_add_queues
from queue_service.adapters.postgres.plans import pin_plans
from queue_service.adapters.postgres.queue_views import find_queue_view
from queue_service.application.account_presence import AccountPresence
from queue_service.domain.account import AccountKey, AccountQueue, require_etag
from queue_service.domain.frontier import EPOCH
from queue_service.domain.late_policy import LatePolicy
from queue_service.domain.policy import Policy
from queue_service.domain.queue_view import QueueView
from servicekit.pg.database import Transaction
from servicekit.pg.ledger import Answer, Call, RequestLedger

_AT_ONCE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSettings:
    """The new settings; None leaves one as it is."""

    account: AccountKey
    late_policy: LatePolicy | None = None
    pace: timedelta | None = None
    etag: str = ""


class UpdateQueue:
    def __init__(self, *, ledger: RequestLedger, policy: Policy, accounts: AccountPresence) -> None:
        self._ledger = ledger
        self._policy = policy
        self._accounts = accounts

    async def __call__(self, call: Call[QueueView, Answer], settings: QueueSettings) -> Answer:
        await self._accounts.require(settings.account)
        return await self._ledger.once(call, lambda tx, now: self._update(tx, settings, now))

    async def _update(self, tx: Transaction, settings: QueueSettings, now: datetime) -> QueueView:
        account = settings.account
        queue = (await lock_or_add_queues(tx, [account]))[account]
        require_etag(queue, settings.etag)
        late_policy = settings.late_policy or queue.late_policy
        pace = queue.pace if settings.pace is None else settings.pace
        if (late_policy, pace) != (queue.late_policy, queue.pace):
            await pauses.set_up(tx, account, late_policy, pace)
            await self._set_limits(tx, account, queue, late_policy)
        return await find_queue_view(tx, account, now=now)

    async def _set_limits(
        self, tx: Transaction, account: AccountKey, queue: AccountQueue, late_policy: LatePolicy
    ) -> None:
        limit = late_policy.limit(self._policy.late_limit)
        if limit == queue.late_policy.limit(self._policy.late_limit):
            return
        await pin_plans(tx)
        after: datetime | None = EPOCH
        while after is not None:
            after = await pauses.set_limits(tx, account, late_limit=limit, after=after, limit=_AT_ONCE)
            await asyncio.sleep(0)  # a page takes milliseconds, in which other posts may become due
