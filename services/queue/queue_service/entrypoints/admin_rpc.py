"""QueueAdminService, for operators: decode, call, encode."""

from typing import Any

import grpc

from postflow.queue.v1 import queue_admin_service_pb2_grpc
from postflow.queue.v1.queue_admin_service_pb2 import RedispatchSlotsRequest, RedispatchSlotsResponse
from queue_service.application.redispatch_slots import RedispatchSlots
from queue_service.domain.redispatch import Selection
from queue_service.wire.redispatch import redispatch_slots_response
from servicekit.pg.ledger import mutation

Context = grpc.aio.ServicerContext[Any, Any]


class QueueAdminServicer(queue_admin_service_pb2_grpc.QueueAdminServiceServicer):
    def __init__(self, *, redispatch_slots: RedispatchSlots) -> None:
        self._redispatch_slots = redispatch_slots

    async def RedispatchSlots(self, request: RedispatchSlotsRequest, context: Context) -> RedispatchSlotsResponse:
        selection = Selection(
            organization_id=request.organization_id,
            social_account_id=request.social_account_id,
            slot_ids=tuple(request.slot_ids),
        )
        call = mutation(request, RedispatchSlotsResponse, redispatch_slots_response)
        return await self._redispatch_slots(call, selection)
