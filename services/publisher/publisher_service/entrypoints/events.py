"""Which announcements of the other contexts Publisher follows, and the use case of each."""

from collections.abc import Sequence
from datetime import datetime

from postflow.drafts.v1 import drafts_events_pb2
from postflow.queue.v1 import queue_events_pb2
from publisher_service.application.save_drafts import SaveDrafts
from publisher_service.application.take_slots import TakeSlots
from publisher_service.wire.events import saved_draft_from, slot_from
from servicekit.messaging.consumer import Received, Route
from servicekit.pg.database import Transaction
from topology import event_consumer

CONSUMER = event_consumer("publisher", "drafts", "queue")


def routes(save_drafts: SaveDrafts, take_slots: TakeSlots) -> list[Route]:
    async def drafts_saved(tx: Transaction, batch: Sequence[Received], now: datetime) -> None:
        messages = (each.message for each in batch)
        drafts = [
            saved_draft_from(message) for message in messages if isinstance(message, drafts_events_pb2.DraftSaved)
        ]
        await save_drafts(tx, drafts, now)

    async def slots_placed(tx: Transaction, batch: Sequence[Received], now: datetime) -> None:
        slots = [
            slot_from(each.message, traceparent=each.event.traceparent)
            for each in batch
            if isinstance(each.message, queue_events_pb2.SlotScheduled | queue_events_pb2.SlotMoved)
        ]
        await take_slots(tx, slots, now)

    return [
        Route(message=drafts_events_pb2.DraftSaved, apply=drafts_saved),
        Route(message=queue_events_pb2.SlotScheduled, apply=slots_placed),
        Route(message=queue_events_pb2.SlotMoved, apply=slots_placed),
    ]
