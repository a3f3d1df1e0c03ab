"""The periodic steps of Publisher."""

import asyncio
from collections.abc import Callable, Sequence

from opentelemetry import metrics

from publisher_service.adapters.postgres import store
from publisher_service.application.recover_jobs import RecoverJobs
from publisher_service.application.resolve_unknown import ResolveUnknown
from publisher_service.domain.claim import Command
from servicekit.pg.database import Database

_moving = metrics.get_meter(__name__).create_gauge(
    "postflow.post_jobs.moving", description="Post jobs that still have to move, by state"
)
_LOOKS_AT_ONCE = 8
_SHOWN = ("READY", "SENDING", "WAITING", "BLOCKED", "UNKNOWN")


class Sweep:
    """Recovers what stands still, hands on what is due, and looks up what is unknown."""

    def __init__(
        self, recover: RecoverJobs, resolve: ResolveUnknown, hand_on: Callable[[Sequence[Command]], None]
    ) -> None:
        self._recover = recover
        self._resolve = resolve
        self._hand_on = hand_on

    async def step(self) -> bool:
        found = await self._recover()
        self._hand_on(found.due)
        room = asyncio.Semaphore(_LOOKS_AT_ONCE)

        async def look(index: int) -> None:
            async with room:
                await self._resolve(found.questions[index])

        async with asyncio.TaskGroup() as group:
            for index in range(len(found.questions)):
                group.create_task(look(index))
        return found.more


class CountJobs:
    """Jobs by state, of those that still have to move: the ended ones are too many to count."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def step(self) -> None:
        async with self._database.read() as connection:
            counts = await store.moving_jobs_by_state(connection)
        for state in _SHOWN:
            _moving.set(counts.get(state, 0), {"state": state})
