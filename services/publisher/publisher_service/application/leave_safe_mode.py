"""Leaves the safe mode: posts go out again."""

import logging
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import TypeVar

from publisher_service.adapters.postgres.jobs import save_jobs
from publisher_service.adapters.postgres.reconciling import lock_open, summary_of
from publisher_service.adapters.postgres.safe_modes import active_safe_mode, leave, lock_safe_modes, newest_safe_mode
from publisher_service.application.post_log import write_outcomes
from publisher_service.domain.doubt import needs_attention
from publisher_service.domain.safe_mode import SafeMode, Step, Summary
from publisher_service.wire.posts import post_job_changed
from servicekit.failpoints import declare, failpoint
from servicekit.faults import Refused
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.ledger import Call, RequestLedger
from servicekit.pg.outbox import Outbox

R = TypeVar("R")

_log = logging.getLogger(__name__)

_COMMITTED = declare("publisher.leave_safe_mode.committed")

_PAGE = 500


class LeaveSafeMode:
    def __init__(
        self,
        *,
        database: Database,
        clock: DatabaseClock,
        ledger: RequestLedger,
        outbox: Outbox,
        wake_lines: Callable[[], None],
    ) -> None:
        self._database = database
        self._clock = clock
        self._ledger = ledger
        self._outbox = outbox
        self._wake_lines = wake_lines

    async def __call__(self, call: Call[tuple[SafeMode, Summary], R], operator: str, *, force: bool) -> R:
        if force and not await self._is_answered(call):
            # In pages, so that no lock is held for long, and a call that is given up has not been in vain.
            while await self._database.run(self._give_up):
                pass
        answer = await self._ledger.once(call, lambda tx, now: self._leave(tx, now, operator, force=force))
        await failpoint(_COMMITTED)
        return answer

    async def _is_answered(self, call: Call[tuple[SafeMode, Summary], R]) -> bool:
        async with self._database.read() as connection:
            return await self._ledger.look(connection, call) is not None

    async def _leave(self, tx: Transaction, now: datetime, operator: str, *, force: bool) -> tuple[SafeMode, Summary]:
        await lock_safe_modes(tx)
        mode = await active_safe_mode(tx)
        if mode is None:
            raise Refused("NOT_IN_SAFE_MODE", "Publisher is not in safe mode")
        before = await summary_of(tx.connection, mode)
        # Without its last steps nobody knows which posts are in question: not even `force` may go before that.
        if mode.step is not Step.LOOKS or (before.open and not force):
            raise Refused(
                "RECONCILIATION_OPEN",
                f"{before.open} post jobs are not reconciled yet",
                metadata={"open": str(before.open), "step": mode.step},
            )
        await leave(tx, mode, operator, now=now)
        left = await newest_safe_mode(tx)
        assert left is not None
        summary = await summary_of(tx.connection, left)
        tx.after_commit(partial(self._left, operator, summary))
        return left, summary

    async def _give_up(self, tx: Transaction) -> bool:
        """Leaves a page of what is open to a person. Returns whether more may follow."""
        mode = await active_safe_mode(tx)
        if mode is None or mode.step is not Step.LOOKS:
            return False
        now = await self._clock.now(tx)
        why = "the safe mode was left before the outcome was found"
        found = await lock_open(tx.connection, mode.number, limit=_PAGE)
        jobs = [needs_attention(job, why, now=now) for job in found]
        await save_jobs(tx.connection, jobs)
        await self._outbox.append(tx, [post_job_changed(job) for job in jobs], now=now)
        tx.after_commit(partial(write_outcomes, jobs))
        return bool(jobs)

    def _left(self, operator: str, summary: Summary) -> None:
        _log.warning("%s has left the safe mode: %s", operator, summary)
        self._wake_lines()
