"""PublisherAdminService, for operators: decode, call, encode."""

from typing import Any

import grpc

from postflow.publisher.v1 import publisher_admin_service_pb2 as pb
from postflow.publisher.v1.publisher_admin_service_pb2_grpc import PublisherAdminServiceServicer
from publisher_service.application.leave_safe_mode import LeaveSafeMode
from publisher_service.application.read_safe_mode import ReadSafeMode
from publisher_service.application.replay_post_jobs import ReplayPostJobs
from publisher_service.wire import safe_modes
from publisher_service.wire.given_texts import require_words
from publisher_service.wire.replays import replay_from
from servicekit.pg.ledger import mutation
from servicekit.rpc.paging import next_page_token, read_page

Context = grpc.aio.ServicerContext[Any, Any]

_PAGE, _MOST = 1000, 10_000


class PublisherAdminServicer(PublisherAdminServiceServicer):
    def __init__(self, *, leave: LeaveSafeMode, read: ReadSafeMode, replay: ReplayPostJobs) -> None:
        self._leave = leave
        self._read = read
        self._replay = replay

    async def ReplayPostJobEvents(
        self, request: pb.ReplayPostJobEventsRequest, context: Context
    ) -> pb.ReplayPostJobEventsResponse:
        page = read_page(request, default=_PAGE, most=_MOST)
        after = (str(page.after[0]), str(page.after[1])) if page.after else None
        replayed = await self._replay(replay_from(request), after=after, most=page.size)
        token = next_page_token(request, replayed.after) if replayed.after else ""
        return pb.ReplayPostJobEventsResponse(announced=replayed.announced, next_page_token=token)

    async def GetSafeMode(self, request: pb.GetSafeModeRequest, context: Context) -> pb.GetSafeModeResponse:
        return safe_modes.get_safe_mode_response(await self._read())

    async def LeaveSafeMode(self, request: pb.LeaveSafeModeRequest, context: Context) -> pb.LeaveSafeModeResponse:
        call = mutation(request, pb.LeaveSafeModeResponse, safe_modes.leave_safe_mode_response)
        return await self._leave(call, require_words("operator", request.operator), force=request.force)
