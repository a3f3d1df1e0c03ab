"""Events that Schedule consumes, and the use case of each."""

from collections.abc import Sequence
from datetime import datetime

from postflow.queue.v1.queue_events_pb2 import SlotMoved, SlotScheduled
from schedule_service.application.calendars.follow_slots import follow_slots
from schedule_service.wire.slots import upcoming_slot
from servicekit.messaging.consumer import Received, Route
from servicekit.pg.database import Transaction
from topology import event_consumer

CONSUMER = event_consumer("schedule", "queue")


def routes() -> list[Route]:
    return [Route(message=SlotScheduled, apply=_slots), Route(message=SlotMoved, apply=_slots)]


async def _slots(tx: Transaction, received: Sequence[Received], now: datetime) -> None:
    heard = []
    for each in received:
        assert isinstance(each.message, SlotScheduled | SlotMoved)
        heard.append(upcoming_slot(each.message))
    await follow_slots(tx, heard, now)
