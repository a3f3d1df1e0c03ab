"""Writes the results of runs, in as few calls of the store as possible."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any, TypeAlias, TypeVar

from jobkit.batch import Batch
from jobkit.config import Config
from jobkit.editing import with_definition_of
from jobkit.errors import LateWrite, StoreFailed
from jobkit.guards import result_of, wait
from jobkit.hooks import Hooks
from jobkit.job import Job, JobUpdate, Lock
from jobkit.retry import store_backoff
from jobkit.settlement import Settlement
from jobkit.store import JobTable

T = TypeVar("T")

OnWritten: TypeAlias = Callable[[Iterable[datetime | None]], None]
Decide: TypeAlias = Callable[[Job], Settlement]
Decision: TypeAlias = tuple[Job, Decide]
"""A job and the function that settles it, called again if the row was edited before the settlement is written."""

_REDEFINITIONS = 10
"""How often a settlement is decided again, against a row that is edited all the time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group:
    """Settlements that one call of the store can write: all of them updates, or all of them removals."""

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
        """`on_written` gets the new `sleep_until` of the jobs that were settled."""
        self._config = config
        self._store = config.store
        self._hooks = hooks
        self._out_of_time = out_of_time
        self._on_written = on_written
        self.extending = asyncio.Lock()
        """Held while locks are being extended."""

    def settle(self, batch: Batch, decisions: Sequence[Decision]) -> Coroutine[Any, Any, None]:
        """Removes the jobs from the batch at once, and returns the coroutine that writes their results.

        From then on their locks are not extended: an extension after the result would give a finished job a
        `sleep_until`, and a refused one would look like a lost lock.
        """
        held = {job.lock for job in batch.still_locked(job for job, _ in decisions)}
        taken = [(job, decide) for job, decide in decisions if job.lock in held]
        batch.release(job for job, _ in taken)
        return self._settle(batch, taken)

    async def _settle(self, batch: Batch, decisions: Sequence[Decision]) -> None:
        if not decisions:
            return
        async with self.extending:
            pass  # an extension that has begun may include these locks
        # From here on the locks of other jobs may be extended.
        await self._write_all(batch.lock_end, deque(_groups(decisions)))

    async def _write_all(self, lock_end: float, waiting: deque[_Group]) -> None:
        """Halves a group that the store refuses, since a constraint may refuse a single row of it."""
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
                # Whether these were written is unknown; they are not reported as late.
                for unknown in (group, *waiting):
                    await self._report_all(unknown.settlements, frozenset(unknown.locks))
                return
            if len(group.settlements) > 1:
                waiting.extendleft(reversed(group.halves()))
            else:
                waiting.append(group)
            await wait(self._out_of_time, store_backoff(failures, self._config.draw()))
            failures += 1

    async def _write(self, group: _Group) -> frozenset[Lock]:
        """Returns the locks that held."""
        updates = group.updates
        written = await (self._store.update(updates) if updates else self._store.remove(group.locks))
        self._on_written(update.sleep_until for _, update in updates)
        return written

    async def _refused(self, lock_end: float, group: _Group, written: frozenset[Lock]) -> list[_Group]:
        """Returns the groups to write again, for rows that were edited during the run; reports the rest."""
        refused = [(one.job, decide) for one, decide in group.settlements if one.job.lock not in written]
        is_last = group.redefinitions + 1 >= _REDEFINITIONS
        redefined = [] if is_last else await self._redefined(lock_end, refused)
        again = {job.id for job, _ in redefined}
        await self._report_all([each for each in group.settlements if each[0].job.id not in again], written)
        return _groups(redefined, group.redefinitions + 1)

    async def _redefined(self, lock_end: float, refused: Sequence[Decision]) -> list[Decision]:
        """Returns the refused jobs whose locks hold, with the definitions that their rows have now."""
        if not refused or not isinstance(self._store, JobTable):
            return []
        table = self._store
        rows = await self._persist(lock_end, "held", lambda: table.held([job.lock for job, _ in refused]))
        fresh = {row.id: row for row in rows or ()}
        return [(with_definition_of(fresh[job.id], job), decide) for job, decide in refused if job.id in fresh]

    async def _report_all(self, settlements: Sequence[tuple[Settlement, Decide]], written: frozenset[Lock]) -> None:
        for settlement, _ in settlements:
            if settlement.error is not None:
                await self._hooks.report(settlement.error)
            if settlement.job.lock not in written:
                await self._hooks.report(LateWrite(settlement.job))

    async def _persist(self, lock_end: float, call: str, write: Callable[[], Awaitable[T]]) -> T | None:
        """Repeats the call until it succeeds. Returns None if the locks expire or the grace of a stop ends before."""
        failures = 0
        while True:
            answer = await result_of(write)
            if not isinstance(answer, Exception):
                return answer
            await self._hooks.report(StoreFailed(call, answer))
            if self._is_too_late(lock_end):
                return None
            await wait(self._out_of_time, store_backoff(failures, self._config.draw()))
            failures += 1

    def _is_too_late(self, lock_end: float) -> bool:
        return self._out_of_time.is_set() or self._config.monotonic() >= lock_end
