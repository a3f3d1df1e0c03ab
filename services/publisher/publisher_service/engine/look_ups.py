"""Looks up unknown outcomes. Each provider has a pool of its own, so one that hangs blocks only itself."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from opentelemetry import metrics

from publisher_service.application.recover_jobs import Question
from publisher_service.domain.post_job import PostJob
from publisher_service.engine.turn_queue import TurnQueue
from servicekit.run.loops import wait
from servicekit.run.transient import is_transient
from servicekit.run.zeros import from_zero

_log = logging.getLogger(__name__)

_MOST_WAITING = 1000
_meter = metrics.get_meter(__name__)
_failures = from_zero(
    _meter.create_counter("postflow.publish.look_failures", description="Look-ups whose result could not be recorded")
)


class LookUps:
    name = "look-ups"

    def __init__(self, resolve: Callable[[PostJob], Awaitable[None]], lookers: Callable[[str], int]) -> None:
        """`lookers` returns how many looks a provider can take at once."""
        self._resolve = resolve
        self._lookers = lookers
        self._pools: dict[str, _Pool] = {}
        self._some = asyncio.Event()

    def add(self, questions: Sequence[Question]) -> None:
        """Takes as many questions as there is room for, fairly over accounts; a later sweep finds the others again."""
        for question in questions:
            pool = self._pools.get(question.provider)
            if pool is None:
                pool = self._pools[question.provider] = _Pool(self._lookers(question.provider))
            pool.add(question.job)
        if questions:
            self._some.set()

    async def run(self, stop: asyncio.Event) -> None:
        """Looks until `stop`, then waits for the looks that have begun; the provider's time limit ends each."""
        async with asyncio.TaskGroup() as group:
            while not stop.is_set():
                await wait(self._some, 0.25)
                self._some.clear()
                if not stop.is_set():
                    self._begin(group)

    def _begin(self, group: asyncio.TaskGroup) -> None:
        for pool in self._pools.values():
            while (job := pool.next()) is not None:
                group.create_task(self._look(pool, job))

    async def _look(self, pool: "_Pool", job: PostJob) -> None:
        try:
            await self._resolve(job)
        except Exception as error:  # noqa: BLE001 - one look that cannot be recorded must not end the process
            if is_transient(error):
                _log.warning("a look at post job %s is not recorded, the database is unreachable: %r", job.id, error)
            else:
                _failures.add(1)
                _log.exception("a look at post job %s cannot be recorded", job.id)
        finally:
            pool.done(job)
            self._some.set()


class _Pool:
    """The looks of one provider: at most `size` at once, in turn over organizations and accounts."""

    def __init__(self, size: int) -> None:
        self._room = size
        self._waiting = TurnQueue[PostJob](_account)
        self._known: set[tuple[str, str]] = set()

    def add(self, job: PostJob) -> None:
        """Takes a job. When too many wait, drops one of the account that has most; a later sweep finds it again."""
        if _key(job) in self._known:
            return
        self._known.add(_key(job))
        self._waiting.add(job)
        if len(self._waiting) > _MOST_WAITING:
            self._known.discard(_key(self._waiting.drop_newest()))

    def next(self) -> PostJob | None:
        """Returns the next look to begin; None while there is no room or nothing waits."""
        if not self._room or not self._waiting:
            return None
        self._room -= 1
        (job,) = self._waiting.take(1)
        return job

    def done(self, job: PostJob) -> None:
        self._room += 1
        self._known.discard(_key(job))


def _key(job: PostJob) -> tuple[str, str]:
    return job.organization_id, job.id


def _account(job: PostJob) -> tuple[str, str]:
    return job.organization_id, job.target.social_account_id
