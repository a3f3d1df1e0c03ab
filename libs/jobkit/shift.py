"""The work between a start and a stop: one worker at a time looks for jobs, each does what it has found."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TypeVar

from jobkit.config import Config, Hook
from jobkit.edge import result_of, wait
from jobkit.errors import HookFailed, LateWrite, LockLost, SchedulerError, StoreFailed
from jobkit.hand import Hand, Interrupted
from jobkit.job import Done, Failed, Job, Lock, Outcome
from jobkit.next_run import Policy, Settlement, after_run, before_run, given_back
from jobkit.retry import patience

T = TypeVar("T")

_LEAST_WAIT, _LONGEST_WAIT = 0.001, 86_400.0
_ALWAYS = datetime.max.replace(tzinfo=UTC)
_LAST_WORDS = 1.0
"""Seconds that a hook still has when the grace is over."""
_FIRST_LOOK_AGAIN, _LAST_LOOK_AGAIN = 0.005, 0.1

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """What one look into the store has found."""

    now: datetime
    hand: Hand | None = None
    next_due: datetime | None = None


class Shift:
    def __init__(self, config: Config, wake: asyncio.Event) -> None:
        self._config = config
        self._store = config.store
        self._policy = Policy(
            retry=config.retry,
            reprocess_delay=config.reprocess_delay,
            misfire_after=config.misfire_after,
            pace=config.pace,
        )
        self._wake = wake
        self._turn = asyncio.Lock()
        self._extending = asyncio.Lock()
        self._stopping = asyncio.Event()
        self._out_of_time = asyncio.Event()
        self._over = asyncio.Event()
        self._hands: set[Hand] = set()
        self._hooks: set[asyncio.Timeout] = set()
        self._nothing_due = False
        self.is_idle = False
        self._asleep_until = _ALWAYS
        self._read_at = 0.0
        self._reading: datetime | None = None

    @property
    def is_processing(self) -> bool:
        return bool(self._hands)

    async def work(self, stop: asyncio.Event) -> None:
        async with asyncio.TaskGroup() as group:
            watcher = group.create_task(self._stop_when(stop))
            group.create_task(self._keep_locks())
            async with asyncio.TaskGroup() as workers:
                for number in range(self._config.workers):
                    workers.create_task(self._worker(), name=f"{self._config.name} {number}")
            self._over.set()
            watcher.cancel()

    async def tell(self, error: SchedulerError) -> None:
        if self._config.on_error is None:
            _log.warning("%s: %s", self._config.name, error)
            return
        failure = await result_of(partial(self._in_time, partial(self._config.on_error, error)))
        if isinstance(failure, Exception):
            _log.error("%s: on_error failed", self._config.name, exc_info=failure)

    async def hook(self, name: str, hook: Hook | None) -> None:
        failure = await result_of(hook) if hook else None
        if isinstance(failure, Exception):
            await self.tell(HookFailed(name, failure))

    async def _in_time(self, hook: Hook) -> None:
        """One that hangs does not hold up a stop for ever."""
        async with asyncio.timeout(_LAST_WORDS if self._out_of_time.is_set() else None) as scope:
            self._hooks.add(scope)
            try:
                await hook()
            finally:
                self._hooks.discard(scope)

    async def _stop_when(self, stop: asyncio.Event) -> None:
        await stop.wait()
        self._stopping.set()
        self._wake.set()
        await wait(self._over, self._config.grace)
        self._out_of_time.set()
        for hand in self._hands:
            hand.interrupt()
        for scope in self._hooks:
            scope.reschedule(asyncio.get_running_loop().time() + _LAST_WORDS)

    async def _worker(self) -> None:
        while not self._stopping.is_set():
            hand = await self._find()
            if hand is None:
                return
            await self._do(hand)
            self._hands.discard(hand)
            await self._become_idle()
            if self._config.next_delay:
                await wait(self._stopping, self._config.next_delay)

    # Finding: one at a time, so that idle workers cost what one costs.

    async def _find(self) -> Hand | None:
        """None: it is time to stop."""
        async with self._turn:
            failures = passed_over = 0
            while not self._stopping.is_set():
                self._wake.clear()
                look = await result_of(self._look)
                if isinstance(look, Exception):
                    await self.tell(StoreFailed("lock_next", look))
                    await wait(self._stopping, patience(failures, self._config.draw()))
                    failures += 1
                elif look.hand is not None:
                    return look.hand
                else:
                    failures = 0
                    passed_over = passed_over + 1 if look.next_due and look.next_due <= look.now else 0
                    self._nothing_due = True
                    await self._become_idle()
                    seconds = self._idle_seconds(look.next_due, passed_over)
                    self._asleep_until = self._now() + timedelta(seconds=seconds)
                    await wait(self._wake, seconds)
                    self._asleep_until = _ALWAYS
        return None

    async def _look(self) -> _Look:
        asked = self._config.monotonic()
        now = await self._store.now()
        # The store read its clock between question and answer.
        self._reading, self._read_at = now, (asked + self._config.monotonic()) / 2
        jobs = await self._store.lock_next(now, now + self._config.lock_duration, self._config.batch)
        if not jobs:
            return _Look(now=now, next_due=await self._store.next_due())
        hand = Hand(jobs, asked + self._config.lock_duration.total_seconds())
        self._hands.add(hand)
        self._nothing_due = self.is_idle = False
        return _Look(now=now, hand=hand)

    def _idle_seconds(self, next_due: datetime | None, passed_over: int) -> float:
        longest = min(self._config.idle_delay.total_seconds(), _LONGEST_WAIT)
        if passed_over:
            # What is due is locked by somebody's transaction: asking at once, again and again, would not free it. Nor
            # is it known when the first of the others is due.
            return min(_FIRST_LOOK_AGAIN * 2.0 ** min(passed_over, 30), _LAST_LOOK_AGAIN, longest)
        if next_due is None:
            return longest
        return min(max((next_due - self._now()).total_seconds(), _LEAST_WAIT), longest)

    async def _become_idle(self) -> None:
        if self._nothing_due and not self._hands and not self.is_idle:
            self.is_idle = True
            if self._config.on_idle is not None:
                await self.hook("on_idle", partial(self._in_time, self._config.on_idle))

    def _now(self) -> datetime:
        """The store's time, carried on from its last reading."""
        assert self._reading is not None
        return self._reading + timedelta(seconds=self._config.monotonic() - self._read_at)

    # Doing

    async def _do(self, hand: Hand) -> None:
        jobs = await self._sort_out(hand)
        runs = [[job] for job in jobs] if self._config.on_batch is None else [jobs]
        for together in runs:
            if self._stopping.is_set():
                break
            await self._run(hand, hand.still(together))
        await self._settle(hand, [given_back(job) for job in hand.jobs])

    async def _sort_out(self, hand: Hand) -> list[Job]:
        """Those that are to be run; the others are settled."""
        now = self._now()
        verdicts = [(job, before_run(job, now, self._policy)) for job in hand.jobs]
        await self._settle(hand, [verdict for _, verdict in verdicts if verdict is not None])
        return [job for job, verdict in verdicts if verdict is None]

    async def _run(self, hand: Hand, jobs: Sequence[Job]) -> None:
        if not jobs:
            return
        begun = self._now()
        result = await hand.run(partial(self._handle, jobs), jobs)
        if isinstance(result, Interrupted):
            await self._settle(hand, [given_back(job) for job in jobs])
            return
        now = self._now()
        outcomes = [Failed(error=result)] * len(jobs) if isinstance(result, Exception) else result
        settlements = [
            after_run(job, outcome, begun=begun, now=now, policy=self._policy, draw=self._config.draw())
            for job, outcome in zip(jobs, outcomes, strict=True)
        ]
        await self._settle(hand, settlements)

    async def _handle(self, jobs: Sequence[Job]) -> Sequence[Outcome]:
        if self._config.on_batch is not None:
            outcomes = list(await self._config.on_batch(jobs))
        else:
            assert self._config.on_document is not None
            answers = [await self._config.on_document(job) for job in jobs]
            outcomes = [Done() if answer is None else answer for answer in answers]
        if len(outcomes) != len(jobs) or not all(isinstance(outcome, Done | Failed) for outcome in outcomes):
            raise TypeError(f"for {len(jobs)} jobs the handler returned {outcomes!r:.200}")
        return outcomes

    # Settling

    async def _settle(self, hand: Hand, settlements: Sequence[Settlement]) -> None:
        held = {job.lock for job in hand.still(settlement.job for settlement in settlements)}
        settlements = [settlement for settlement in settlements if settlement.job.lock in held]
        # From here on their locks are not extended, and what is under way comes to its end: an extension after the
        # result would wake a job that is finished, and a refused one would look like a loss.
        hand.put_down(settlement.job for settlement in settlements)
        async with self._extending:
            pass
        updates = [(one.job.lock, one.update) for one in settlements if one.update is not None]
        removals = [one.job.lock for one in settlements if one.update is None]
        written = await self._persist(hand, "update", lambda: self._store.update(updates)) if updates else frozenset()
        removed = await self._persist(hand, "remove", lambda: self._store.remove(removals)) if removals else frozenset()
        self._wake_for(update.sleep_until for _, update in updates)
        for settlement in settlements:
            if settlement.error is not None:
                await self.tell(settlement.error)
            answer = removed if settlement.update is None else written
            if answer is not None and settlement.job.lock not in answer:
                await self.tell(LateWrite(settlement.job))

    def _wake_for(self, times: Iterable[datetime | None]) -> None:
        """Whoever waits for the next job has looked before these were written."""
        if any(time is not None and time < self._asleep_until for time in times):
            self._wake.set()

    async def _persist(
        self, hand: Hand, call: str, write: Callable[[], Awaitable[frozenset[Lock]]]
    ) -> frozenset[Lock] | None:
        """Until it is done; None: until the locks have ended, or the time to stop is over."""
        failures = 0
        while True:
            answer = await result_of(write)
            if not isinstance(answer, Exception):
                return answer
            await self.tell(StoreFailed(call, answer))
            if self._out_of_time.is_set() or self._config.monotonic() >= hand.lock_end:
                return None
            await wait(self._out_of_time, patience(failures, self._config.draw()))
            failures += 1

    # Keeping

    async def _keep_locks(self) -> None:
        period = self._config.lock_duration.total_seconds() / 3
        delay = period
        while not await wait(self._over, delay):
            asked = self._config.monotonic()
            async with self._extending:
                hands = {hand: hand.jobs for hand in self._hands}
                locks = [job.lock for jobs in hands.values() for job in jobs]
                answer = await result_of(partial(self._extend, locks)) if locks else frozenset()
            if isinstance(answer, Exception):
                await self.tell(StoreFailed("extend", answer))
            delay = period / 4 if isinstance(answer, Exception) else period
            for hand, jobs in hands.items():
                await self._keep(hand, jobs, answer, asked)

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
            await self.tell(LockLost(job))
