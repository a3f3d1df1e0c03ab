"""The periodic steps of Publisher."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from opentelemetry import metrics

from publisher_service.adapters.postgres import store
from publisher_service.application.recover_jobs import Found
from publisher_service.domain.claim import Command
from publisher_service.domain.post_job import PostJob
from servicekit.ops import Number
from servicekit.pg.database import Database

_moving = metrics.get_meter(__name__).create_gauge(
    "postflow.post_jobs.moving", description="Post jobs that still have to move, by state"
)
_LOOKS_AT_ONCE = 8
_MOST_QUESTIONS = 1000
_SHOWN = ("READY", "SENDING", "WAITING", "BLOCKED", "UNKNOWN")


class LookUps:
    """Asks the providers what became of posts, a few at a time: a provider that hangs holds up nothing but these."""

    def __init__(self, resolve: Callable[[PostJob], Awaitable[None]]) -> None:
        self._resolve = resolve
        self._questions: dict[tuple[str, str], PostJob] = {}
        self.some = asyncio.Event()

    def add(self, questions: Sequence[PostJob]) -> None:
        """What finds no room is found again by a later sweep."""
        for question in questions:
            if len(self._questions) < _MOST_QUESTIONS:
                self._questions[question.organization_id, question.id] = question
        if questions:
            self.some.set()

    async def step(self) -> bool:
        batch = [self._questions.pop(key) for key in list(self._questions)[:_LOOKS_AT_ONCE]]
        async with asyncio.TaskGroup() as group:
            for question in batch:
                group.create_task(self._ask(question))
        return bool(self._questions)

    async def _ask(self, question: PostJob) -> None:
        await self._resolve(question)


class Sweep:
    """Recovers what stands still, hands on what is due, and what is unknown to those who look it up."""

    def __init__(
        self,
        recover: Callable[[], Awaitable[Found]],
        look_up: Callable[[Sequence[PostJob]], None],
        hand_on: Callable[[Sequence[Command]], None],
    ) -> None:
        self._recover = recover
        self._look_up = look_up
        self._hand_on = hand_on

    async def step(self) -> bool:
        found = await self._recover()
        self._hand_on(found.due)
        self._look_up(found.questions)
        return found.more


class CountJobs:
    """Jobs by state, of those that still have to move: the ended ones are too many to count."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def step(self) -> None:
        for state, count in (await self._counts()).items():
            _moving.set(count, {"state": state})

    async def numbers(self) -> list[Number]:
        """For the stats of the process."""
        return [
            Number(name=f"post_jobs.{state.lower()}", value=count) for state, count in (await self._counts()).items()
        ]

    async def _counts(self) -> dict[str, int]:
        async with self._database.read() as connection:
            counts = await store.moving_jobs_by_state(connection)
        return {state: counts.get(state, 0) for state in _SHOWN}
