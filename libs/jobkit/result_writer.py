"""Writes the results of runs, a group of jobs in one statement."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any, TypeAlias, TypeVar

from jobkit.batch import Batch
from jobkit.config import Config
from jobkit.editing import redefined
from jobkit.errors import LateWrite, StoreFailed
from jobkit.guards import result_of, wait
from jobkit.hooks import Hooks
from jobkit.job import Job, JobUpdate, Lock
from jobkit.retry import patience
from jobkit.settlement import Settlement
from jobkit.store import JobTable

T = TypeVar("T")

OnWritten: TypeAlias = Callable[[Iterable[datetime | None]], None]
Decide: TypeAlias = Callable[[Job], Settlement]
Decision: TypeAlias = tuple[Job, Decide]
"""A job, and how to settle it: decided once more if its row is edited before the settlement is written."""

_REDEFINITIONS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group:
    """All of them updates, or all of them removals: one statement."""

    settlements: Sequence[tuple[Settlement, Decide]]
    redefinitions: int = 0

    @property
    def updates(self) -> list[tuple[Lock, JobUpdate]]:
        return [(one.job.lock, one.update) for one, _ in self.settlements if one.update is not None]

    @property
    def locks(self) -> list[Lock]:
        return [one.job.lock for one, _ in self.settlements]

    @property
    def call(self) -> str:
        return "update" if self.updates else "remove"

    def halves(self) -> "list[_Group]":
        middle = len(self.settlements) // 2
        parts = (self.settlements[:middle], self.settlements[middle:])
        return [replace(self, settlements=part) for part in parts if part]


def _groups(decisions: Sequence[Decision], redefinitions: int = 0) -> list[_Group]:
    settlements = [(decide(job), decide) for job, decide in decisions]
    updates = [each for each in settlements if each[0].update is not None]
    removals = [each for each in settlements if each[0].update is None]
    return [_Group(settlements=part, redefinitions=redefinitions) for part in (updates, removals) if part]


class ResultWriter:
    def __init__(self, config: Config, hooks: Hooks, out_of_time: asyncio.Event, on_written: OnWritten) -> None:
        """`on_written` gets the times at which the settled jobs are looked at next."""
        self._config = config
        self._store = config.store
        self._hooks = hooks
        self._out_of_time = out_of_time
        self._on_written = on_written
        self.extending = asyncio.Lock()
        """Held while locks are being extended."""

    def settle(self, batch: Batch, decisions: Sequence[Decision]) -> Coroutine[Any, Any, None]:
        """The jobs are out of the hand at once, not only when the result is awaited.

        From then on their locks are not extended: an extension after the result would wake a job that is finished, and
        a refused one would look like a loss.
        """
        held = {job.lock for job in batch.still(job for job, _ in decisions)}
        taken = [(job, decide) for job, decide in decisions if job.lock in held]
        batch.release(job for job, _ in taken)
        return self._settle(batch, taken)

    async def _settle(self, batch: Batch, decisions: Sequence[Decision]) -> None:
        if not decisions:
            return
        async with self.extending:
            pass  # what is under way comes to its end
        # Others of the hand may have their locks extended from here on.
        await self._write_all(batch.lock_end, deque(_groups(decisions)))

    async def _write_all(self, lock_end: float, waiting: deque[_Group]) -> None:
        """A group that the store refuses is halved: it may be one row of it that cannot be written, by a constraint."""
        failures = 0
        while waiting:
            group = waiting.popleft()
            answer = await result_of(partial(self._write, group))
            if not isinstance(answer, Exception):
                failures = 0
                waiting.extendleft(await self._refused(lock_end, group, answer))
                continue
            await self._hooks.report(StoreFailed(group.call, answer))
            if self._is_too_late(lock_end):
                # Of these nobody knows: they count as written.
                for unknown in (group, *waiting):
                    await self._report_all(unknown.settlements, frozenset(unknown.locks))
                return
            if len(group.settlements) > 1:
                waiting.extendleft(reversed(group.halves()))
            else:
                waiting.append(group)
            await wait(self._out_of_time, patience(failures, self._config.draw()))
            failures += 1

    async def _write(self, group: _Group) -> frozenset[Lock]:
        """The locks that held."""
        updates = group.updates
        written = await (self._store.update(updates) if updates else self._store.remove(group.locks))
        self._on_written(update.sleep_until for _, update in updates)
        return written

    async def _refused(self, lock_end: float, group: _Group, written: frozenset[Lock]) -> list[_Group]:
        """What is to be written once more, since its row was edited during the run."""
        refused = [(one.job, decide) for one, decide in group.settlements if one.job.lock not in written]
        is_last = group.redefinitions + 1 >= _REDEFINITIONS
        redefined = [] if is_last else await self._redefined(lock_end, refused)
        again = {job.id for job, _ in redefined}
        await self._report_all([each for each in group.settlements if each[0].job.id not in again], written)
        return _groups(redefined, group.redefinitions + 1)

    async def _redefined(self, lock_end: float, refused: Sequence[Decision]) -> list[Decision]:
        """Those whose locks hold, but whose rows were edited during the run: it settles into what they say now."""
        if not refused or not isinstance(self._store, JobTable):
            return []
        table = self._store
        rows = await self._persist(lock_end, "held", lambda: table.held([job.lock for job, _ in refused]))
        fresh = {row.id: row for row in rows or ()}
        return [(redefined(job, fresh[job.id]), decide) for job, decide in refused if job.id in fresh]

    async def _report_all(self, settlements: Sequence[tuple[Settlement, Decide]], written: frozenset[Lock]) -> None:
        for settlement, _ in settlements:
            if settlement.error is not None:
                await self._hooks.report(settlement.error)
            if settlement.job.lock not in written:
                await self._hooks.report(LateWrite(settlement.job))

    async def _persist(self, lock_end: float, call: str, write: Callable[[], Awaitable[T]]) -> T | None:
        """Until it is done; None: until the locks have ended, or the time to stop is over."""
        failures = 0
        while True:
            answer = await result_of(write)
            if not isinstance(answer, Exception):
                return answer
            await self._hooks.report(StoreFailed(call, answer))
            if self._is_too_late(lock_end):
                return None
            await wait(self._out_of_time, patience(failures, self._config.draw()))
            failures += 1

    def _is_too_late(self, lock_end: float) -> bool:
        return self._out_of_time.is_set() or self._config.monotonic() >= lock_end
