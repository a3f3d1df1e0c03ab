"""Serves TimerService."""

from typing import Any, TypeAlias

import grpc

from postflow.schedule.v1 import timer_service_pb2 as messages
from postflow.schedule.v1 import timer_service_pb2_grpc
from schedule_service.application.timers.create_timer import CreateTimer
from schedule_service.application.timers.delete_timer import DeleteTimer
from schedule_service.application.timers.fire_timer import FireTimer
from schedule_service.application.timers.get_timer import GetTimer
from schedule_service.application.timers.list_timers import ListTimers
from schedule_service.application.timers.pause_timer import PauseTimer, ResumeTimer
from schedule_service.wire import timers as wire
from schedule_service.wire.pages import fitting
from servicekit.pg.ledger import mutation
from servicekit.rpc import next_page_token, read_page

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"


class TimerServicer(timer_service_pb2_grpc.TimerServiceServicer):
    def __init__(
        self,
        *,
        create: CreateTimer,
        get: GetTimer,
        list_timers: ListTimers,
        pause: PauseTimer,
        resume: ResumeTimer,
        fire: FireTimer,
        delete: DeleteTimer,
    ) -> None:
        self._create = create
        self._get = get
        self._list = list_timers
        self._pause = pause
        self._resume = resume
        self._fire = fire
        self._delete = delete

    async def CreateTimer(self, request: messages.CreateTimerRequest, context: Context) -> messages.CreateTimerResponse:
        call = mutation(request, messages.CreateTimerResponse, wire.create_timer_response)
        return await self._create(call, timer_id=request.timer_id, request=wire.timer_request(request.timer))

    async def GetTimer(self, request: messages.GetTimerRequest, context: Context) -> messages.GetTimerResponse:
        timer = await self._get(organization_id=request.organization_id, timer_id=request.timer_id)
        return messages.GetTimerResponse(timer=wire.shown(timer))

    async def ListTimers(self, request: messages.ListTimersRequest, context: Context) -> messages.ListTimersResponse:
        page = read_page(request)
        found = await self._list(
            organization_id=request.organization_id,
            topic=request.topic,
            state=wire.state(request.state),
            after=str(page.after[0]) if page.after else "",
            size=page.size + 1,
        )
        shown, has_more = fitting(map(wire.shown, found), page.size)
        return messages.ListTimersResponse(
            timers=shown, next_page_token=next_page_token(request, (shown[-1].id,)) if has_more else ""
        )

    async def PauseTimer(self, request: messages.PauseTimerRequest, context: Context) -> messages.PauseTimerResponse:
        call = mutation(request, messages.PauseTimerResponse, wire.pause_timer_response)
        return await self._pause(call, timer_id=request.timer_id, etag=request.etag)

    async def ResumeTimer(self, request: messages.ResumeTimerRequest, context: Context) -> messages.ResumeTimerResponse:
        call = mutation(request, messages.ResumeTimerResponse, wire.resume_timer_response)
        return await self._resume(call, timer_id=request.timer_id, etag=request.etag)

    async def FireTimer(self, request: messages.FireTimerRequest, context: Context) -> messages.FireTimerResponse:
        call = mutation(request, messages.FireTimerResponse, wire.fire_timer_response)
        return await self._fire(call, timer_id=request.timer_id)

    async def DeleteTimer(self, request: messages.DeleteTimerRequest, context: Context) -> messages.DeleteTimerResponse:
        call = mutation(request, messages.DeleteTimerResponse, wire.delete_timer_response)
        return await self._delete(call, timer_id=request.timer_id, etag=request.etag)
