"""The periodic steps of Publisher."""

from collections.abc import Awaitable, Callable, Sequence

from opentelemetry import metrics

from publisher_service.adapters.postgres import store
from publisher_service.application.recover_jobs import Found, Question
from publisher_service.domain.claim import Command
from servicekit.ops import Number
from servicekit.pg.database import Database

_moving = metrics.get_meter(__name__).create_gauge(
    "postflow.post_jobs.moving", description="Post jobs that still have to move, by state"
)
_SHOWN = ("READY", "SENDING", "WAITING", "BLOCKED", "UNKNOWN")


class Sweep:
    """Recovers what stands still, hands on what is due, and what is unknown to those who look it up."""

    def __init__(
        self,
        recover: Callable[[], Awaitable[Found]],
        look_up: Callable[[Sequence[Question]], None],
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
