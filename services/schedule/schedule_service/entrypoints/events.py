"""Events that Schedule consumes, and the use case of each."""

from postflow.queue.v1.queue_events_pb2 import SlotCanceled, SlotMoved, SlotScheduled
from schedule_service.application.calendars.follow_slots import follow_slots
from schedule_service.wire.slots import upcoming_slot
from servicekit.messaging.routes import Route, route
from topology import event_consumer

CONSUMER = event_consumer("schedule", "queue")


def routes() -> list[Route]:
    return [
        route(SlotScheduled, upcoming_slot, follow_slots),
        route(SlotMoved, upcoming_slot, follow_slots),
        route(SlotCanceled, upcoming_slot, follow_slots),
    ]
