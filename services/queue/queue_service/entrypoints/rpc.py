"""QueueService: decode, call, encode."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any, Protocol

import grpc

from postflow.queue.v1 import queue_service_pb2_grpc
from postflow.queue.v1.queue_service_pb2 import (
    AddToQueueRequest,
    AddToQueueResponse,
    BatchAddToQueueRequest,
    BatchAddToQueueResponse,
    ClearQueueRequest,
    ClearQueueResponse,
    ExplainSlotRequest,
    ExplainSlotResponse,
    GetQueueRequest,
    GetQueueResponse,
    ListDraftSlotsRequest,
    ListDraftSlotsResponse,
    ListQueueSlotsRequest,
    ListQueueSlotsResponse,
    MoveSlotRequest,
    MoveSlotResponse,
    PauseQueueRequest,
    PauseQueueResponse,
    PlanQueueRequest,
    PlanQueueResponse,
    RemoveFromQueueRequest,
    RemoveFromQueueResponse,
    ReorderQueueRequest,
    ReorderQueueResponse,
    ResumeQueueRequest,
    ResumeQueueResponse,
    ScheduleAtRequest,
    ScheduleAtResponse,
    ShuffleQueueRequest,
    ShuffleQueueResponse,
    SkipNextSlotRequest,
    SkipNextSlotResponse,
    UpdateQueueRequest,
    UpdateQueueResponse,
    WatchQueueRequest,
    WatchQueueResponse,
)
from queue_service.application.add_to_queue import AddToQueue, QueueOrder
from queue_service.application.batch_add_to_queue import Batch, BatchAddToQueue
from queue_service.application.clear_queue import Clearing, ClearQueue
from queue_service.application.explain_slot import ExplainSlot
from queue_service.application.get_queue import GetQueue
from queue_service.application.list_draft_slots import ListDraftSlots
from queue_service.application.list_queue_slots import ListQueueSlots
from queue_service.application.move_slot import MoveSlot, Relocation
from queue_service.application.pause_queue import PauseOrder, PauseQueue
from queue_service.application.plan_queue import PlanQueue
from queue_service.application.remove_from_queue import Removal, RemoveFromQueue
from queue_service.application.reorder_queue import NewOrder, ReorderQueue
from queue_service.application.resume_queue import ResumeOrder, ResumeQueue
from queue_service.application.schedule_at import ExactOrder, ScheduleAt
from queue_service.application.shuffle_queue import ShuffleQueue, Shuffling
from queue_service.application.skip_next_slot import Skip, SkipNextSlot
from queue_service.application.update_queue import QueueSettings, UpdateQueue
from queue_service.application.watch_queue import WatchQueue
from queue_service.domain.account import AccountKey
from queue_service.domain.listing import Filter
from queue_service.wire import batches, pauses, plans, rearrangements, watching
from queue_service.wire import slots as wire
from queue_service.wire.explanations import explain_slot_response
from queue_service.wire.queues import get_queue_response, skip_next_slot_response
from servicekit.pg.ledger import mutation
from servicekit.rpc import (
    MAX_SENT_BYTES,
    MAX_TAKEN_BYTES,
    Sizes,
    next_page_token,
    read_page,
    read_resume_token,
    resume_token,
)
from servicekit.timestamps import moment

Context = grpc.aio.ServicerContext[Any, Any]

_OF_QUEUE = "postflow.queue.v1.QueueService"
_MANY_SLOTS = (
    "BatchAddToQueue",
    "ClearQueue",
    "ListDraftSlots",
    "ListQueueSlots",
    "MoveSlot",
    "RemoveFromQueue",
    "ResumeQueue",
    "ShuffleQueue",
)
SIZES = {
    **{f"{_OF_QUEUE}/{method}": Sizes(answer=MAX_SENT_BYTES) for method in _MANY_SLOTS},
    **{
        f"{_OF_QUEUE}/{method}": Sizes(request=MAX_TAKEN_BYTES, answer=MAX_SENT_BYTES)
        for method in ("PlanQueue", "ReorderQueue")
    },
}
"""Hundreds of slots, each with several targets, or an order of ten thousand take more than other messages."""


class QueueServicer(queue_service_pb2_grpc.QueueServiceServicer):
    def __init__(
        self,
        *,
        add_to_queue: AddToQueue,
        batch_add_to_queue: BatchAddToQueue,
        schedule_at: ScheduleAt,
        explain_slot: ExplainSlot,
        get_queue: GetQueue,
        list_draft_slots: ListDraftSlots,
        list_queue_slots: ListQueueSlots,
        skip_next_slot: SkipNextSlot,
        move_slot: MoveSlot,
        remove_from_queue: RemoveFromQueue,
        clear_queue: ClearQueue,
        reorder_queue: ReorderQueue,
        shuffle_queue: ShuffleQueue,
        pause_queue: PauseQueue,
        resume_queue: ResumeQueue,
        update_queue: UpdateQueue,
        watch_queue: WatchQueue,
        plan_queue: PlanQueue,
    ) -> None:
        self._add_to_queue = add_to_queue
        self._batch_add_to_queue = batch_add_to_queue
        self._schedule_at = schedule_at
        self._explain_slot = explain_slot
        self._get_queue = get_queue
        self._list_draft_slots = list_draft_slots
        self._list_queue_slots = list_queue_slots
        self._skip_next_slot = skip_next_slot
        self._move_slot = move_slot
        self._remove_from_queue = remove_from_queue
        self._clear_queue = clear_queue
        self._reorder_queue = reorder_queue
        self._shuffle_queue = shuffle_queue
        self._pause_queue = pause_queue
        self._resume_queue = resume_queue
        self._update_queue = update_queue
        self._watch_queue = watch_queue
        self._plan_queue = plan_queue

    async def AddToQueue(self, request: AddToQueueRequest, context: Context) -> AddToQueueResponse:
        order = QueueOrder(
            organization_id=request.organization_id,
            draft_id=request.draft_id,
            social_account_ids=tuple(request.social_account_ids),
            in_front=wire.is_in_front(request.place),
        )
        return await self._add_to_queue(mutation(request, AddToQueueResponse, wire.add_to_queue_response), order)

    async def ScheduleAt(self, request: ScheduleAtRequest, context: Context) -> ScheduleAtResponse:
        order = ExactOrder(
            organization_id=request.organization_id,
            draft_id=request.draft_id,
            schedule_time=moment(request.schedule_time),
            social_account_ids=tuple(request.social_account_ids),
        )
        return await self._schedule_at(mutation(request, ScheduleAtResponse, wire.schedule_at_response), order)

    async def BatchAddToQueue(self, request: BatchAddToQueueRequest, context: Context) -> BatchAddToQueueResponse:
        call = batches.in_chunks(mutation(request, BatchAddToQueueResponse, batches.item_results))
        batch = Batch(organization_id=request.organization_id, items=batches.items(request))
        results = await self._batch_add_to_queue(call, batch)
        return BatchAddToQueueResponse(results=results)

    async def GetQueue(self, request: GetQueueRequest, context: Context) -> GetQueueResponse:
        return get_queue_response(await self._get_queue((request.organization_id, request.social_account_id)))

    async def ListQueueSlots(self, request: ListQueueSlotsRequest, context: Context) -> ListQueueSlotsResponse:
        asked = read_page(request)
        wanted = Filter(
            organization_id=request.organization_id,
            social_account_id=request.social_account_id,
            draft_id=request.draft_id,
            states=wire.states(request.states),
            start_time=moment(request.start_time) if request.HasField("start_time") else None,
            end_time=moment(request.end_time) if request.HasField("end_time") else None,
        )
        page = await self._list_queue_slots(wanted, after=wire.position(asked.after), size=asked.size)
        token = next_page_token(request, wire.cursor(page.last)) if page.last else ""
        return wire.list_queue_slots_response(page.slots, token)

    async def ExplainSlot(self, request: ExplainSlotRequest, context: Context) -> ExplainSlotResponse:
        return explain_slot_response(await self._explain_slot(request.organization_id, request.slot_id))

    async def SkipNextSlot(self, request: SkipNextSlotRequest, context: Context) -> SkipNextSlotResponse:
        asked = Skip(account=(request.organization_id, request.social_account_id), undo=request.undo)
        return await self._skip_next_slot(mutation(request, SkipNextSlotResponse, skip_next_slot_response), asked)

    async def MoveSlot(self, request: MoveSlotRequest, context: Context) -> MoveSlotResponse:
        asked = Relocation(
            organization_id=request.organization_id,
            slot_id=request.slot_id,
            destination=rearrangements.destination(request),
            etag=request.etag,
        )
        return await self._move_slot(mutation(request, MoveSlotResponse, rearrangements.move_slot_response), asked)

    async def RemoveFromQueue(self, request: RemoveFromQueueRequest, context: Context) -> RemoveFromQueueResponse:
        removal = Removal(
            organization_id=request.organization_id,
            slot_id=request.slot_id,
            close_gap=request.close_gap,
            etag=request.etag,
        )
        call = mutation(request, RemoveFromQueueResponse, rearrangements.remove_from_queue_response)
        return await self._remove_from_queue(call, removal)

    async def ClearQueue(self, request: ClearQueueRequest, context: Context) -> ClearQueueResponse:
        call = mutation(request, ClearQueueResponse, rearrangements.clear_queue_response)
        return await self._clear_queue(call, Clearing(account=_account(request), etag=request.etag))

    async def ReorderQueue(self, request: ReorderQueueRequest, context: Context) -> ReorderQueueResponse:
        asked = NewOrder(account=_account(request), order=rearrangements.order(request), etag=request.etag)
        call = mutation(request, ReorderQueueResponse, rearrangements.reorder_queue_response)
        return await self._reorder_queue(call, asked)

    async def ShuffleQueue(self, request: ShuffleQueueRequest, context: Context) -> ShuffleQueueResponse:
        asked = Shuffling(account=_account(request), seed=request.seed, etag=request.etag)
        call = mutation(request, ShuffleQueueResponse, rearrangements.shuffle_queue_response)
        return await self._shuffle_queue(call, asked)

    async def ListDraftSlots(self, request: ListDraftSlotsRequest, context: Context) -> ListDraftSlotsResponse:
        drafts = await self._list_draft_slots(request.organization_id, request.draft_ids, live_only=request.live_only)
        return await wire.list_draft_slots_response(drafts)

    async def PauseQueue(self, request: PauseQueueRequest, context: Context) -> PauseQueueResponse:
        order = PauseOrder(
            account=_account(request),
            pauser=request.pauser,
            reason=request.reason,
            etag=request.etag,
        )
        return await self._pause_queue(mutation(request, PauseQueueResponse, pauses.pause_queue_response), order)

    async def ResumeQueue(self, request: ResumeQueueRequest, context: Context) -> ResumeQueueResponse:
        order = ResumeOrder(
            account=_account(request),
            overdue=pauses.overdue_policy(request.overdue),
            etag=request.etag,
        )
        return await self._resume_queue(mutation(request, ResumeQueueResponse, pauses.resume_queue_response), order)

    async def UpdateQueue(self, request: UpdateQueueRequest, context: Context) -> UpdateQueueResponse:
        settings = QueueSettings(
            account=_account(request),
            late_policy=pauses.late_policy(request),
            pace=pauses.pace(request),
            etag=request.etag,
        )
        return await self._update_queue(mutation(request, UpdateQueueResponse, pauses.update_queue_response), settings)

    async def WatchQueue(self, request: WatchQueueRequest, context: Context) -> AsyncIterator[WatchQueueResponse]:
        since = watching.mark(read_resume_token(request))
        async with aclosing(self._watch_queue(_account(request), since)) as watch:
            async for news in watch:
                yield watching.watch_queue_response(news, resume_token(request, watching.cursor(news.mark)))

    async def PlanQueue(self, request: PlanQueueRequest, context: Context) -> PlanQueueResponse:
        change = plans.planned_change(request)
        with plans.fields_of(request):
            plan = await self._plan_queue(_account(request), change)
        return await plans.plan_queue_response(plan)


class _OfAccount(Protocol):
    @property
    def organization_id(self) -> str: ...

    @property
    def social_account_id(self) -> str: ...


def _account(request: _OfAccount) -> AccountKey:
    return request.organization_id, request.social_account_id
