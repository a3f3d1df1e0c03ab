"""The loop that finds out about accounts whose connection Queue has not heard of.

Publisher's announcement may be lost, or older than the events that the stream keeps; then slots would wait forever. So
Publisher is asked about accounts that hold up slots which are due. An account that is wrongly taken for connected does
no harm: Publisher shows its posts as BLOCKED. And what the previous release, or a call at the same time, has stored of
an account may not have reached its queue.
"""

import logging
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Protocol

from queue_service.adapters.postgres import connections
from queue_service.domain.account import BEFORE_ALL, AccountKey, Connection, DueAccount
from servicekit.faults import Fault, NotFound
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction

_AHEAD = timedelta(minutes=10)
"""Accounts are asked about that have slots until then."""
_ASKED_AT_ONCE = 50
_PAGE = 1000

_log = logging.getLogger(__name__)


class Connections(Protocol):
    async def find_connection(self, organization_id: str, social_account_id: str) -> Connection | None: ...


class RepairConnections:
    def __init__(self, *, database: Database, clock: DatabaseClock, accounts: Connections) -> None:
        self._database = database
        self._clock = clock
        self._accounts = accounts
        self._asked = BEFORE_ALL

    async def __call__(self) -> None:
        """Compares all queues with what was announced, and asks about the next accounts in turn."""
        await self._compare()
        await self._ask()

    async def _compare(self) -> None:
        last: AccountKey | None = ("", "")
        while last is not None:
            async with self._database.read_session() as session:
                outdated, last = await connections.find_outdated(session, last, limit=_PAGE)
            if outdated:
                await self._database.run(partial(self._hold_up, outdated))

    async def _hold_up(self, outdated: Sequence[AccountKey], tx: Transaction) -> None:
        await connections.hold_up_queues(tx.connection, outdated)

    async def _ask(self) -> None:
        async with self._database.read_session() as session:
            until = await self._clock.now(session.connection) + _AHEAD
            waiting = await connections.find_disconnected(session, self._asked, until=until, limit=_ASKED_AT_ONCE)
        self._asked = waiting[-1] if len(waiting) == _ASKED_AT_ONCE else BEFORE_ALL
        if found := await self._find(waiting):
            await self._database.run(partial(self._save, found))

    async def _find(self, waiting: Sequence[DueAccount]) -> list[Connection]:
        found: list[Connection] = []
        for each in waiting:
            try:
                answer = await self._accounts.find_connection(each.organization_id, each.social_account_id)
            except NotFound:
                continue
            except Fault as unanswered:
                _log.warning("publisher does not say which accounts are connected: %s", unanswered.message)
                break
            if answer is not None and answer.is_connected:
                found.append(answer)
        return found

    async def _save(self, found: Sequence[Connection], tx: Transaction) -> None:
        await connections.save_connections(tx.connection, found)
