"""Rearrangements of a queue, as callers ask for them and as they are answered."""

from postflow.queue.v1 import queue_service_pb2
from queue_service.domain.moving import Before, Destination, ToBottom, ToTime, ToTop
from queue_service.domain.rearranged import Cleared, Rearranged
from queue_service.domain.reordering import Order
from queue_service.wire.choices import nothing_chosen
from queue_service.wire.slots import queue_slot
from servicekit.timestamps import moment


def order(message: queue_service_pb2.ReorderQueueRequest | queue_service_pb2.PlannedOrder) -> Order:
    return Order(slot_ids=tuple(message.slot_ids), draft_ids=tuple(message.draft_ids))


def destination(message: queue_service_pb2.MoveSlotRequest | queue_service_pb2.PlannedMove) -> Destination:
    match message.WhichOneof("destination"):
        case "to_top" if message.to_top:
            return ToTop()
        case "to_bottom" if message.to_bottom:
            return ToBottom()
        case "before_slot_id" if message.before_slot_id:
            return Before(message.before_slot_id)
        case "schedule_time":
            return ToTime(moment(message.schedule_time))
        case _:
            raise nothing_chosen(message, "destination")


def reorder_queue_response(done: Rearranged) -> queue_service_pb2.ReorderQueueResponse:
    return queue_service_pb2.ReorderQueueResponse(moved_slots=map(queue_slot, done.moved), etag=done.etag)


def shuffle_queue_response(done: Rearranged) -> queue_service_pb2.ShuffleQueueResponse:
    return queue_service_pb2.ShuffleQueueResponse(
        moved_slots=map(queue_slot, done.moved), etag=done.etag, seed=done.seed
    )


def move_slot_response(done: Rearranged) -> queue_service_pb2.MoveSlotResponse:
    return queue_service_pb2.MoveSlotResponse(
        queue_slot=queue_slot(done.slot) if done.slot else None, moved_slots=map(queue_slot, done.moved), etag=done.etag
    )


def remove_from_queue_response(done: Rearranged) -> queue_service_pb2.RemoveFromQueueResponse:
    return queue_service_pb2.RemoveFromQueueResponse(
        queue_slot=queue_slot(done.slot) if done.slot else None, moved_slots=map(queue_slot, done.moved), etag=done.etag
    )


def clear_queue_response(done: Cleared) -> queue_service_pb2.ClearQueueResponse:
    return queue_service_pb2.ClearQueueResponse(
        canceled_slots=done.canceled, too_late_slots=map(queue_slot, done.too_late), etag=done.etag
    )
