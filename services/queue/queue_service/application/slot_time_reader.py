"""Reading the slot times of accounts from Schedule, before a transaction.

Calls that are in flight at the same time share the statement that reads the accounts.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain
from typing import Protocol, TypeVar

from queue_service.adapters.postgres.accounts import find_queues
from queue_service.domain.account import AccountKey, AccountQueue
from queue_service.domain.policy import Policy
from queue_service.domain.schedule_check import ReadAgain, ReadTimes, changing, refused
from queue_service.domain.slot import HORIZON
from queue_service.domain.slot_times import SlotTimes
from servicekit.faults import Fault, NotFound
from servicekit.gathering import Gathering
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database
from servicekit.run.transient import is_transient

FEW_TIMES = 64
_MOST_TIMES = 128_000
"""More than 730 days of 500 weekly slots have."""
_PAGE = 1000
"""The most times in an answer of Schedule."""
_PATIENCE, _CHANGES = 3, 20

Outcome = TypeVar("Outcome")


class Schedule(Protocol):
    async def slot_times(
        self,
        organization_id: str,
        queue: AccountQueue,
        *,
        start: datetime,
        horizon: datetime,
        count: int,
        category_id: str | None = None,
        needed: int = 1,
    ) -> SlotTimes: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TimesWanted:
    """The slot times that a call needs of an account: about `count`, and at least `needed` if there are as many.

    They begin at the account's frontier or, if given, at `start`; or at the first one that a new slot may get if they
    are wanted `even_filled`. `attempts` counts those that have needed more.
    """

    count: int = FEW_TIMES
    needed: int = 1
    categories: Collection[str] = ("",)
    start: datetime | None = None
    even_filled: bool = False
    attempts: int = 0

    def more(self, at_least: int = 0) -> "TimesWanted":
        """Returns what to read after it was not enough.

        An attempt mostly begins where the one before has stopped. If that does not help, it gets more at once.
        """
        count = _PAGE if self.attempts < _PATIENCE else min(max(self.count, _PAGE) * 8, _MOST_TIMES)
        count = max(count, min(at_least, _MOST_TIMES))
        return replace(self, count=max(count, self.count), needed=count, attempts=self.attempts + 1)


async def with_times(attempt: Callable[[TimesWanted], Awaitable[Outcome]], wanted: TimesWanted) -> Outcome:
    """Returns the outcome of the first attempt that has current slot times, and enough of them."""
    changes = 0
    while changes < _CHANGES:
        try:
            return await attempt(wanted)
        except ReadAgain as again:
            changes += not again.needs_more or wanted.count == _MOST_TIMES
            wanted = wanted.more(again.at_least) if again.needs_more else wanted
    raise changing()


class SlotTimeReader:
    def __init__(self, *, database: Database, clock: DatabaseClock, schedule: Schedule, policy: Policy) -> None:
        self._database = database
        self._clock = clock
        self._schedule = schedule
        self._policy = policy
        self._known = Gathering[Sequence[AccountKey], tuple[datetime, Mapping[AccountKey, AccountQueue]]](
            self._read_queues, share=_tenant, is_shared=_is_down
        )

    async def __call__(self, wanted: Mapping[AccountKey, TimesWanted]) -> dict[AccountKey, ReadTimes]:
        """Returns faults instead of raising them: a repeated request gets its first answer, even if this fails now."""
        if not wanted:
            return {}
        now, known = await self._known(list(wanted))
        async with asyncio.TaskGroup() as group:
            reads = {
                account: group.create_task(
                    self._read(account, known.get(account, AccountQueue(social_account_id=account[1])), each, now)
                )
                for account, each in wanted.items()
            }
        return {account: read.result() for account, read in reads.items()}

    async def _read_queues(
        self, asked: Sequence[Sequence[AccountKey]]
    ) -> list[tuple[datetime, Mapping[AccountKey, AccountQueue]]]:
        """Returns the time and what Queue knows of the accounts, for several calls that are in flight."""
        async with self._database.read_session() as session:
            now = await self._clock.now(session)
            known = await find_queues(session, set(chain.from_iterable(asked)))
        return [(now, known)] * len(asked)

    async def _read(self, account: AccountKey, queue: AccountQueue, wanted: TimesWanted, now: datetime) -> ReadTimes:
        try:
            return {
                category: await self._read_line(account[0], queue, wanted, category, now)
                for category in wanted.categories
            }
        except NotFound:
            return refused("NO_SCHEDULE", f"account {account[1]} has no schedule", account[1])
        except Fault as fault:
            return fault

    async def _read_line(
        self, organization_id: str, queue: AccountQueue, wanted: TimesWanted, category: str, now: datetime
    ) -> SlotTimes:
        earliest = now + self._policy.notice
        start = wanted.start or (earliest if wanted.even_filled else queue.frontier_of(category).next_open(earliest))
        pages: list[SlotTimes] = []
        missing, needed = wanted.count, wanted.needed
        while missing > 0:
            page = await self._schedule.slot_times(
                organization_id,
                queue,
                start=start,
                horizon=now + HORIZON,
                count=min(missing, _PAGE),
                category_id=category,
                needed=min(needed, _PAGE),
            )
            if not wanted.start and start > earliest and page.schedule and queue.learns_from(page.schedule):
                # The frontier is that of an older schedule: earlier times may be free.
                return await self._read_line(organization_id, queue.learned(page.schedule), wanted, category, now)
            if pages and not page.continues(pages[-1]):
                return pages[0]  # The schedule has changed meanwhile: what lies behind is read again.
            pages.append(page)
            if page.last:
                break
            start, missing, needed = page.until, missing - _PAGE, needed - _PAGE
        return joined(pages)


def joined(pages: Sequence[SlotTimes]) -> SlotTimes:
    """Returns consecutive pages as one."""
    if len(pages) == 1:
        return pages[0]
    return replace(
        pages[-1],
        after=pages[0].after,
        times=tuple(chain.from_iterable(page.times for page in pages)),
        nominals=tuple(chain.from_iterable(page.nominals for page in pages)),
    )


def _tenant(accounts: Iterable[AccountKey]) -> str:
    return next(iter(accounts))[0]


def _is_down(_items: object, error: BaseException) -> bool:
    return is_transient(error)
