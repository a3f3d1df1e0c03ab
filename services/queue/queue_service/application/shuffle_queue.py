"""Putting the SCHEDULED slots with slot times into a random order."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from queue_service.application.account_presence import AccountPresence
from queue_service.application.arranger import Arranger
from queue_service.domain.account import AccountKey
from queue_service.domain.rearranged import Rearranged
from queue_service.domain.shifting import shuffle
from servicekit.pg.database import Transaction
from servicekit.pg.ledger import Answer, Call, RequestLedger


@dataclass(frozen=True, slots=True, kw_only=True)
class Shuffling:
    """A `seed` of 0 means a random one."""

    account: AccountKey
    seed: int
    etag: str


class ShuffleQueue:
    def __init__(
        self, *, ledger: RequestLedger, arranger: Arranger, accounts: AccountPresence, seeds: Callable[[], int]
    ) -> None:
        self._ledger = ledger
        self._arranger = arranger
        self._accounts = accounts
        self._seeds = seeds

    async def __call__(self, call: Call[Rearranged, Answer], asked: Shuffling) -> Answer:
        await self._accounts.require(asked.account)
        chosen = replace(asked, seed=asked.seed or self._seeds())
        return await self._ledger.once(call, lambda tx, now: self._shuffle(tx, chosen, now))

    async def _shuffle(self, tx: Transaction, asked: Shuffling, now: datetime) -> Rearranged:
        snapshot = await self._arranger.lock(tx, asked.account, etag=asked.etag, now=now)
        arrangement = shuffle(snapshot, asked.seed)
        rearranged = await self._arranger.rearrange(tx, snapshot, arrangement, now)
        return replace(rearranged, seed=asked.seed)
