"""Pausing, resuming and setting up queues, as callers ask for it and as it is answered."""

from datetime import timedelta

from postflow.queue.v1 import queue_pb2, queue_service_pb2
from queue_service.domain.late_policy import DEFAULT_POLICY, LateAction, LatePolicy
from queue_service.domain.queue_view import Paused, QueueView, Resumed
from queue_service.domain.resuming import OverduePolicy
from queue_service.wire.queues import queue
from queue_service.wire.slots import queue_slot

_ACTIONS = {
    queue_pb2.LATE_ACTION_UNSPECIFIED: LateAction.PUBLISH,
    queue_pb2.LATE_ACTION_PUBLISH: LateAction.PUBLISH,
    queue_pb2.LATE_ACTION_RESLOT: LateAction.RESLOT,
    queue_pb2.LATE_ACTION_MISS: LateAction.MISS,
}
_OVERDUE = {
    queue_service_pb2.OVERDUE_POLICY_UNSPECIFIED: OverduePolicy.RESCHEDULE,
    queue_service_pb2.OVERDUE_POLICY_RESCHEDULE: OverduePolicy.RESCHEDULE,
    queue_service_pb2.OVERDUE_POLICY_PUBLISH_PACED: OverduePolicy.PUBLISH_PACED,
    queue_service_pb2.OVERDUE_POLICY_CANCEL: OverduePolicy.CANCEL,
}


def overdue_policy(number: queue_service_pb2.OverduePolicy) -> OverduePolicy:
    return _OVERDUE[number]


def late_policy(request: queue_service_pb2.UpdateQueueRequest) -> LatePolicy | None:
    if not request.HasField("late_policy"):
        return None
    message = request.late_policy
    grace = message.grace.ToTimedelta() if message.HasField("grace") else DEFAULT_POLICY.grace
    return LatePolicy(grace=grace, action=_ACTIONS[message.action])


def pace(request: queue_service_pb2.UpdateQueueRequest) -> timedelta | None:
    return request.pace.ToTimedelta() if request.HasField("pace") else None


def pause_queue_response(paused: Paused) -> queue_service_pb2.PauseQueueResponse:
    return queue_service_pb2.PauseQueueResponse(queue=queue(paused.view), in_flight_post_job_ids=paused.in_flight)


def resume_queue_response(resumed: Resumed) -> queue_service_pb2.ResumeQueueResponse:
    return queue_service_pb2.ResumeQueueResponse(
        queue=queue(resumed.view),
        moved_slots=map(queue_slot, resumed.moved),
        canceled_slots=map(queue_slot, resumed.canceled),
    )


def update_queue_response(view: QueueView) -> queue_service_pb2.UpdateQueueResponse:
    return queue_service_pb2.UpdateQueueResponse(queue=queue(view))
