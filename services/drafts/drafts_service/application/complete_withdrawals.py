"""Withdrawals whose caller has gone: asked again, until Publisher has answered each; the drafts stay as they were."""

import asyncio
import logging
from datetime import timedelta

from opentelemetry import metrics

from drafts_service import wire
from drafts_service.adapters.postgres import store
from drafts_service.application.withdrawal import Publisher, keep
from drafts_service.domain.answer import Answer
from drafts_service.domain.draft import PATIENCE, postponed
from servicekit.faults import Unavailable
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.outbox import Outbox
from servicekit.run.zeros import from_zero

_BATCH = 20
_ANNOUNCED_AGAIN = timedelta(minutes=1)
"""While the bus is away each announcement waits in the outbox."""

log = logging.getLogger(__name__)

_completed = from_zero(
    metrics.get_meter(__name__).create_counter(
        "postflow.drafts.withdrawals.completed", description="Withdrawals that ended without the edit that wanted them"
    )
)


class CompleteWithdrawals:
    def __init__(self, *, database: Database, clock: DatabaseClock, publisher: Publisher, outbox: Outbox) -> None:
        self._database = database
        self._clock = clock
        self._publisher = publisher
        self._outbox = outbox

    async def __call__(self) -> bool:
        """True: there may be more to do. Raises Unavailable when Publisher answers none; they are due again soon."""
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
            answer = await self._publisher.withdraw(*key, below=below)
        except Unavailable as away:
            log.warning("draft %s: revisions below %d are not withdrawn yet: %s", key[1], below, away.message)
            return away
        await self._database.run(lambda tx: self._end(tx, key, answer))
        return None

    async def _end(self, tx: Transaction, key: store.DraftKey, answer: Answer | None) -> None:
        now = await self._clock.now(tx.connection)
        draft = await store.lock(tx.connection, *key)
        if draft is None or draft.withdrawal is None:
            return
        if answer is None:
            # The last announcement is late or lost: made again, it does no harm, and lets the next try come through.
            # Nothing was forbidden, so nothing waits for it.
            log.warning("draft %s: publisher does not know revision %d, announced again", key[1], draft.revision)
            await store.save(tx.connection, postponed(draft, now + _ANNOUNCED_AGAIN))
            await self._outbox.append(tx, [wire.draft_saved(draft)], now=now)
            return
        await keep(tx, draft, await store.jobs(tx.connection, *key), answer, outbox=self._outbox, now=now)
        tx.after_commit(lambda: _completed.add(1))

    async def _claim(self, tx: Transaction) -> list[tuple[store.DraftKey, int]]:
        now = await self._clock.now(tx.connection)
        return await store.claim_withdrawals(tx.connection, now=now, next_time=now + PATIENCE, limit=_BATCH)
