"""Giving a draft the next free weekly slot, or the next one, on each account: on all accounts or on none.

The call first reads from Schedule and Drafts. Then one transaction, under the locks of the accounts, checks whether
what it read is still current and which times are free. If it is not current, or the search needs more times, the call
reads again. Schedule's answer also brings changes that have not been announced here yet.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from queue_service.application.draft_finder import DraftFinder
from queue_service.application.front_booker import FrontBooker
from queue_service.application.slot_booker import Reading, SlotBooker, Unread
from queue_service.application.slot_time_reader import SlotTimeReader, TimesWanted, with_times
from queue_service.domain.slot import QueueSlot
from servicekit.faults import Fault
from servicekit.pg.ledger import Answer, Call, RequestLedger
from servicekit.pg.outbox import current_traceparent
from servicekit.pg.together import Together


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueOrder:
    organization_id: str
    draft_id: str
    social_account_ids: tuple[str, ...] = ()
    # At the next slot time, whose slot shifts; otherwise at the next free one.
    in_front: bool = False


class AddToQueue:
    def __init__(
        self,
        *,
        ledger: RequestLedger,
        find_draft: DraftFinder,
        read_times: SlotTimeReader,
        book: SlotBooker,
        book_in_front: FrontBooker,
    ) -> None:
        self._ledger = ledger
        self._find_draft = find_draft
        self._read_times = read_times
        self.book = book
        self._book_in_front = book_in_front
        self._together = Together(ledger, book)

    async def __call__(self, call: Call[Sequence[QueueSlot], Answer], order: QueueOrder) -> Answer:
        async def attempt(wanted: TimesWanted) -> Answer:
            reading = await self.read(order, wanted)
            if order.in_front:
                return await self._ledger.once(call, partial(self._book_in_front, reading))
            return await self._together(call, reading)

        return await with_times(attempt, TimesWanted(even_filled=order.in_front))

    async def read(self, order: QueueOrder, wanted: TimesWanted | None = None) -> Reading | Unread:
        """Returns faults instead of raising them: a repeated request gets its first answer, even if this fails now."""
        found = await self._find_draft(order.organization_id, order.draft_id, order.social_account_ids)
        if isinstance(found, Fault):
            return Unread(fault=found)
        accounts = tuple((order.organization_id, account) for account in found.accounts)
        wanted = replace(wanted or TimesWanted(), categories=tuple(dict.fromkeys((found.draft.category_id, ""))))
        return Reading(
            draft=found.draft,
            accounts=accounts,
            times=await self._read_times(dict.fromkeys(accounts, wanted)),
            traceparent=current_traceparent(),
        )
