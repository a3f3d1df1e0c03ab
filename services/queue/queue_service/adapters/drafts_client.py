"""A client of Drafts, for drafts whose newest announcements may not have arrived yet.

Calls that are in flight at the same time ask together.
"""

import asyncio
from collections.abc import Sequence
from operator import itemgetter

import grpc

from postflow.drafts.v1 import (
    draft_targets_service_pb2,
    draft_targets_service_pb2_grpc,
    drafts_service_pb2,
    drafts_service_pb2_grpc,
)
from queue_service.domain.draft import Draft, DraftKey
from queue_service.wire.drafts import draft, draft_names, drafts_by_key
from servicekit.faults import DeadlineExceeded, Fault, NotFound, Unavailable
from servicekit.gathering import Gathering
from servicekit.rpc import calling

_SHORT_TIMEOUT = 1.0
"""The timeout in seconds when the caller may know the draft as last announced."""
_MOST = 20
"""The most drafts that Drafts takes in one question."""


class DraftsClient:
    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._drafts = drafts_service_pb2_grpc.DraftsServiceStub(channel)
        self._targets = draft_targets_service_pb2_grpc.DraftTargetsServiceStub(channel)
        self._asked = Gathering[DraftKey, Draft | Fault](
            self._find_all, share=itemgetter(0), is_shared=_is_unreachable, most=_MOST
        )

    async def get_draft(self, organization_id: str, draft_id: str, *, is_optional: bool) -> Draft:
        """Reads a draft. An optional answer has a short timeout, because the caller may do without it."""
        try:
            async with asyncio.timeout(_SHORT_TIMEOUT if is_optional else None):
                found = await self._asked((organization_id, draft_id))
        except TimeoutError:
            raise DeadlineExceeded("DEADLINE_EXCEEDED", "Drafts did not answer in time") from None
        if isinstance(found, Fault):
            raise found
        return found

    async def is_approved(self, organization_id: str, draft_id: str) -> bool:
        """Returns whether the content of the draft is approved now. Has a short timeout."""
        request = drafts_service_pb2.GetDraftRequest(organization_id=organization_id, draft_id=draft_id)
        with calling():
            found = await self._drafts.GetDraft(request, timeout=_SHORT_TIMEOUT)
        return found.draft.approved

    async def _find_all(self, keys: Sequence[DraftKey]) -> list[Draft | Fault]:
        request = draft_targets_service_pb2.FindDraftTargetsRequest(drafts=draft_names(keys))
        try:
            with calling():
                answer = await self._targets.FindDraftTargets(request)
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.UNIMPLEMENTED:
                raise
            # Drafts runs the previous release.
            async with asyncio.TaskGroup() as group:
                reads = [group.create_task(self._get(key)) for key in keys]
            return [read.result() for read in reads]
        found = drafts_by_key(answer.drafts)
        return [found.get(key) or _missing(key) for key in keys]

    async def _get(self, key: DraftKey) -> Draft | Fault:
        organization_id, draft_id = key
        request = drafts_service_pb2.GetDraftRequest(organization_id=organization_id, draft_id=draft_id)
        try:
            with calling():
                found = await self._drafts.GetDraft(request)
        except Fault as fault:
            return fault
        return draft(organization_id, found.draft)


def _is_unreachable(_keys: Sequence[DraftKey], error: BaseException) -> bool:
    return isinstance(error, Unavailable | DeadlineExceeded)


def _missing(key: DraftKey) -> NotFound:
    return NotFound("DRAFT_NOT_FOUND", "there is no such draft", metadata={"draft_id": key[1]})
