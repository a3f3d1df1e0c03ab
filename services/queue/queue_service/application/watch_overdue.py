"""Showing how late slots are handed over, and how many should have ended long ago: somebody must look at those."""

from opentelemetry import metrics

from queue_service.adapters.postgres import dispatch
from servicekit.ops import Number
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database

_meter = metrics.get_meter("queue_service")
_slots = _meter.create_gauge(
    "postflow.queue.slots.overdue", description="Slots that have not ended though their latest time is over"
)
_age = _meter.create_gauge(
    "postflow.queue.slots.overdue.age", unit="s", description="Time since the latest time of the oldest overdue slot"
)
_behind = _meter.create_gauge(
    "postflow.queue.dispatch.behind",
    unit="s",
    description="Time since the earliest slot that has not been handed over was due; 0 while none is",
)


class WatchOverdue:
    def __init__(self, *, database: Database, clock: DatabaseClock) -> None:
        self._database = database
        self._clock = clock
        for gauge in (_slots, _age, _behind):
            gauge.set(0)

    async def __call__(self) -> None:
        for gauge, number in zip((_slots, _age, _behind), await self.numbers(), strict=True):
            gauge.set(number.value)

    async def numbers(self) -> list[Number]:
        """What the gauges show, and the stats of the process too."""
        async with self._database.read() as connection:
            now = await self._clock.now(connection)
            overdue = await dispatch.find_overdue(connection)
            due = await dispatch.next_due_time(connection)
        age = (now - overdue.oldest).total_seconds() if overdue.oldest else 0
        behind = max((now - due).total_seconds(), 0.0) if due else 0
        return [
            Number(name="slots.overdue", value=overdue.slots),
            Number(name="slots.overdue.age", value=age, unit="s"),
            Number(name="dispatch.behind", value=behind, unit="s"),
        ]
