"""GetTimer: returns a timer."""

from schedule_service.adapters.postgres.timers import find_timer
from schedule_service.domain.timers.timer import Timer, found
from servicekit.pg.database import Database


class GetTimer:
    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def __call__(self, *, organization_id: str, timer_id: str) -> Timer:
        async with self._database.read() as connection:
            return found(await find_timer(connection, organization_id, timer_id), timer_id)
