"""What Schedule answers."""

from dataclasses import dataclass
from typing import Any, TypeAlias

import grpc

from postflow.schedule.v1 import schedule_service_pb2 as messages
from postflow.schedule.v1 import schedule_service_pb2_grpc
from schedule_service.application.find_slot_times import FindSlotTimes
from schedule_service.application.put_account_schedule import PutAccountSchedule
from schedule_service.wire import account_schedules
from schedule_service.wire.civil_times import moment
from schedule_service.wire.requests import request_key

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"

_DEFAULT_COUNT = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountSchedules:
    """The use cases of account schedules."""

    put: PutAccountSchedule
    find_slot_times: FindSlotTimes


class ScheduleServicer(schedule_service_pb2_grpc.ScheduleServiceServicer):
    def __init__(self, *, account_schedules: AccountSchedules) -> None:
        self._account_schedules = account_schedules

    async def PutAccountSchedule(
        self, request: messages.PutAccountScheduleRequest, context: Context
    ) -> messages.PutAccountScheduleResponse:
        return await self._account_schedules.put(
            request_key(request.organization_id, "PutAccountSchedule", request.request_id, request),
            social_account_id=request.account_schedule.social_account_id,
            timetable=account_schedules.timetable(request.account_schedule),
            etag=request.account_schedule.etag,
        )

    async def FindSlotTimes(
        self, request: messages.FindSlotTimesRequest, context: Context
    ) -> messages.FindSlotTimesResponse:
        return await self._account_schedules.find_slot_times(
            organization_id=request.organization_id,
            social_account_id=request.social_account_id,
            after=moment(request.after) if request.HasField("after") else None,
            before=moment(request.before) if request.HasField("before") else None,
            count=request.count or _DEFAULT_COUNT,
        )
