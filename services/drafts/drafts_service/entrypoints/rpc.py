"""DraftsService over gRPC: decode, call, encode."""

from typing import Any

import grpc

from drafts_service.application.approve_draft import ApproveDraft, BatchApproveDrafts
from drafts_service.application.create_draft import BatchCreateDrafts, CreateDraft
from drafts_service.application.find_draft_targets import FindDraftTargets
from drafts_service.application.get_draft import GetDraft
from drafts_service.application.update_draft import UpdateDraft
from drafts_service.wire import drafts
from postflow.drafts.v1 import drafts_service_pb2 as pb
from postflow.drafts.v1.draft_targets_service_pb2 import FindDraftTargetsRequest, FindDraftTargetsResponse
from postflow.drafts.v1.draft_targets_service_pb2_grpc import DraftTargetsServiceServicer
from postflow.drafts.v1.drafts_service_pb2_grpc import DraftsServiceServicer
from servicekit.pg.ledger import mutation

Context = grpc.aio.ServicerContext[Any, Any]


class DraftsServicer(DraftsServiceServicer, DraftTargetsServiceServicer):
    """Both services, because both read and write the same drafts."""

    def __init__(
        self,
        *,
        create: CreateDraft,
        create_batch: BatchCreateDrafts,
        get: GetDraft,
        update: UpdateDraft,
        approve: ApproveDraft,
        approve_batch: BatchApproveDrafts,
        find_targets: FindDraftTargets,
    ) -> None:
        self._find_targets = find_targets
        self._create = create
        self._create_batch = create_batch
        self._get = get
        self._update = update
        self._approve = approve
        self._approve_batch = approve_batch

    async def CreateDraft(self, request: pb.CreateDraftRequest, context: Context) -> pb.CreateDraftResponse:
        return await self._create(
            mutation(request, pb.CreateDraftResponse, drafts.create_draft_response),
            drafts.given_draft(request.draft, request.draft_id),
        )

    async def BatchCreateDrafts(
        self, request: pb.BatchCreateDraftsRequest, context: Context
    ) -> pb.BatchCreateDraftsResponse:
        return await self._create_batch(
            mutation(request, pb.BatchCreateDraftsResponse, drafts.batch_create_drafts_response),
            [drafts.given_draft(each.draft, each.draft_id) for each in request.drafts],
        )

    async def GetDraft(self, request: pb.GetDraftRequest, context: Context) -> pb.GetDraftResponse:
        view = await self._get(organization_id=request.organization_id, draft_id=request.draft_id)
        return drafts.get_draft_response(view)

    async def FindDraftTargets(self, request: FindDraftTargetsRequest, context: Context) -> FindDraftTargetsResponse:
        return drafts.find_draft_targets_response(await self._find_targets(drafts.draft_keys(request)))

    async def UpdateDraft(self, request: pb.UpdateDraftRequest, context: Context) -> pb.UpdateDraftResponse:
        return await self._update(
            mutation(request, pb.UpdateDraftResponse, drafts.update_draft_response),
            draft_id=drafts.draft_id(request.draft),
            etag=request.draft.etag,
            change=drafts.change(request.draft, request.update_mask),
        )

    async def ApproveDraft(self, request: pb.ApproveDraftRequest, context: Context) -> pb.ApproveDraftResponse:
        return await self._approve(
            mutation(request, pb.ApproveDraftResponse, drafts.approve_draft_response),
            drafts.given_approval(request, request.approver),
        )

    async def BatchApproveDrafts(
        self, request: pb.BatchApproveDraftsRequest, context: Context
    ) -> pb.BatchApproveDraftsResponse:
        return await self._approve_batch(
            mutation(request, pb.BatchApproveDraftsResponse, drafts.batch_approve_drafts_response),
            [drafts.given_approval(each, request.approver) for each in request.drafts],
        )
