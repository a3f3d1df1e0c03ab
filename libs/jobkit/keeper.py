"""Extends the locks of runs that last."""

import asyncio
from collections.abc import Sequence
from functools import partial

from jobkit.config import Config
from jobkit.edge import result_of, wait
from jobkit.errors import LockLost, LoopBlocked, StoreFailed
from jobkit.hand import Hand
from jobkit.hooks import Hooks
from jobkit.job import Job, Lock
from jobkit.settler import Settler


class Keeper:
    def __init__(self, config: Config, hooks: Hooks, settler: Settler, hands: set[Hand]) -> None:
        self._config = config
        self._store = config.store
        self._hooks = hooks
        self._settler = settler
        self._hands = hands

    async def keep(self, over: asyncio.Event) -> None:
        duration = self._config.lock_duration.total_seconds()
        delay = period = duration / 3
        while True:
            slept_at = self._config.monotonic()
            if await wait(over, delay):
                return
            late = self._config.monotonic() - slept_at - delay
            if late >= duration - delay:
                await self._hooks.tell(LoopBlocked(late))
            delay = period if await self._extend_all() else period / 4

    async def _extend_all(self) -> bool:
        asked = self._config.monotonic()
        async with self._settler.extending:
            hands = {hand: hand.jobs for hand in self._hands}
            locks = [job.lock for jobs in hands.values() for job in jobs]
            answer = await result_of(partial(self._extend, locks)) if locks else frozenset()
        if isinstance(answer, Exception):
            await self._hooks.tell(StoreFailed("extend", answer))
        for hand, jobs in hands.items():
            await self._keep(hand, jobs, answer, asked)
        return not isinstance(answer, Exception)

    async def _extend(self, locks: Sequence[Lock]) -> frozenset[Lock]:
        lock_until = await self._store.now() + self._config.lock_duration
        return await self._store.extend(locks, lock_until)

    async def _keep(self, hand: Hand, jobs: Sequence[Job], answer: frozenset[Lock] | Exception, asked: float) -> None:
        if not isinstance(answer, Exception):
            hand.lock_end = asked + self._config.lock_duration.total_seconds()
            lost = hand.still(job for job in jobs if job.lock not in answer)
        elif self._config.monotonic() >= hand.lock_end:
            # Nobody could be asked, and by now another worker may have them.
            lost = hand.still(jobs)
        else:
            lost = []
        hand.lose(lost)
        for job in lost:
            await self._hooks.tell(LockLost(job))
