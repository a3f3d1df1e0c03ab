"""Slots as QueueService shows them, its responses, and the pages of a list."""

from collections.abc import Iterable, Sequence

from postflow.queue.v1 import queue_service_pb2, queue_slot_pb2
from queue_service.domain.listing import Position
from queue_service.domain.slot import QueueSlot, SlotState, SlotTarget
from queue_service.wire.targets import target
from servicekit.timestamps import from_micros, micros, timestamp

_STATES = {
    number: SlotState(name.removeprefix("QUEUE_SLOT_STATE_"))
    for name, number in queue_slot_pb2.QueueSlotState.items()
    if number != queue_slot_pb2.QUEUE_SLOT_STATE_UNSPECIFIED
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


def list_draft_slots_response(
    drafts: Iterable[tuple[str, Sequence[QueueSlot]]],
) -> queue_service_pb2.ListDraftSlotsResponse:
    return queue_service_pb2.ListDraftSlotsResponse(
        drafts=[
            queue_service_pb2.DraftSlots(draft_id=draft_id, queue_slots=map(queue_slot, slots))
            for draft_id, slots in drafts
        ]
    )


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
    return tuple(dict.fromkeys(_STATES[number] for number in numbers))


def queue_slot(slot: QueueSlot) -> queue_slot_pb2.QueueSlot:
    return queue_slot_pb2.QueueSlot(
        id=slot.id,
        social_account_id=slot.social_account_id,
        draft_id=slot.draft_id,
        schedule_time=timestamp(slot.schedule_time),
        time_zone=slot.time_zone,
        local_date=slot.local_date.isoformat() if slot.local_date else "",
        local_time=slot.local_time.isoformat("minutes") if slot.local_time else "",
        state=f"QUEUE_SLOT_STATE_{slot.state}",
        origin=f"QUEUE_SLOT_ORIGIN_{slot.origin}",
        revision=slot.revision,
        targets=[_slot_target(slot, each) for each in slot.targets],
        not_after=timestamp(slot.not_after),
        expected_time=timestamp(slot.expected_time),
        publish_time=timestamp(slot.publish_time),
        create_time=timestamp(slot.create_time),
        update_time=timestamp(slot.update_time),
        # A slot that is being canceled has the reason already.
        state_reason=slot.state_reason if slot.state is SlotState.CANCELED else "",
    )


def _slot_target(slot: QueueSlot, of_slot: SlotTarget) -> queue_slot_pb2.QueueSlotTarget:
    return queue_slot_pb2.QueueSlotTarget(
        target=target(slot.social_account_id, of_slot.channel, of_slot.destination),
        post_job_id=of_slot.job_id,
        post_job_state=of_slot.job_state or "",
        external_url=of_slot.external_url,
        error_message=of_slot.error_message,
        state_reason=of_slot.state_reason,
    )
