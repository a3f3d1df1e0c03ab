"""Finding the slot time that the next draft would get, without locks and without storing anything."""

import asyncio
from datetime import datetime

from queue_service.adapters.postgres.accounts import find_queues
from queue_service.application.slot_time_reader import SlotTimeReader, TimesWanted, with_times
from queue_service.application.time_search import TimeSearch
from queue_service.domain.account import AccountKey, AccountQueue
from queue_service.domain.openings import Lack, Openings
from queue_service.domain.policy import Policy
from queue_service.domain.schedule_check import ReadTimes, newer_schedules, shortage, usable
from servicekit.faults import Fault
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database
from servicekit.pg.session import Session

_PATIENCE = 1.0
"""The most seconds that a caller waits for Schedule, who gets the rest of an answer without it."""


class NextFreeTime:
    def __init__(self, *, database: Database, clock: DatabaseClock, read_times: SlotTimeReader, policy: Policy) -> None:
        self._database = database
        self._clock = clock
        self._read_times = read_times
        self._policy = policy

    async def __call__(self, account: AccountKey) -> datetime | None:
        """Returns where AddToQueue would put a draft without a category; None if nowhere, or Schedule does not say."""

        async def attempt(wanted: TimesWanted) -> datetime:
            return await self._find(account, (await self._read_times({account: wanted}))[account])

        try:
            async with asyncio.timeout(_PATIENCE):
                return await with_times(attempt, TimesWanted())
        except (Fault, TimeoutError):
            return None

    async def _find(self, account: AccountKey, read: ReadTimes) -> datetime:
        async with self._database.snapshot() as session:
            now = await self._clock.now(session.connection)
            queue = await _queue(session, account, read)
            openings = Openings(queue, usable(queue, read), earliest=now + self._policy.notice)
            search = TimeSearch(session, {account: queue}, {account: openings})
            openings.expect([""])
            while (found := openings.find()) is Lack.LOOK:
                await search.look()
        if isinstance(found, Lack):
            raise shortage({account[1]: found})
        return found.time


async def _queue(session: Session, account: AccountKey, read: ReadTimes) -> AccountQueue:
    """Reads the account as AddToQueue would find it, which saves a newer schedule that it has read."""
    queue = (await find_queues(session, {account})).get(account, AccountQueue(social_account_id=account[1]))
    for newer in newer_schedules({account: queue}, [{account: read}]):
        queue = queue.learned(newer)
    return queue
