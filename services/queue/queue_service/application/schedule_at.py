"""Giving a draft a time of the caller's choice on each account: on all accounts or on none."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from queue_service.application.draft_finder import DraftFinder
from queue_service.application.slot_booker import Reading, SlotBooker, Unread
from queue_service.domain.slot import QueueSlot
from servicekit.faults import Fault
from servicekit.pg.ledger import Answer, Call, RequestLedger
from servicekit.pg.outbox import current_traceparent
from servicekit.pg.together import Together


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactOrder:
    organization_id: str
    draft_id: str
    schedule_time: datetime
    social_account_ids: tuple[str, ...] = ()


class ScheduleAt:
    def __init__(self, *, ledger: RequestLedger, find_draft: DraftFinder, book: SlotBooker) -> None:
        self._find_draft = find_draft
        self.schedule = book
        self._together = Together(ledger, book)

    async def __call__(self, call: Call[Sequence[QueueSlot], Answer], order: ExactOrder) -> Answer:
        return await self._together(call, await self.read(order))

    async def read(self, order: ExactOrder) -> Reading | Unread:
        found = await self._find_draft(order.organization_id, order.draft_id, order.social_account_ids)
        if isinstance(found, Fault):
            return Unread(fault=found, schedule_time=order.schedule_time)
        return Reading(
            draft=found.draft,
            accounts=tuple((order.organization_id, account) for account in found.accounts),
            times={},
            traceparent=current_traceparent(),
            schedule_time=order.schedule_time,
        )
