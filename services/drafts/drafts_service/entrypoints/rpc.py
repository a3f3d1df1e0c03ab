"""DraftsService over gRPC: decode, call, encode."""

from typing import Any

import grpc

from drafts_service import wire
from drafts_service.application.approve_draft import ApproveDraft
from drafts_service.application.create_draft import CreateDraft
from drafts_service.application.get_draft import GetDraft
from drafts_service.application.update_draft import UpdateDraft
from postflow.drafts.v1 import drafts_service_pb2 as pb
from postflow.drafts.v1.drafts_service_pb2_grpc import DraftsServiceServicer
from servicekit.faults import InvalidField
from servicekit.pg.ledger_by_hand import request_key

Context = grpc.aio.ServicerContext[Any, Any]


class DraftsServicer(DraftsServiceServicer):
    def __init__(self, *, create: CreateDraft, get: GetDraft, update: UpdateDraft, approve: ApproveDraft) -> None:
        self._create = create
        self._get = get
        self._update = update
        self._approve = approve

    async def CreateDraft(self, request: pb.CreateDraftRequest, context: Context) -> pb.CreateDraftResponse:
        return await self._create(
            request_key("CreateDraft", request),
            draft_id=request.draft_id,
            content=wire.content(request.draft.content),
            targets=wire.targets(request.draft.targets),
        )

    async def GetDraft(self, request: pb.GetDraftRequest, context: Context) -> pb.GetDraftResponse:
        return await self._get(organization_id=request.organization_id, draft_id=request.draft_id)

    async def UpdateDraft(self, request: pb.UpdateDraftRequest, context: Context) -> pb.UpdateDraftResponse:
        if not request.draft.id:
            raise InvalidField("draft.id", "is required")
        return await self._update(
            request_key("UpdateDraft", request),
            draft_id=request.draft.id,
            etag=request.draft.etag,
            change=wire.change(request.draft, request.update_mask),
        )

    async def ApproveDraft(self, request: pb.ApproveDraftRequest, context: Context) -> pb.ApproveDraftResponse:
        return await self._approve(
            request_key("ApproveDraft", request),
            draft_id=request.draft_id,
            content_digest=request.content_digest,
            etag=request.etag,
            approver=request.approver,
        )
