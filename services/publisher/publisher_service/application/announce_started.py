"""Announces attempts that stay open; a post that goes out at once needs no second event."""

import logging
from collections.abc import Sequence

from publisher_service.domain.post_job import PostJob
from publisher_service.wire.posts import post_job_changed
from servicekit.failpoints import declare, failpoint
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.outbox import Outbox
from servicekit.run.transient import is_transient

_log = logging.getLogger(__name__)

_COMMITTED = declare("publisher.announce.committed")


class AnnounceStarted:
    def __init__(self, *, database: Database, clock: DatabaseClock, outbox: Outbox) -> None:
        self._database = database
        self._clock = clock
        self._outbox = outbox

    async def __call__(self, jobs: Sequence[PostJob]) -> None:
        """Announces the jobs as started. Skipped while the database is down: the end of an attempt is announced too."""
        try:
            await self._database.run(lambda tx: self._announce(tx, jobs))
        except Exception as error:
            if not is_transient(error):
                raise
            _log.warning("%d open attempts are not announced: %r", len(jobs), error)
            return
        await failpoint(_COMMITTED)

    async def _announce(self, tx: Transaction, jobs: Sequence[PostJob]) -> None:
        now = await self._clock.now(tx.connection)
        await self._outbox.append(tx, [post_job_changed(job) for job in jobs], now=now)
