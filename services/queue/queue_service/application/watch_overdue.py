"""Counting the slots that should have ended long ago: somebody must look at them."""

from opentelemetry import metrics

from queue_service.adapters.postgres import dispatch
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database

_meter = metrics.get_meter("queue_service")
_slots = _meter.create_gauge(
    "postflow.queue.slots.overdue", description="Slots that have not ended though their latest time is over"
)
_age = _meter.create_gauge(
    "postflow.queue.slots.overdue.age", unit="s", description="Time since the latest time of the oldest overdue slot"
)


class WatchOverdue:
    def __init__(self, *, database: Database, clock: DatabaseClock) -> None:
        self._database = database
        self._clock = clock
        _slots.set(0)
        _age.set(0)

    async def __call__(self) -> None:
        async with self._database.read() as connection:
            now = await self._clock.now(connection)
            overdue = await dispatch.find_overdue(connection)
        _slots.set(overdue.slots)
        _age.set((now - overdue.oldest).total_seconds() if overdue.oldest else 0)
