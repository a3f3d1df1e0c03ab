"""Showing the queue of an account."""

from dataclasses import replace

from queue_service.adapters.postgres.queue_views import find_queue_view
from queue_service.application.account_check import AccountCheck
from queue_service.application.next_free_time import NextFreeTime
from queue_service.domain.account import AccountKey
from queue_service.domain.queue_view import QueueView
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database


class GetQueue:
    def __init__(
        self,
        *,
        database: Database,
        clock: DatabaseClock,
        check_accounts: AccountCheck,
        next_free_time: NextFreeTime,
    ) -> None:
        self._database = database
        self._clock = clock
        self._check_accounts = check_accounts
        self._next_free_time = next_free_time

    async def __call__(self, account: AccountKey) -> QueueView:
        async with self._database.read_session() as session:
            now = await self._clock.now(session.connection)
            view = await find_queue_view(session, account, now=now)
        is_connected = view.is_connected
        if is_connected is None:
            is_connected = await self._check_accounts.is_connected(*account)
        return replace(view, is_connected=is_connected, next_free_time=await self._next_free_time(account))
