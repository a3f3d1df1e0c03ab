"""Withdrawals whose caller got no answer: asked again, until Publisher has confirmed each."""

import asyncio
import logging

from opentelemetry import metrics

from drafts_service.adapters.postgres import store
from drafts_service.application.withdrawal import Publisher
from drafts_service.domain.draft import PATIENCE
from servicekit.faults import Unavailable
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction

_BATCH = 20

log = logging.getLogger(__name__)

_completed = metrics.get_meter(__name__).create_counter(
    "postflow.drafts.withdrawals.completed", description="Withdrawals of older texts that a later try has completed"
)


class CompleteWithdrawals:
    def __init__(self, *, database: Database, clock: DatabaseClock, publisher: Publisher) -> None:
        self._database = database
        self._clock = clock
        self._publisher = publisher

    async def __call__(self) -> bool:
        """True: there may be more to do. Raises Unavailable when Publisher confirms none; they are due again soon."""
        claimed = await self._database.run(self._claim)
        async with asyncio.TaskGroup() as group:
            tries = [group.create_task(self._complete(key, below)) for key, below in claimed]
        failures = [failure for each in tries if (failure := each.result())]
        if failures and len(failures) == len(claimed):
            raise failures[0]
        return len(claimed) == _BATCH

    async def _complete(self, key: store.DraftKey, below: int) -> Unavailable | None:
        """One that fails, for whatever reason of its own, does not hold up the others."""
        try:
            await self._publisher.withdraw(*key, below=below)
        except Unavailable as away:
            log.warning("draft %s: revisions below %d are not withdrawn yet: %s", key[1], below, away.message)
            return away
        async with self._database.read() as connection:
            await store.withdrawn(connection, *key, below=below)
        _completed.add(1)
        return None

    async def _claim(self, tx: Transaction) -> list[tuple[store.DraftKey, int]]:
        now = await self._clock.now(tx.connection)
        return await store.claim_withdrawals(tx.connection, now=now, next_time=now + PATIENCE, limit=_BATCH)
