"""The loop that gives late slots other times, in queues whose late policy is RESLOT.

Slots become late while they cannot be handed over: Queue, NATS or Publisher was down, or the account was disabled or
not connected. Dispatch leaves them to this loop. If Schedule does not answer for long, they go out at the pace of their
queue, because the posts behind them wait.
"""

import logging
from datetime import datetime, timedelta
from functools import partial

from opentelemetry import metrics

from queue_service.adapters.postgres import late
from queue_service.application.arranger import Arranger
from queue_service.application.times_on_demand import TimesOnDemand
from queue_service.domain.account import BEFORE_ALL, AccountKey
from queue_service.domain.free_times import FreeTimes
from queue_service.domain.policy import Policy
from queue_service.domain.resuming import reslot
from queue_service.domain.schedule_check import ReadTimes
from servicekit import failpoints
from servicekit.failpoints import failpoint
from servicekit.faults import Fault
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction

MOVED = failpoints.declare("queue.reslot.moved")

PATIENCE = timedelta(minutes=10)
"""How long slots wait for an answer of Schedule."""
_FAILURES = 3
"""So many unanswered questions in a row mean that Schedule is down: the others are not asked."""
_AT_ONCE = 100

_log = logging.getLogger(__name__)
_meter = metrics.get_meter(__name__)
_moved = _meter.create_counter("postflow.queue.slots.reslotted", description="Late slots that got other times")


class ReslotLate:
    def __init__(
        self, *, database: Database, clock: DatabaseClock, policy: Policy, arranger: Arranger, times: TimesOnDemand
    ) -> None:
        self._database = database
        self._clock = clock
        self._policy = policy
        self._arranger = arranger
        self._times = times
        # The accounts for which Schedule has not answered, since when.
        self._unanswered: dict[AccountKey, datetime] = {}
        _moved.add(0)

    async def __call__(self) -> None:
        """Tries each account with late slots once."""
        after, unanswered = BEFORE_ALL, dict[AccountKey, datetime]()
        while True:
            async with self._database.session() as session:
                now = await self._clock.now(session.connection)
                accounts = await late.find_late(session, after, now=now, limit=_AT_ONCE)
            if not accounts:
                break
            after = accounts[-1]
            for each in accounts:
                since = self._unanswered.get(each.account, now)
                if not await self._try(each.account, waited=now - since, is_down=len(unanswered) >= _FAILURES):
                    unanswered[each.account] = since
        self._unanswered = unanswered

    async def _try(self, account: AccountKey, *, waited: timedelta, is_down: bool) -> bool:
        """Returns whether the account's late slots have other times, or need none any more."""
        if waited >= PATIENCE:
            await self._database.run(partial(self._reslot, account, None, is_paced=True))
            return True
        if is_down:
            return False
        try:
            await self._times(account, partial(self._attempt, account))
        except Fault as fault:
            if not waited:
                _log.warning("late slots of account %s of %s wait: %s", account[1], account[0], fault.message)
            return False
        await failpoint(MOVED)
        return True

    async def _attempt(self, account: AccountKey, read: ReadTimes | None) -> None:
        await self._database.run(partial(self._reslot, account, read))

    async def _reslot(
        self, account: AccountKey, read: ReadTimes | None, tx: Transaction, *, is_paced: bool = False
    ) -> None:
        now = await self._clock.now(tx.connection)
        snapshot = await self._arranger.lock(tx, account, now=now, read=read)
        if not snapshot.queue.reslots:
            return
        free = None if is_paced else FreeTimes(snapshot, read)
        arrangement = reslot(snapshot, free, now=now, notice=self._policy.notice)
        if not arrangement.changes_anything:
            await late.correct_due_time(tx, account)
            return
        arranged = await self._arranger.apply(tx, snapshot, arrangement, now)
        tx.after_commit(lambda: _moved.add(len(arranged.moved)))
