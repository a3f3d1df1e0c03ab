"""Queues as QueueService shows them."""

from datetime import timedelta

from google.protobuf.duration_pb2 import Duration

from postflow.queue.v1 import queue_pb2, queue_service_pb2
from queue_service.domain.late_policy import LatePolicy
from queue_service.domain.queue_view import QueueView
from servicekit.timestamps import timestamp

_SECOND = timedelta(seconds=1)
_MICROSECOND = timedelta(microseconds=1)


def get_queue_response(view: QueueView) -> queue_service_pb2.GetQueueResponse:
    return queue_service_pb2.GetQueueResponse(queue=queue(view))


def skip_next_slot_response(view: QueueView) -> queue_service_pb2.SkipNextSlotResponse:
    return queue_service_pb2.SkipNextSlotResponse(queue=queue(view))


def queue(view: QueueView) -> queue_pb2.Queue:
    slots = view.slots
    return queue_pb2.Queue(
        social_account_id=view.social_account_id,
        etag=view.etag,
        paused=view.pause_time is not None,
        pause_time=timestamp(view.pause_time),
        pauser=view.pauser,
        pause_reason=view.pause_reason,
        hold_pending=view.is_hold_pending,
        schedule_enabled=view.schedule_enabled,
        connected=view.is_connected is not False,
        time_zone=view.time_zone,
        skip_next=view.skip_next,
        skipped_times=[timestamp(time) for time in view.skipped_times],
        late_policy=_late_policy(view.late_policy),
        pace=duration(view.pace),
        scheduled_slots=slots.scheduled,
        dispatched_slots=slots.dispatched,
        overdue_slots=slots.overdue,
        next_time=timestamp(slots.next_time),
        last_time=timestamp(slots.last_time),
        empty_on=view.empty_on.isoformat() if view.empty_on else "",
        next_free_time=timestamp(view.next_free_time),
    )


def _late_policy(policy: LatePolicy) -> queue_pb2.LatePolicy:
    return queue_pb2.LatePolicy(grace=duration(policy.grace), action=f"LATE_ACTION_{policy.action}")


def duration(length: timedelta) -> Duration:
    return Duration(seconds=length // _SECOND, nanos=length % _SECOND // _MICROSECOND * 1000)
