"""Writes the results of runs, a group of jobs in one statement."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime
from typing import TypeAlias

from jobkit.config import Config
from jobkit.edge import result_of, wait
from jobkit.errors import LateWrite, StoreFailed
from jobkit.hand import Hand
from jobkit.hooks import Hooks
from jobkit.job import Lock
from jobkit.next_run import Settlement
from jobkit.retry import patience

OnWritten: TypeAlias = Callable[[Iterable[datetime | None]], None]


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

    async def settle(self, hand: Hand, settlements: Sequence[Settlement]) -> None:
        held = {job.lock for job in hand.still(settlement.job for settlement in settlements)}
        settlements = [settlement for settlement in settlements if settlement.job.lock in held]
        if not settlements:
            return
        # From here on their locks are not extended, and what is under way comes to its end: an extension after the
        # result would wake a job that is finished, and a refused one would look like a loss.
        hand.put_down(settlement.job for settlement in settlements)
        async with self.extending:
            pass
        written = await self._write(hand, settlements)
        for settlement in settlements:
            if settlement.error is not None:
                await self._hooks.tell(settlement.error)
            if written is not None and settlement.job.lock not in written:
                await self._hooks.tell(LateWrite(settlement.job))

    async def _write(self, hand: Hand, settlements: Sequence[Settlement]) -> frozenset[Lock] | None:
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

    async def _persist(
        self, hand: Hand, call: str, write: Callable[[], Awaitable[frozenset[Lock]]]
    ) -> frozenset[Lock] | None:
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
