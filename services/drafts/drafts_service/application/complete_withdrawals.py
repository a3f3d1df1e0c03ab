"""CompleteWithdrawals: ends withdrawals whose caller has gone; their drafts stay as they were."""

import asyncio
import logging
from datetime import timedelta

from opentelemetry import metrics

from drafts_service.adapters.postgres.drafts import claim_withdrawals, lock_draft, next_withdrawal, save_draft
from drafts_service.adapters.postgres.post_jobs import find_jobs
from drafts_service.application.give_up_edit import ContentWithdrawer, give_up_edit
from drafts_service.domain.draft import PATIENCE, DraftKey, postponed
from drafts_service.domain.withdrawal import WithdrawalAnswer
from drafts_service.wire import events
from servicekit.faults import Unavailable
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.outbox import Outbox
from servicekit.run.zeros import from_zero

_BATCH = 20
_ANNOUNCED_AGAIN = timedelta(minutes=1)
"""Not sooner, because each announcement stays in the outbox while NATS is down."""

_log = logging.getLogger(__name__)

_meter = metrics.get_meter(__name__)
_completed = from_zero(
    _meter.create_counter(
        "postflow.drafts.withdrawals.completed", description="Withdrawals that ended without the edit they were for"
    )
)


class CompleteWithdrawals:
    def __init__(
        self, *, database: Database, clock: DatabaseClock, publisher: ContentWithdrawer, outbox: Outbox
    ) -> None:
        self._database = database
        self._clock = clock
        self._publisher = publisher
        self._outbox = outbox

    async def __call__(self) -> bool:
        """Returns True if more may be due. Raises Unavailable if Publisher answers none; they are due again soon."""
        if not await self._is_one_due():
            return False
        claimed = await self._database.run(self._claim)
        async with asyncio.TaskGroup() as group:
            attempts = [group.create_task(self._complete(key, below)) for key, below in claimed]
        failures = [failure for each in attempts if (failure := each.result())]
        if failures and len(failures) == len(claimed):
            raise failures[0]
        return len(claimed) == _BATCH

    async def _is_one_due(self) -> bool:
        """Asks by a single statement, because there is seldom one, and the loop asks every second."""
        async with self._database.session() as session:
            now, due = await next_withdrawal(session)
        return due is not None and due <= self._clock.shown(now)

    async def _complete(self, key: DraftKey, below: int) -> Unavailable | None:
        """Returns the failure instead of raising it, so that one draft does not hold up the others."""
        try:
            answer = await self._publisher.withdraw(*key, below=below)
        except Unavailable as failure:
            _log.warning("draft %s: revisions below %d are not withdrawn yet: %s", key[1], below, failure.message)
            return failure
        await self._database.run(lambda tx: self._end(tx, key, answer))
        return None

    async def _end(self, tx: Transaction, key: DraftKey, answer: WithdrawalAnswer | None) -> None:
        now = await self._clock.now(tx.connection)
        draft = await lock_draft(tx, key)
        if draft is None or draft.withdrawal is None:
            return
        if answer is None:
            # The last announcement is late or lost. A duplicate does no harm, and lets the next attempt succeed.
            # Nothing was forbidden, so nothing is blocked meanwhile.
            _log.warning("draft %s: publisher does not know revision %d; announcing it again", key[1], draft.revision)
            await save_draft(tx.connection, postponed(draft, now + _ANNOUNCED_AGAIN))
            await self._outbox.append(tx, [events.draft_saved(draft)], now=now)
            return
        await give_up_edit(tx, draft, await find_jobs(tx, key), answer, outbox=self._outbox, now=now)
        tx.after_commit(lambda: _completed.add(1))

    async def _claim(self, tx: Transaction) -> list[tuple[DraftKey, int]]:
        now = await self._clock.now(tx.connection)
        return await claim_withdrawals(tx.connection, now=now, next_time=now + PATIENCE, limit=_BATCH)
