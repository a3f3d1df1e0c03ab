"""The events of Drafts and Queue that Publisher follows, and the use case that applies each."""

from postflow.drafts.v1 import drafts_events_pb2
from postflow.queue.v1 import queue_events_pb2
from publisher_service.application.drop_slots import DropSlots
from publisher_service.application.save_drafts import SaveDrafts
from publisher_service.application.take_slots import TakeSlots
from publisher_service.wire.events import saved_draft_from, slot_from
from publisher_service.wire.take_backs import canceled_posts_from
from servicekit.messaging.routes import Route, envelope_route, route
from topology import event_consumer

CONSUMER = event_consumer("publisher", "drafts", "queue")


def routes(save_drafts: SaveDrafts, take_slots: TakeSlots, drop_slots: DropSlots) -> list[Route]:
    return [
        route(drafts_events_pb2.DraftSaved, saved_draft_from, save_drafts),
        envelope_route(queue_events_pb2.SlotScheduled, slot_from, take_slots),
        envelope_route(queue_events_pb2.SlotMoved, slot_from, take_slots),
        route(queue_events_pb2.SlotCanceled, canceled_posts_from, drop_slots),
    ]
