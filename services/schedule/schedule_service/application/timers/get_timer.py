"""GetTimer: one timer as it is."""

from schedule_service.adapters.postgres import timers as store
from schedule_service.domain.timers.timer import found
from schedule_service.wire import timers as wire
from servicekit.pg.database import Database


class GetTimer:
    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def __call__(self, *, organization_id: str, timer_id: str) -> wire.GetTimerResponse:
        async with self._database.read() as connection:
            timer = found(await store.find(connection, organization_id, timer_id), timer_id)
        return wire.GetTimerResponse(timer=wire.shown(timer))
