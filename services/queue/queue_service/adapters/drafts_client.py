"""Drafts, asked for a draft whose announcement may not have come yet."""

import grpc

from postflow.drafts.v1 import drafts_service_pb2, drafts_service_pb2_grpc
from queue_service import wire
from queue_service.domain.draft import Draft
from servicekit.rpc import calling

_PATIENCE = 1.0
"""Seconds, when the draft is known as it was announced last."""


class DraftsClient:
    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._service = drafts_service_pb2_grpc.DraftsServiceStub(channel)

    async def get_draft(self, organization_id: str, draft_id: str, *, in_a_hurry: bool) -> Draft:
        """`in_a_hurry`: the caller can do without the answer."""
        request = drafts_service_pb2.GetDraftRequest(organization_id=organization_id, draft_id=draft_id)
        with calling():
            found = await self._service.GetDraft(request, timeout=_PATIENCE if in_a_hurry else None)
        return wire.draft(organization_id, found.draft)
