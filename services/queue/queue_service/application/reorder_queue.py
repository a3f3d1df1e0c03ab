"""Giving the times of an account's SCHEDULED slots to them in a new order."""

from dataclasses import dataclass
from datetime import datetime

from queue_service.adapters.postgres.arrangement import find_ended
from queue_service.application.arranger import Arranger
from queue_service.domain.account import AccountKey
from queue_service.domain.rearranged import Rearranged
from queue_service.domain.reordering import Order, check_order, reorder
from servicekit.pg.database import Transaction
from servicekit.pg.ledger import Answer, Call, RequestLedger


@dataclass(frozen=True, slots=True, kw_only=True)
class NewOrder:
    account: AccountKey
    order: Order
    etag: str


class ReorderQueue:
    def __init__(self, *, ledger: RequestLedger, arranger: Arranger) -> None:
        self._ledger = ledger
        self._arranger = arranger

    async def __call__(self, call: Call[Rearranged, Answer], asked: NewOrder) -> Answer:
        check_order(asked.order)
        return await self._ledger.once(call, lambda tx, now: self._reorder(tx, asked, now))

    async def _reorder(self, tx: Transaction, asked: NewOrder, now: datetime) -> Rearranged:
        snapshot = await self._arranger.lock(tx, asked.account, etag=asked.etag, now=now)
        ended = await find_ended(tx, asked.account, asked.order, snapshot.slots)
        arrangement = reorder(snapshot, asked.order, ended)
        return await self._arranger.rearrange(tx, snapshot, arrangement, now)
