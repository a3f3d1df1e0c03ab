"""Events about slots, as Queue announces them."""

from datetime import datetime

from postflow.queue.v1 import queue_events_pb2
from queue_service.domain.arrangement import CanceledSlot
from queue_service.domain.job import ENDED
from queue_service.domain.relocation import MovedSlot
from queue_service.domain.requested_time import RefusedTime
from queue_service.domain.slot import CancelReason, MoveReason, QueueSlot
from queue_service.wire.targets import target
from servicekit.pg.outbox import Announcement
from servicekit.timestamps import put, timestamp
from topology import events_subject

_SLOTS = events_subject("queue", "slot")


def slot_scheduled(slot: QueueSlot) -> Announcement:
    message = queue_events_pb2.SlotScheduled(
        organization_id=slot.organization_id,
        slot_id=slot.id,
        revision=slot.revision,
        draft_id=slot.draft_id,
        social_account_id=slot.social_account_id,
        time_zone=slot.time_zone,
        nominal_local_time=_nominal(slot.nominal),
        slot_sequence=slot.sequence,
        content_revision=slot.content_revision,
    )
    put(message.schedule_time, slot.schedule_time)
    put(message.not_after, slot.not_after)
    for each in slot.targets:
        message.targets.add(
            social_account_id=slot.social_account_id, channel=each.channel, destination=each.destination
        )
    return Announcement(
        subject=_SLOTS,
        organization_id=slot.organization_id,
        aggregate_id=slot.id,
        message=message,
        traceparent=slot.traceparent,
    )


def slot_moved(slot: MovedSlot) -> Announcement:
    return Announcement(
        subject=_SLOTS,
        organization_id=slot.organization_id,
        aggregate_id=slot.id,
        message=queue_events_pb2.SlotMoved(
            organization_id=slot.organization_id,
            slot_id=slot.id,
            revision=slot.revision,
            draft_id=slot.draft_id,
            social_account_id=slot.social_account_id,
            targets=[target(slot.social_account_id, channel, destination) for channel, destination in slot.targets],
            schedule_time=timestamp(slot.schedule_time),
            previous_schedule_time=timestamp(slot.previous_schedule_time),
            time_zone=slot.time_zone,
            nominal_local_time=_nominal(slot.nominal),
            reason=f"SLOT_MOVE_REASON_{slot.reason}",
            slot_sequence=slot.sequence,
            not_after=timestamp(slot.not_after),
        ),
        traceparent=slot.traceparent,
    )


def slot_canceled(slot: CanceledSlot) -> Announcement:
    return Announcement(
        subject=_SLOTS,
        organization_id=slot.organization_id,
        aggregate_id=slot.id,
        message=queue_events_pb2.SlotCanceled(
            organization_id=slot.organization_id,
            slot_id=slot.id,
            revision=slot.revision,
            draft_id=slot.draft_id,
            social_account_id=slot.social_account_id,
            targets=[target(slot.social_account_id, channel, destination) for channel, destination in slot.targets],
            schedule_time=timestamp(slot.schedule_time),
            slot_sequence=slot.sequence,
            reason=f"SLOT_CANCEL_REASON_{slot.reason}",
        ),
        traceparent=slot.traceparent,
    )


def slot_refused(refused: RefusedTime, now: datetime) -> Announcement:
    """Announces the refusal under a subject of its own, so that Drafts need not read the events of all slots."""
    organization_id, draft_id = refused.request.draft
    return Announcement(
        subject=events_subject("queue", "draft"),
        organization_id=organization_id,
        aggregate_id=draft_id,
        message=queue_events_pb2.SlotRefused(
            organization_id=organization_id,
            draft_id=draft_id,
            social_account_id=refused.request.social_account_id,
            draft_version=refused.request.draft_version,
            schedule_time=timestamp(refused.request.schedule_time),
            reason=refused.reason,
            message=refused.message,
            create_time=timestamp(now),
        ),
    )


def slot_taken_back(slot: QueueSlot) -> Announcement:
    """Announces a slot that was taken back from Publisher, to those of its targets that are still to be sent."""
    moved = MovedSlot(
        organization_id=slot.organization_id,
        id=slot.id,
        revision=slot.revision,
        draft_id=slot.draft_id,
        social_account_id=slot.social_account_id,
        sequence=slot.sequence,
        schedule_time=slot.schedule_time,
        previous_schedule_time=slot.schedule_time,
        not_after=slot.not_after,
        time_zone=slot.time_zone,
        nominal=slot.nominal,
        traceparent=slot.traceparent,
        reason=MoveReason.TAKEN_BACK,
        targets=tuple((each.channel, each.destination) for each in slot.targets if each.job_state not in ENDED),
    )
    return slot_moved(moved)


def dispatched_slot_canceled(slot: QueueSlot) -> Announcement:
    """Announces a slot that Publisher has given back to be canceled; its `state_reason` says why."""
    canceled = CanceledSlot(
        organization_id=slot.organization_id,
        id=slot.id,
        revision=slot.revision,
        draft_id=slot.draft_id,
        social_account_id=slot.social_account_id,
        sequence=slot.sequence,
        schedule_time=slot.schedule_time,
        traceparent=slot.traceparent,
        reason=CancelReason(slot.state_reason),
        targets=tuple((each.channel, each.destination) for each in slot.targets),
    )
    return slot_canceled(canceled)


def _nominal(nominal: datetime | None) -> str:
    return nominal.isoformat(timespec="minutes") if nominal else ""
