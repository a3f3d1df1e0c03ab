"""Writes the results of runs, a group of jobs in one statement."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime
from typing import TypeAlias, TypeVar

from jobkit.config import Config
from jobkit.edge import result_of, wait
from jobkit.editing import redefined
from jobkit.errors import LateWrite, StoreFailed
from jobkit.hand import Hand
from jobkit.hooks import Hooks
from jobkit.job import Job, Lock
from jobkit.next_run import Settlement
from jobkit.retry import patience
from jobkit.store import JobTable

T = TypeVar("T")

OnWritten: TypeAlias = Callable[[Iterable[datetime | None]], None]
Decision: TypeAlias = tuple[Job, Callable[[Job], Settlement]]
"""A job, and how to settle it: decided once more if its row is edited before the settlement is written."""

_REDEFINITIONS = 10


class Settler:
    def __init__(self, config: Config, hooks: Hooks, out_of_time: asyncio.Event, on_written: OnWritten) -> None:
        """`on_written` gets the times at which the settled jobs are looked at next."""
        self._config = config
        self._store = config.store
        self._hooks = hooks
        self._out_of_time = out_of_time
        self._on_written = on_written
        self.extending = asyncio.Lock()
        """Held while locks are being extended."""

    async def settle(self, hand: Hand, decisions: Sequence[Decision]) -> None:
        held = {job.lock for job in hand.still(job for job, _ in decisions)}
        decisions = [(job, decide) for job, decide in decisions if job.lock in held]
        if not decisions:
            return
        # From here on their locks are not extended, and what is under way comes to its end: an extension after the
        # result would wake a job that is finished, and a refused one would look like a loss.
        hand.put_down(job for job, _ in decisions)
        async with self.extending:
            pass
        for _ in range(_REDEFINITIONS):
            settlements = [decide(job) for job, decide in decisions]
            written = await self._write(hand, settlements)
            decisions = await self._redefined(hand, [each for each in decisions if each[0].lock not in written])
            again = {job.id for job, _ in decisions}
            await self._tell([one for one in settlements if one.job.id not in again], written)
            if not decisions:
                return
        for job, _ in decisions:
            await self._hooks.tell(LateWrite(job))

    async def _redefined(self, hand: Hand, refused: Sequence[Decision]) -> list[Decision]:
        """Those whose locks hold, but whose rows were edited during the run: it settles into what they say now."""
        if not refused or not isinstance(self._store, JobTable):
            return []
        table = self._store
        rows = await self._persist(hand, "held", lambda: table.held([job.lock for job, _ in refused]))
        fresh = {row.id: row for row in rows or ()}
        return [(redefined(job, fresh[job.id]), decide) for job, decide in refused if job.id in fresh]

    async def _tell(self, settlements: Sequence[Settlement], written: frozenset[Lock]) -> None:
        for settlement in settlements:
            if settlement.error is not None:
                await self._hooks.tell(settlement.error)
            if settlement.job.lock not in written:
                await self._hooks.tell(LateWrite(settlement.job))

    async def _write(self, hand: Hand, settlements: Sequence[Settlement]) -> frozenset[Lock]:
        """The locks that held; those of which nobody knows count as held."""
        updates = [(one.job.lock, one.update) for one in settlements if one.update is not None]
        removals = [one.job.lock for one in settlements if one.update is None]
        written: frozenset[Lock] = frozenset()
        if updates:
            answer = await self._persist(hand, "update", lambda: self._store.update(updates))
            written |= {lock for lock, _ in updates} if answer is None else answer
        if removals:
            answer = await self._persist(hand, "remove", lambda: self._store.remove(removals))
            written |= set(removals) if answer is None else answer
        self._on_written(update.sleep_until for _, update in updates)
        return written

    async def _persist(self, hand: Hand, call: str, write: Callable[[], Awaitable[T]]) -> T | None:
        """Until it is done; None: until the locks have ended, or the time to stop is over."""
        failures = 0
        while True:
            answer = await result_of(write)
            if not isinstance(answer, Exception):
                return answer
            await self._hooks.tell(StoreFailed(call, answer))
            if self._out_of_time.is_set() or self._config.monotonic() >= hand.lock_end:
                return None
            await wait(self._out_of_time, patience(failures, self._config.draw()))
            failures += 1
