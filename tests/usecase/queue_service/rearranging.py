"""Calls that rearrange a queue, without the process."""

from typing import TYPE_CHECKING, Any

from postflow.queue.v1.queue_service_pb2 import (
    ClearQueueRequest,
    ClearQueueResponse,
    MoveSlotRequest,
    MoveSlotResponse,
    RemoveFromQueueRequest,
    RemoveFromQueueResponse,
    ReorderQueueRequest,
    ReorderQueueResponse,
    ShuffleQueueRequest,
    ShuffleQueueResponse,
)
from queue_service.application.account_check import AccountCheck
from queue_service.application.account_presence import AccountPresence
from queue_service.application.clear_queue import Clearing, ClearQueue
from queue_service.application.move_slot import MoveSlot, Relocation
from queue_service.application.remove_from_queue import Removal, RemoveFromQueue
from queue_service.application.reorder_queue import NewOrder, ReorderQueue
from queue_service.application.shuffle_queue import ShuffleQueue, Shuffling
from queue_service.application.times_on_demand import TimesOnDemand
from queue_service.wire import rearrangements
from servicekit.pg.ledger import mutation

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue

ACME = "acme"
PAGE = (ACME, "page")
SEED = 4711


class Rearranging:
    """The verbs on one queue; `etag` is the one that it has now, unless a test gives another."""

    def __init__(self, queue: "Queue") -> None:
        self._queue = queue
        self._ledger, self._arranger = queue.ledger, queue.arranger
        self._accounts = AccountPresence(queue.database, AccountCheck(queue.accounts))

    async def etag(self) -> str:
        [row] = await self._queue.rows("select arrangement from account_queue where social_account_id = 'page'")
        return str(row.arrangement)

    async def reorder(
        self, *slot_ids: str, drafts: tuple[str, ...] = (), etag: str | None = None, request_id: str = ""
    ) -> ReorderQueueResponse:
        request = ReorderQueueRequest(
            organization_id=ACME,
            social_account_id="page",
            slot_ids=slot_ids,
            draft_ids=drafts,
            etag=await self.etag() if etag is None else etag,
            request_id=request_id,
        )
        call = mutation(request, ReorderQueueResponse, rearrangements.reorder_queue_response)
        asked = NewOrder(account=PAGE, order=rearrangements.order(request), etag=request.etag)
        return await ReorderQueue(ledger=self._ledger, arranger=self._arranger)(call, asked)

    async def shuffle(self, seed: int = 0, *, account: str = "page", **fields: Any) -> ShuffleQueueResponse:
        request = ShuffleQueueRequest(organization_id=ACME, social_account_id=account, seed=seed, **fields)
        call = mutation(request, ShuffleQueueResponse, rearrangements.shuffle_queue_response)
        asked = Shuffling(account=(ACME, account), seed=seed, etag=request.etag)
        shuffle = ShuffleQueue(
            ledger=self._ledger, arranger=self._arranger, accounts=self._accounts, seeds=lambda: SEED
        )
        return await shuffle(call, asked)

    async def remove(
        self, slot_id: str, *, close_gap: bool = False, etag: str = "", request_id: str = "", organization: str = ACME
    ) -> RemoveFromQueueResponse:
        queue = self._queue
        request = RemoveFromQueueRequest(
            organization_id=organization, slot_id=slot_id, close_gap=close_gap, etag=etag, request_id=request_id
        )
        call = mutation(request, RemoveFromQueueResponse, rearrangements.remove_from_queue_response)
        removal = Removal(organization_id=organization, slot_id=slot_id, close_gap=close_gap, etag=etag)
        remove = RemoveFromQueue(
            database=queue.database,
            clock=queue.clock,
            ledger=self._ledger,
            policy=queue.policy,
            arranger=self._arranger,
            take_back=queue.take_back,
        )
        return await remove(call, removal)

    async def clear(self, account: str = "page", *, etag: str = "", request_id: str = "") -> ClearQueueResponse:
        queue = self._queue
        request = ClearQueueRequest(organization_id=ACME, social_account_id=account, etag=etag, request_id=request_id)
        call = mutation(request, ClearQueueResponse, rearrangements.clear_queue_response)
        clear = ClearQueue(
            database=queue.database,
            clock=queue.clock,
            ledger=self._ledger,
            accounts=self._accounts,
            arranger=self._arranger,
            take_back=queue.take_back,
        )
        return await clear(call, Clearing(account=(ACME, account), etag=etag))

    async def move(self, slot_id: str, *, organization: str = ACME, **fields: Any) -> MoveSlotResponse:
        """Moves a slot; `fields` has the destination as the request names it."""
        queue = self._queue
        request = MoveSlotRequest(organization_id=organization, slot_id=slot_id, **fields)
        call = mutation(request, MoveSlotResponse, rearrangements.move_slot_response)
        destination = rearrangements.destination(request)
        asked = Relocation(organization_id=organization, slot_id=slot_id, destination=destination, etag=request.etag)
        move = MoveSlot(
            database=queue.database,
            clock=queue.clock,
            ledger=self._ledger,
            policy=queue.policy,
            arranger=self._arranger,
            take_back=queue.take_back,
            times=TimesOnDemand(queue.read_times),
        )
        return await move(call, asked)

    async def drafts(self) -> list[str]:
        """Returns the drafts of the live slots in order."""
        rows = await self._queue.rows("select draft_id from slot where is_live order by schedule_time")
        return [row.draft_id for row in rows]
