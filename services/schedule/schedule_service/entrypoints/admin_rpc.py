"""Serves ScheduleAdminService, for operators."""

import math
import time
from datetime import timedelta
from typing import Any, TypeAlias

import grpc

from postflow.schedule.v1 import schedule_admin_service_pb2 as messages
from postflow.schedule.v1 import schedule_admin_service_pb2_grpc
from schedule_service.application.zone_changes.apply_zone_changes import ApplyZoneChanges
from schedule_service.application.zone_changes.list_zone_changes import ListZoneChanges
from schedule_service.wire import zone_changes
from servicekit.rpc import next_page_token, read_page
from servicekit.run import context as call_context

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"

DEADLINES = {"postflow.schedule.v1.ScheduleAdminService/ApplyZoneChanges": timedelta(minutes=1)}
"""Deadlines of calls that come without one."""

_SHARE_FOR_WORK = 0.7  # share of a call's time for starting batches; the rest is for the last batch and the response


class ScheduleAdminServicer(schedule_admin_service_pb2_grpc.ScheduleAdminServiceServicer):
    def __init__(self, *, list_zone_changes: ListZoneChanges, apply_zone_changes: ApplyZoneChanges) -> None:
        self._list_zone_changes = list_zone_changes
        self._apply_zone_changes = apply_zone_changes

    async def ListZoneChanges(
        self, request: messages.ListZoneChangesRequest, context: Context
    ) -> messages.ListZoneChangesResponse:
        page = read_page(request)
        found = await self._list_zone_changes(
            organization_id=request.organization_id, after=zone_changes.position(page.after), size=page.size
        )
        response = zone_changes.listed(found.changes)
        if found.last:
            response.next_page_token = next_page_token(request, zone_changes.cursor(found.last))
        return response

    async def ApplyZoneChanges(
        self, request: messages.ApplyZoneChangesRequest, context: Context
    ) -> messages.ApplyZoneChangesResponse:
        applied = await self._apply_zone_changes(organization_id=request.organization_id, patience=_patience())
        return zone_changes.applied(applied.moved, done=applied.done)


def _patience() -> float:
    """Returns for how many seconds the call may start further batches."""
    deadline = call_context.deadline.get()
    return math.inf if deadline is None else (deadline - time.monotonic()) * _SHARE_FOR_WORK
