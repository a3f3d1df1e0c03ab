"""Leaving the next free slot time of an account empty, and taking that back."""

from dataclasses import dataclass
from datetime import datetime

from queue_service.adapters.postgres.accounts import lock_or_add_queues, save_frontiers, save_skips
from queue_service.adapters.postgres.queue_views import find_queue_view
from queue_service.application.account_presence import AccountPresence
from queue_service.domain.account import AccountKey
from queue_service.domain.queue_view import QueueView
from queue_service.domain.skipping import skip, undo
from servicekit.pg.database import Transaction
from servicekit.pg.ledger import Answer, Call, RequestLedger


@dataclass(frozen=True, slots=True, kw_only=True)
class Skip:
    account: AccountKey
    undo: bool


class SkipNextSlot:
    def __init__(self, *, ledger: RequestLedger, accounts: AccountPresence) -> None:
        self._ledger = ledger
        self._accounts = accounts

    async def __call__(self, call: Call[QueueView, Answer], asked: Skip) -> Answer:
        await self._accounts.require(asked.account)
        return await self._ledger.once(call, lambda tx, now: self._skip(tx, asked, now))

    async def _skip(self, tx: Transaction, asked: Skip, now: datetime) -> QueueView:
        queue = (await lock_or_add_queues(tx, {asked.account}))[asked.account]
        changed = (undo if asked.undo else skip)(queue, now)
        if asked.undo or not queue.skip_next:
            await save_skips(tx, {asked.account: changed}, changes=1)
            await save_frontiers(tx, {asked.account: changed})
        return await find_queue_view(tx, asked.account, now=now)
