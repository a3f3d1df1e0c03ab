"""Explanations of slots, as QueueService gives them."""

from postflow.queue.v1 import queue_service_pb2
from queue_service.domain.explaining import Explanation
from queue_service.domain.obstacles import Obstacle
from queue_service.domain.passed_times import PassedTime
from queue_service.wire.slots import queue_slot
from queue_service.wire.targets import target
from servicekit.timestamps import timestamp


def explain_slot_response(explained: Explanation) -> queue_service_pb2.ExplainSlotResponse:
    account = explained.slot.social_account_id
    return queue_service_pb2.ExplainSlotResponse(
        queue_slot=queue_slot(explained.slot),
        time_reason=explained.time_reason,
        passed_times=map(_passed_time, explained.passed_times),
        obstacles=[_obstacle(account, each) for each in explained.obstacles],
        summary=explained.summary,
    )


def _passed_time(passed: PassedTime) -> queue_service_pb2.PassedTime:
    return queue_service_pb2.PassedTime(
        time=timestamp(passed.time), reason=passed.reason, slot_id=passed.slot_id, draft_id=passed.draft_id
    )


def _obstacle(social_account_id: str, obstacle: Obstacle) -> queue_service_pb2.SlotObstacle:
    of_slot = obstacle.target
    return queue_service_pb2.SlotObstacle(
        reason=obstacle.reason,
        message=obstacle.message,
        clear_time=timestamp(obstacle.clear_time),
        target=target(social_account_id, of_slot.channel, of_slot.destination) if of_slot else None,
    )
