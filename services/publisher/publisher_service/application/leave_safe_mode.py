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
from servicekit.pg.database import Transaction
from servicekit.pg.ledger import Call, RequestLedger
from servicekit.pg.outbox import Outbox

R = TypeVar("R")

_log = logging.getLogger(__name__)

_COMMITTED = declare("publisher.leave_safe_mode.committed")


class LeaveSafeMode:
    def __init__(self, *, ledger: RequestLedger, outbox: Outbox, wake_lines: Callable[[], None]) -> None:
        self._ledger = ledger
        self._outbox = outbox
        self._wake_lines = wake_lines

    async def __call__(self, call: Call[tuple[SafeMode, Summary], R], operator: str, *, force: bool) -> R:
        answer = await self._ledger.once(call, lambda tx, now: self._leave(tx, now, operator, force=force))
        await failpoint(_COMMITTED)
        return answer

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
        await self._give_up(tx, mode, now)
        await leave(tx, mode, operator, now=now)
        left = await newest_safe_mode(tx)
        assert left is not None
        summary = await summary_of(tx.connection, left)
        tx.after_commit(partial(self._left, operator, summary))
        return left, summary

    async def _give_up(self, tx: Transaction, mode: SafeMode, now: datetime) -> None:
        """Leaves what is open to a person."""
        why = "the safe mode was left before the outcome was found"
        jobs = [needs_attention(job, why, now=now) for job in await lock_open(tx.connection, mode.number)]
        await save_jobs(tx.connection, jobs)
        await self._outbox.append(tx, [post_job_changed(job) for job in jobs], now=now)
        tx.after_commit(partial(write_outcomes, jobs))

    def _left(self, operator: str, summary: Summary) -> None:
        _log.warning("%s has left the safe mode: %s", operator, summary)
        self._wake_lines()
