"""Slots as QueueService shows them, its responses, and the pages of a list."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import cast

from postflow.queue.v1 import queue_service_pb2, queue_slot_pb2
from queue_service.domain.listing import Position
from queue_service.domain.slot import QueueSlot, SlotOrigin, SlotState, SlotTarget
from servicekit.timestamps import from_micros, micros, put

# The generated stubs say that Value returns an int, and that a field takes the enum.
_STATES = {
    state: cast(queue_slot_pb2.QueueSlotState, queue_slot_pb2.QueueSlotState.Value(f"QUEUE_SLOT_STATE_{state}"))
    for state in SlotState
}
_STATES_BACK: dict[int, SlotState] = {_STATES[state]: state for state in SlotState}
_ORIGINS = {
    origin: cast(queue_slot_pb2.QueueSlotOrigin, queue_slot_pb2.QueueSlotOrigin.Value(f"QUEUE_SLOT_ORIGIN_{origin}"))
    for origin in SlotOrigin
}


def is_in_front(place: queue_service_pb2.QueuePlace) -> bool:
    return place == queue_service_pb2.QUEUE_PLACE_FRONT


def add_to_queue_response(slots: Iterable[QueueSlot]) -> queue_service_pb2.AddToQueueResponse:
    return queue_service_pb2.AddToQueueResponse(queue_slots=map(queue_slot, slots))


def schedule_at_response(slots: Iterable[QueueSlot]) -> queue_service_pb2.ScheduleAtResponse:
    return queue_service_pb2.ScheduleAtResponse(queue_slots=map(queue_slot, slots))


def list_queue_slots_response(
    slots: Sequence[QueueSlot], next_page_token: str
) -> queue_service_pb2.ListQueueSlotsResponse:
    return queue_service_pb2.ListQueueSlotsResponse(queue_slots=map(queue_slot, slots), next_page_token=next_page_token)


async def list_draft_slots_response(
    drafts: Iterable[tuple[str, Sequence[QueueSlot]]],
) -> queue_service_pb2.ListDraftSlotsResponse:
    response = queue_service_pb2.ListDraftSlotsResponse()
    for draft_id, slots in drafts:
        response.drafts.add(draft_id=draft_id, queue_slots=map(queue_slot, slots))
        await asyncio.sleep(0)  # a hundred slots take milliseconds, in which other posts may become due
    return response


def position(cursor: tuple[str | int, ...] | None) -> Position:
    """Reads where a page begins, as `cursor` wrote it into the token."""
    if cursor is None:
        return Position()
    since, slot_id = cursor
    return Position(schedule_time=from_micros(int(since)), slot_id=str(slot_id))


def cursor(position: Position) -> tuple[int, str]:
    return micros(position.schedule_time), position.slot_id


def states(numbers: Iterable[int]) -> tuple[SlotState, ...]:
    """Reads the states without duplicates."""
    return tuple(dict.fromkeys(_STATES_BACK[number] for number in numbers))


def queue_slot(slot: QueueSlot) -> queue_slot_pb2.QueueSlot:
    message = queue_slot_pb2.QueueSlot()
    write_slot(message, slot)
    return message


def write_slot(message: queue_slot_pb2.QueueSlot, slot: QueueSlot) -> None:
    """Fills a message in place: half as dear as one that is made and then copied into another."""
    message.id = slot.id
    message.social_account_id = slot.social_account_id
    message.draft_id = slot.draft_id
    message.time_zone = slot.time_zone
    if slot.local_date:
        message.local_date = slot.local_date.isoformat()
    if slot.local_time:
        message.local_time = slot.local_time.isoformat("minutes")
    message.state = _STATES[slot.state]
    message.origin = _ORIGINS[slot.origin]
    message.revision = slot.revision
    for each in slot.targets:
        _write_target(message.targets.add(), slot, each)
    if slot.state is SlotState.CANCELED:  # a slot that is being canceled has the reason already
        message.state_reason = slot.state_reason
    put(message.schedule_time, slot.schedule_time)
    put(message.not_after, slot.not_after)
    put(message.expected_time, slot.expected_time)
    put(message.publish_time, slot.publish_time)
    put(message.create_time, slot.create_time)
    put(message.update_time, slot.update_time)


def _write_target(message: queue_slot_pb2.QueueSlotTarget, slot: QueueSlot, target: SlotTarget) -> None:
    message.target.social_account_id = slot.social_account_id
    message.target.channel = target.channel
    message.target.destination = target.destination
    message.post_job_id = target.job_id
    message.post_job_state = target.job_state or ""
    message.external_url = target.external_url
    message.error_message = target.error_message
    message.state_reason = target.state_reason
