"""Has posts prepared ahead of their time, so that only the small request to publish is left when they are due."""

from datetime import datetime, timedelta

from publisher_service.adapters.postgres.preparations import ask_ahead
from publisher_service.adapters.providers.provider import Providers
from servicekit.failpoints import declare, failpoint
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction

_ASKED = declare("publisher.prepare.asked_ahead")


class PrepareAhead:
    def __init__(self, *, database: Database, clock: DatabaseClock, providers: Providers, ahead: timedelta) -> None:
        """`ahead` is how long before its time a post is prepared."""
        self._database = database
        self._clock = clock
        self._providers = [provider.name for provider in providers if provider.prepares]
        self._ahead = ahead
        self._until: datetime | None = None

    async def __call__(self) -> None:
        """Goes through the posts whose time has come near since the last step; at the start, through all that are."""
        if self._providers and self._ahead > timedelta(0):
            self._until = await self._database.run(self._ask)
            await failpoint(_ASKED)

    async def _ask(self, tx: Transaction) -> datetime:
        now = await self._clock.now(tx.connection)
        after, until = self._until or now, now + self._ahead
        if until > after:
            await ask_ahead(tx.connection, self._providers, after=after, until=until, now=now)
        return max(until, after)
