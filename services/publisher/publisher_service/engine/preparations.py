"""Runs the preparations that are due. Each provider has a pool of its own, so one that hangs blocks only itself.

One organization has half of a pool at most: media of one tenant that drips holds up only its own posts.
"""

import asyncio
import logging
from collections import Counter

from opentelemetry import metrics

from publisher_service.adapters.providers.provider import Provider
from publisher_service.application.prepare_posts import PreparePosts
from publisher_service.domain.preparation import Preparation
from servicekit.run.loops import wait
from servicekit.run.transient import is_transient
from servicekit.run.zeros import from_zero

_log = logging.getLogger(__name__)

# Preparations that are due set the event; this is for one that was missed.
_PERIOD = 30.0
_meter = metrics.get_meter(__name__)
_failures = from_zero(
    _meter.create_counter(
        "postflow.publish.preparation_failures", description="Preparations whose result could not be recorded"
    )
)


class Preparations:
    name = "preparations"

    def __init__(self, prepare: PreparePosts, asked: asyncio.Event) -> None:
        """`asked` is set when a post has asked for its preparation."""
        self._prepare = prepare
        self._asked = asked

    async def run(self, stop: asyncio.Event) -> None:
        """Prepares until `stop`, then waits for what has begun; the provider's time limit ends each."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._wake_when(stop))
            pools = [_Pool(self._prepare, provider, self._asked) for provider in self._prepare.providers]
            while not stop.is_set():
                self._asked.clear()
                for pool in pools:
                    if not stop.is_set():
                        await pool.begin(group)
                await wait(self._asked, _PERIOD)

    async def _wake_when(self, stop: asyncio.Event) -> None:
        await stop.wait()
        self._asked.set()


class _Pool:
    def __init__(self, prepare: PreparePosts, provider: Provider, again: asyncio.Event) -> None:
        self._prepare = prepare
        self._provider = provider
        self._room = provider.limits.preparers
        self._share = max(provider.limits.preparers // 2, 1)
        # By organization.
        self._taken: Counter[str] = Counter()
        self._again = again

    async def begin(self, group: asyncio.TaskGroup) -> None:
        """Begins as many preparations as there is room for."""
        if not self._room:
            return
        try:
            busy = [each for each, count in self._taken.items() if count >= self._share]
            taken = await self._prepare.take(self._provider, self._room, busy=busy)
        except Exception as error:
            if not is_transient(error):
                raise
            _log.warning("preparing waits, the database is unreachable: %r", error)
            return
        for each in taken:
            self._count(each, 1)
            group.create_task(self._run(each))
        if taken:
            self._again.set()

    async def _run(self, taken: Preparation) -> None:
        try:
            await self._prepare(taken)
        except Exception as error:  # noqa: BLE001 - one that cannot be recorded must not end the process
            if is_transient(error):
                _log.warning("the preparation of post job %s is not recorded: %r", taken.post_job_id, error)
            else:
                _failures.add(1)
                _log.exception("the preparation of post job %s cannot be recorded", taken.post_job_id)
        finally:
            self._count(taken, -1)
            self._again.set()

    def _count(self, taken: Preparation, change: int) -> None:
        self._room -= change
        self._taken[taken.organization_id] += change
        if not self._taken[taken.organization_id]:
            del self._taken[taken.organization_id]
