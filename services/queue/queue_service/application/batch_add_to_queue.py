"""Adding many drafts to queues, each item as AddToQueue or ScheduleAt would, in their order.

The items are stored in chunks, one transaction each. The answer of each chunk is stored under an id that is derived
from the request's, so a repeated call returns the results of the chunks that were stored, and carries out the others.
A chunk with an item that cannot be decided now, because another service is unreachable, is not stored.

Two chunks that share no account are carried out at the same time: the database works for one while this process works
for the other.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain, count
from typing import TypeVar

from queue_service.application.draft_finder import DraftFinder, FoundDraft
from queue_service.application.slot_booker import Reading, SlotBooker, Unread
from queue_service.application.slot_time_reader import FEW_TIMES, SlotTimeReader, TimesWanted, with_times
from queue_service.domain.account import AccountKey
from queue_service.domain.batch import Chunk, Item, lines
from queue_service.domain.schedule_check import ReadTimes
from queue_service.domain.slot import QueueSlot
from servicekit.faults import DeadlineExceeded, Fault, Unavailable
from servicekit.pg.database import Transaction
from servicekit.pg.ledger import Call, RequestLedger
from servicekit.pg.outbox import current_traceparent

_LINES_AT_ONCE = 2
_NO_TIMES: Mapping[AccountKey, ReadTimes] = {}

ItemAnswer = TypeVar("ItemAnswer")
Outcome = QueueSlot | Fault
_Line = Sequence[tuple[int, Chunk]]
"""Numbered chunks, one after the other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    organization_id: str
    items: tuple[Item, ...]


class BatchAddToQueue:
    def __init__(
        self, *, ledger: RequestLedger, find_draft: DraftFinder, read_times: SlotTimeReader, book: SlotBooker
    ) -> None:
        self._ledger = ledger
        self._find_draft = find_draft
        self._read_times = read_times
        self._book = book

    async def __call__(self, call: Call[Sequence[Outcome], Sequence[ItemAnswer]], batch: Batch) -> Sequence[ItemAnswer]:
        """Returns an answer for each item. If a chunk cannot be carried out now, the others are, and the call fails."""
        wanted = [(item.draft_id, item.social_account_id) for item in batch.items]
        found = await self._find_draft.find_all(batch.organization_id, wanted)
        answers: dict[int, ItemAnswer] = {}
        failures: list[Fault] = []

        async def carry_out(left: Iterator[_Line]) -> None:
            for number, places in chain.from_iterable(left):
                chunk = [(batch.items[place], found[place]) for place in places]
                try:
                    answered = await self._carry_out(_call_of(call, number), batch.organization_id, chunk)
                except Fault as fault:
                    failures.append(fault)
                else:
                    answers.update(zip(places, answered, strict=True))

        numbered = _numbered(lines(batch.items))
        # Alone: if the `request_id` was used for another request, the others must not be stored.
        await carry_out(iter(numbered[:1]))
        if all(map(_is_passing, failures)):
            others = iter(numbered[1:])
            async with asyncio.TaskGroup() as group:
                for _ in range(_LINES_AT_ONCE):
                    group.create_task(carry_out(others))
        if failures:
            raise min(failures, key=_is_passing)
        return [answers[place] for place in range(len(batch.items))]

    async def _carry_out(
        self,
        call: Call[Sequence[Outcome], Sequence[ItemAnswer]],
        organization_id: str,
        chunk: Sequence[tuple[Item, FoundDraft | Fault]],
    ) -> Sequence[ItemAnswer]:
        wanted = _times_wanted(organization_id, chunk)

        async def attempt(attempted: TimesWanted) -> Sequence[ItemAnswer]:
            times = await self._read_times(
                {
                    account: replace(
                        attempted,
                        count=max(attempted.count, each.count),
                        needed=max(attempted.needed, each.needed),
                        categories=each.categories,
                    )
                    for account, each in wanted.items()
                }
            )
            alone = {account: {account: read} for account, read in times.items()}
            readings = [_reading(organization_id, item, found, alone) for item, found in chunk]
            [answer] = await self._ledger.once_each([(call, readings)], self._book_each)
            if isinstance(answer, Fault):
                raise answer
            stored: Sequence[ItemAnswer] = answer
            return stored

        return await with_times(attempt, TimesWanted())

    async def _book_each(
        self, tx: Transaction, asked: Sequence[Sequence[Reading | Unread]], now: datetime
    ) -> list[Sequence[Outcome] | Fault]:
        """Books a chunk. Raises what passes, such as that more times have to be read: then nothing of it is stored."""
        [readings] = asked
        outcomes = [
            outcome if isinstance(outcome, Fault) else outcome[0] for outcome in await self._book(tx, readings, now)
        ]
        for outcome in outcomes:
            if isinstance(outcome, Fault) and _is_passing(outcome):
                raise outcome
        return [outcomes]


def _numbered(split: Sequence[Sequence[Chunk]]) -> list[_Line]:
    """Numbers the chunks of all lines."""
    numbers = count()
    return [[(next(numbers), chunk) for chunk in line] for line in split]


def _call_of(
    call: Call[Sequence[Outcome], Sequence[ItemAnswer]], number: int
) -> Call[Sequence[Outcome], Sequence[ItemAnswer]]:
    """Returns the call under which a chunk is stored. No caller can choose an id with a slash."""
    return replace(call, request_id=f"{call.request_id}/{number}") if call.request_id else call


def _times_wanted(
    organization_id: str, chunk: Sequence[tuple[Item, FoundDraft | Fault]]
) -> dict[AccountKey, TimesWanted]:
    """Returns the slot times that the items of a chunk need at least, by account."""
    numbers = Counter[AccountKey]()
    categories = defaultdict[AccountKey, dict[str, None]](dict)
    for item, found in chunk:
        if isinstance(found, FoundDraft) and not item.schedule_time:
            account = (organization_id, item.social_account_id)
            numbers[account] += 1
            categories[account] |= dict.fromkeys((found.draft.category_id, ""))
    return {
        account: TimesWanted(
            count=max(FEW_TIMES, number + number // 4),
            # Of several categories, any may get most of the drafts.
            needed=number if len(categories[account]) == 1 else 1,
            categories=tuple(categories[account]),
        )
        for account, number in numbers.items()
    }


def _reading(
    organization_id: str,
    item: Item,
    found: FoundDraft | Fault,
    times: Mapping[AccountKey, Mapping[AccountKey, ReadTimes]],
) -> Reading | Unread:
    """Returns the item as a call of its own has read it; `times` has the times of each account alone."""
    if isinstance(found, Fault):
        return Unread(fault=found, schedule_time=item.schedule_time)
    account = (organization_id, item.social_account_id)
    return Reading(
        draft=found.draft,
        accounts=(account,),
        times=_NO_TIMES if item.schedule_time else times[account],
        traceparent=current_traceparent(),
        schedule_time=item.schedule_time,
    )


def _is_passing(fault: Fault) -> bool:
    return isinstance(fault, Unavailable | DeadlineExceeded)
