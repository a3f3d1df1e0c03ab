"""Calls that arrive together commit together: a use case that gets many small calls carries them out set-based."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Generic

from servicekit.faults import Fault
from servicekit.gathering import PATIENCE, Gathering
from servicekit.pg.database import Transaction
from servicekit.pg.errors import is_late, is_transient, sqlstate
from servicekit.pg.ledger import Answer, Asked, Call, RequestLedger, Result, Work


class Together(Generic[Asked, Result]):
    """Carries out the calls of one method in shared transactions, each call once (`servicekit.gathering`, `ledger`).

    `work` gets what the calls of a transaction ask, in the order of their arrival, and returns a result or a fault for
    each. What it asks for by name (a draft, an account) may be named by several of them: they see each other's changes
    as if they had come one after another. It locks rows in the order of their keys. It runs without the context of its
    callers, so that what it announces needs the trace of the call: use `current_traceparent()` before.
    """

    def __init__(
        self, ledger: RequestLedger, work: Work[Asked, Result], *, most: int = 100, patience: timedelta = PATIENCE
    ) -> None:
        self._ledger = ledger
        self._work = work
        self._gathering = Gathering[_One[Asked, Result], Any](
            self._carry_out,
            share=lambda one: one.call.organization_id,
            apart=lambda one: (one.call.organization_id, one.call.request_id) if one.call.request_id else None,
            is_shared=_is_shared,
            most=most,
            patience=patience,
        )

    async def __call__(self, call: Call[Result, Answer], asked: Asked) -> Answer:
        outcome: Answer | Fault = await self._gathering(_One(call, asked))
        if isinstance(outcome, Fault):
            raise outcome
        return outcome

    async def _carry_out(self, batch: Sequence["_One[Asked, Result]"]) -> Sequence[Any]:
        async def commit() -> None:
            _mark(batch, is_committing=True)

        async def work(tx: Transaction, asked: Sequence[Asked], now: datetime) -> Sequence[Result | Fault]:
            _mark(batch, is_committing=False)  # the transaction may be a rerun
            results = await self._work(tx, asked, now)
            tx.before_commit(commit)
            return results

        return await self._ledger.once_each([(one.call, one.asked) for one in batch], work)


class _One(Generic[Asked, Result]):
    __slots__ = ("asked", "call", "is_committing")

    def __init__(self, call: Call[Result, Any], asked: Asked) -> None:
        self.call = call
        self.asked = asked
        self.is_committing = False


def _mark(batch: Sequence[_One[Any, Any]], *, is_committing: bool) -> None:
    for one in batch:
        one.is_committing = is_committing


def _is_shared(batch: Sequence[_One[Any, Any]], error: BaseException) -> bool:
    """Returns whether all calls get the error, and none is carried out again alone.

    That is so if the database was lost, which is nobody's fault, or if COMMIT may have taken effect: only an error that
    PostgreSQL itself has reported says that it has not, and a call without a `request_id` must not be repeated.
    """
    is_lost = is_transient(error) and not is_late(error)
    return is_lost or (any(one.is_committing for one in batch) and not sqlstate(error))
