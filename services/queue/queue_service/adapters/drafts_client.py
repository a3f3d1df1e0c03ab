"""A client of Drafts, for a draft whose newest announcement may not have arrived yet."""

import grpc

from postflow.drafts.v1 import drafts_service_pb2, drafts_service_pb2_grpc
from queue_service.domain.draft import Draft
from queue_service.wire.drafts import draft
from servicekit.rpc import calling

_SHORT_TIMEOUT = 1.0
"""The timeout in seconds when the caller knows the draft as last announced."""


class DraftsClient:
    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._service = drafts_service_pb2_grpc.DraftsServiceStub(channel)

    async def get_draft(self, organization_id: str, draft_id: str, *, is_optional: bool) -> Draft:
        """Reads a draft. An optional answer has a short timeout, because the caller can do without it."""
        request = drafts_service_pb2.GetDraftRequest(organization_id=organization_id, draft_id=draft_id)
        with calling():
            found = await self._service.GetDraft(request, timeout=_SHORT_TIMEOUT if is_optional else None)
        return draft(organization_id, found.draft)
