"""Gauges of how late slots are dispatched, and of how many have not ended in time and need a person."""

from opentelemetry import metrics

from queue_service.adapters.postgres.dispatch import find_overdue, next_due_time
from servicekit.ops import Number
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database

_meter = metrics.get_meter(__name__)
_slots = _meter.create_gauge(
    "postflow.queue.slots.overdue", description="Slots that have not ended although their latest time has passed"
)
_age = _meter.create_gauge(
    "postflow.queue.slots.overdue.age",
    unit="s",
    description="How far the oldest overdue slot is past its latest time; 0 while there is none",
)
_behind = _meter.create_gauge(
    "postflow.queue.dispatch.behind",
    unit="s",
    description="Lateness of the earliest slot that has not been dispatched; 0 while none is due",
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
        """Returns the values of the gauges, which `GetStats` shows as well."""
        async with self._database.read_session() as session:
            overdue = await find_overdue(session.connection)
            moment, due = await next_due_time(session)
        now = self._clock.shown(moment)
        age = (now - overdue.oldest).total_seconds() if overdue.oldest else 0
        behind = max((now - due).total_seconds(), 0.0) if due else 0
        return [
            Number(name="slots.overdue", value=overdue.slots),
            Number(name="slots.overdue.age", value=age, unit="s"),
            Number(name="dispatch.behind", value=behind, unit="s"),
        ]
