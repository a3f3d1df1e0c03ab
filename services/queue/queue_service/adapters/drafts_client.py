"""Drafts, asked for a draft that it has not announced here yet."""

import grpc

from postflow.drafts.v1 import drafts_service_pb2, drafts_service_pb2_grpc
from queue_service import wire
from queue_service.domain.draft import Draft
from servicekit.rpc import calling


class DraftsClient:
    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._service = drafts_service_pb2_grpc.DraftsServiceStub(channel)

    async def get_draft(self, organization_id: str, draft_id: str) -> Draft:
        request = drafts_service_pb2.GetDraftRequest(organization_id=organization_id, draft_id=draft_id)
        with calling():
            found = await self._service.GetDraft(request)
        return wire.draft(organization_id, found.draft)
