"""The answer to operators who have slots dispatched again."""

from postflow.queue.v1 import queue_admin_service_pb2
from queue_service.domain.redispatch import Redispatched


def redispatch_slots_response(done: Redispatched) -> queue_admin_service_pb2.RedispatchSlotsResponse:
    return queue_admin_service_pb2.RedispatchSlotsResponse(repeated_slots=done.slots, accounts=done.accounts)
