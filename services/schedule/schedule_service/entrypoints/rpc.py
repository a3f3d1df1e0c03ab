"""What Schedule answers."""

from dataclasses import dataclass
from typing import Any, TypeAlias

import grpc

from postflow.schedule.v1 import schedule_service_pb2 as messages
from postflow.schedule.v1 import schedule_service_pb2_grpc
from schedule_service.application.check_send_window import CheckSendWindow
from schedule_service.application.delete_account_schedule import DeleteAccountSchedule
from schedule_service.application.find_slot_times import FindSlotTimes
from schedule_service.application.get_account_schedule import GetAccountSchedule
from schedule_service.application.list_account_schedules import ListAccountSchedules
from schedule_service.application.put_account_schedule import PutAccountSchedule
from schedule_service.wire import account_schedules
from schedule_service.wire.civil_times import moment, not_before
from schedule_service.wire.pages import fitting
from schedule_service.wire.requests import request_key
from servicekit.rpc import next_page_token, read_page

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"

_DEFAULT_COUNT = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountSchedules:
    """The use cases of account schedules."""

    put: PutAccountSchedule
    get: GetAccountSchedule
    list: ListAccountSchedules
    delete: DeleteAccountSchedule
    check_send_window: CheckSendWindow
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

    async def GetAccountSchedule(
        self, request: messages.GetAccountScheduleRequest, context: Context
    ) -> messages.GetAccountScheduleResponse:
        return await self._account_schedules.get(
            organization_id=request.organization_id, social_account_id=request.social_account_id
        )

    async def ListAccountSchedules(
        self, request: messages.ListAccountSchedulesRequest, context: Context
    ) -> messages.ListAccountSchedulesResponse:
        asked = read_page(request)
        after = str(asked.after[0]) if asked.after else ""
        found = await self._account_schedules.list(
            organization_id=request.organization_id, after=after, size=asked.size + 1
        )
        page, more = fitting(map(account_schedules.shown, found), asked.size)
        return messages.ListAccountSchedulesResponse(
            account_schedules=page,
            next_page_token=next_page_token(request, (page[-1].social_account_id,)) if more else "",
        )

    async def DeleteAccountSchedule(
        self, request: messages.DeleteAccountScheduleRequest, context: Context
    ) -> messages.DeleteAccountScheduleResponse:
        return await self._account_schedules.delete(
            request_key(request.organization_id, "DeleteAccountSchedule", request.request_id, request),
            social_account_id=request.social_account_id,
            etag=request.etag,
            force=request.force,
        )

    async def CheckSendWindow(
        self, request: messages.CheckSendWindowRequest, context: Context
    ) -> messages.CheckSendWindowResponse:
        return await self._account_schedules.check_send_window(
            organization_id=request.organization_id,
            social_account_id=request.social_account_id,
            time=moment(request.time) if request.HasField("time") else None,
        )

    async def FindSlotTimes(
        self, request: messages.FindSlotTimesRequest, context: Context
    ) -> messages.FindSlotTimesResponse:
        return await self._account_schedules.find_slot_times(
            organization_id=request.organization_id,
            social_account_id=request.social_account_id,
            after=not_before(request.after) if request.HasField("after") else None,
            before=not_before(request.before) if request.HasField("before") else None,
            count=request.count or _DEFAULT_COUNT,
        )
