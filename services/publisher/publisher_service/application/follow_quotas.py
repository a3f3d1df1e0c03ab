"""Follows what providers have said about the quota of the application, and ends pauses when one answers again."""

from collections.abc import Callable
from datetime import timedelta

from publisher_service.adapters.postgres.provider_quotas import closed_providers, resume_accounts
from servicekit.failpoints import declare, failpoint
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction

_RESUMED = declare("publisher.resume.committed")
_PAGE = 500
# The accounts of a page ask within this time, so that they do not all ask at once.
_WITHIN = timedelta(seconds=2)


class FollowQuotas:
    def __init__(
        self, *, database: Database, clock: DatabaseClock, close: Callable[[str, float], None], wake: Callable[[], None]
    ) -> None:
        """`close` closes the lane of a provider for so many seconds; `wake` has the lines of accounts looked at."""
        self._database = database
        self._clock = clock
        self._close = close
        self._wake = wake
        self._answering: list[str] = []

    def answers_again(self, provider: str) -> None:
        """Notes that a provider answers after it did not: its accounts need not pause any longer."""
        if provider not in self._answering:
            self._answering.append(provider)

    async def __call__(self) -> bool:
        """Returns whether there are more pauses to end."""
        async with self._database.statement() as connection:
            now = await self._clock.now(connection)
            closed = await closed_providers(connection, now=now)
        for provider, until in closed.items():
            self._close(provider, (until - now).total_seconds())
        if not self._answering:
            return False
        resumed = await self._database.run(lambda tx: self._resume(tx, self._answering[0]))
        await failpoint(_RESUMED)
        self._wake()
        if resumed < _PAGE:
            self._answering.pop(0)
        return bool(self._answering)

    async def _resume(self, tx: Transaction, provider: str) -> int:
        now = await self._clock.now(tx.connection)
        return await resume_accounts(tx.connection, provider, now=now, within=_WITHIN, limit=_PAGE)
