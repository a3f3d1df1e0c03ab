"""Looks up unknown outcomes: each provider has a pool of its own, which is fair; one that hangs fills its own."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from opentelemetry import metrics

from publisher_service.application.recover_jobs import Question
from publisher_service.domain.post_job import PostJob
from publisher_service.engine.turns import TurnQueue
from servicekit.run.loops import wait
from servicekit.run.transient import is_transient
from servicekit.run.zeros import from_zero

log = logging.getLogger(__name__)

_MOST_WAITING = 1000
_failures = from_zero(
    metrics.get_meter(__name__).create_counter(
        "postflow.publish.look_failures", description="Looks whose result could not be recorded"
    )
)


class LookUps:
    name = "look-ups"

    def __init__(self, resolve: Callable[[PostJob], Awaitable[None]], lookers: Callable[[str], int]) -> None:
        """`lookers` tells how many looks at once a provider bears."""
        self._resolve = resolve
        self._lookers = lookers
        self._pools: dict[str, _Pool] = {}
        self._some = asyncio.Event()

    def add(self, questions: Sequence[Question]) -> None:
        """Takes what there is room for; a later sweep finds the rest again. No account fills the room alone."""
        for question in questions:
            pool = self._pools.get(question.provider)
            if pool is None:
                pool = self._pools[question.provider] = _Pool(self._lookers(question.provider))
            pool.add(question.job)
        if questions:
            self._some.set()

    async def run(self, stop: asyncio.Event) -> None:
        """Looks until `stop`; each look that has begun ends within the time limit of its provider."""
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
        except Exception as error:
            if is_transient(error):
                log.warning("a look at post job %s is not recorded, the database is away: %r", job.id, error)
            else:
                _failures.add(1)
                log.exception("a look at post job %s cannot be recorded", job.id)
        finally:
            pool.done(job)
            self._some.set()


class _Pool:
    """The looks of one provider: so many at once, an organization after the other, and an account after the other."""

    def __init__(self, size: int) -> None:
        self._room = size
        self._waiting = TurnQueue[PostJob](_account)
        self._known: set[tuple[str, str]] = set()

    def add(self, job: PostJob) -> None:
        """Takes a job; when too many wait, one of those who have most goes. A later sweep finds it again."""
        if _key(job) in self._known:
            return
        self._known.add(_key(job))
        self._waiting.add(job)
        if len(self._waiting) > _MOST_WAITING:
            self._known.discard(_key(self._waiting.drop_newest()))

    def next(self) -> PostJob | None:
        """The next look to begin; None while there is no room or nothing waits."""
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
