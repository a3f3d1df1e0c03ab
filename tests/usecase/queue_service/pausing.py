"""Pausing, resuming and setting up queues among the fakes of `Queue`."""

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from postflow.queue.v1.queue_service_pb2 import (
    PauseQueueRequest,
    PauseQueueResponse,
    ResumeQueueRequest,
    ResumeQueueResponse,
    UpdateQueueRequest,
    UpdateQueueResponse,
)
from queue_service.application.account_check import AccountCheck
from queue_service.application.account_presence import AccountPresence
from queue_service.application.complete_holds import CompleteHolds
from queue_service.application.hold_keeper import HoldKeeper
from queue_service.application.pause_queue import PauseOrder, PauseQueue
from queue_service.application.resume_queue import ResumeOrder, ResumeQueue
from queue_service.application.times_on_demand import TimesOnDemand
from queue_service.application.update_queue import QueueSettings, UpdateQueue
from queue_service.domain.late_policy import LatePolicy
from queue_service.domain.resuming import OverduePolicy
from queue_service.wire.pauses import pause_queue_response, resume_queue_response, update_queue_response
from servicekit.pg.ledger import mutation
from testkit.clocks import START

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue

FEED = ("page", "facebook", "")


class Pausing:
    """The calls on a queue that hold it up; they are about the account `page`, unless one is given."""

    def __init__(self, queue: "Queue") -> None:
        database, clock, ledger = queue.database, queue.clock, queue.ledger
        accounts = AccountPresence(database, AccountCheck(queue.accounts))
        self.keeper = HoldKeeper(database=database, clock=clock, publisher=queue.publisher, take_back=queue.take_back)
        self.pause_queue = PauseQueue(
            database=database, clock=clock, ledger=ledger, accounts=accounts, keeper=self.keeper
        )
        self.resume_queue = ResumeQueue(
            database=database,
            clock=clock,
            ledger=ledger,
            policy=queue.policy,
            accounts=accounts,
            arranger=queue.arranger,
            keeper=self.keeper,
            times=TimesOnDemand(queue.read_times),
            on_slots=queue.new_slots.set,
        )
        self.update_queue = UpdateQueue(ledger=ledger, policy=queue.policy, accounts=accounts)
        self.complete_holds = CompleteHolds(database=database, keeper=self.keeper)

    async def pause(
        self, account: str = "page", *, reason: str = "", etag: str = "", request_id: str = ""
    ) -> PauseQueueResponse:
        request = PauseQueueRequest(
            organization_id="acme",
            social_account_id=account,
            reason=reason,
            pauser="ann",
            etag=etag,
            request_id=request_id,
        )
        order = PauseOrder(account=("acme", account), pauser="ann", reason=reason, etag=etag)
        return await self.pause_queue(mutation(request, PauseQueueResponse, pause_queue_response), order)

    async def resume(
        self,
        account: str = "page",
        *,
        overdue: OverduePolicy = OverduePolicy.RESCHEDULE,
        etag: str = "",
        request_id: str = "",
    ) -> ResumeQueueResponse:
        request = ResumeQueueRequest(
            organization_id="acme",
            social_account_id=account,
            overdue=f"OVERDUE_POLICY_{overdue}",
            etag=etag,
            request_id=request_id,
        )
        order = ResumeOrder(account=("acme", account), overdue=overdue, etag=etag)
        return await self.resume_queue(mutation(request, ResumeQueueResponse, resume_queue_response), order)

    async def update(
        self,
        account: str = "page",
        *,
        late_policy: LatePolicy | None = None,
        pace: timedelta | None = None,
        etag: str = "",
        request_id: str = "",
    ) -> UpdateQueueResponse:
        request = UpdateQueueRequest(
            organization_id="acme", social_account_id=account, etag=etag, request_id=request_id
        )
        settings = QueueSettings(account=("acme", account), late_policy=late_policy, pace=pace, etag=etag)
        return await self.update_queue(mutation(request, UpdateQueueResponse, update_queue_response), settings)


async def dispatched(queue: "Queue", drafts: Sequence[str] = ("d1",)) -> None:
    """Dispatches a slot now for each draft on `page`, a minute apart."""
    for place, draft in enumerate(drafts):
        await queue.save_draft(draft, FEED)
        await queue.at(draft, START - place * timedelta(minutes=1))
    await queue.hand_over.dispatch()
