"""ListTimers: returns a page of an organization's timers, in the order of their ids."""

from schedule_service.adapters.postgres.timers import list_timers
from schedule_service.domain.timers.timer import Timer, TimerState
from servicekit.pg.database import Database


class ListTimers:
    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def __call__(
        self, *, organization_id: str, topic: str, state: TimerState | None, after: str, size: int
    ) -> list[Timer]:
        """Lists the timers after `after`. An empty topic or state means any."""
        async with self._database.read() as connection:
            return await list_timers(connection, organization_id, topic=topic, state=state, after=after, size=size)
