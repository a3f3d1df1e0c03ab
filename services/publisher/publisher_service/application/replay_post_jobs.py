"""ReplayPostJobEvents: announces post jobs again as they stand, for consumers that have lost events.

Nothing is locked: a job that changes meanwhile is announced by that change, too, in a newer version, and consumers keep
the newest version of each job, in any order.
"""

from dataclasses import dataclass
from functools import partial

from publisher_service.adapters.postgres.keys import Key
from publisher_service.adapters.postgres.replays import next_jobs
from publisher_service.domain.post_job import PostJob
from publisher_service.domain.replay import Replay
from publisher_service.wire.posts import post_job_changed
from servicekit.failpoints import declare, failpoint
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.outbox import Outbox

_ANNOUNCED = declare("publisher.replay.announced")
# Jobs that a transaction announces.
_AT_ONCE = 500
# Jobs that a call looks at, if it announces few of them.
_MOST_READ = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    announced: int
    # Where the next call goes on; None once every job was announced.
    after: Key | None


class ReplayPostJobs:
    def __init__(self, *, database: Database, clock: DatabaseClock, outbox: Outbox) -> None:
        self._database = database
        self._clock = clock
        self._outbox = outbox

    async def __call__(self, wanted: Replay, *, after: Key | None, most: int) -> Replayed:
        """Announces the next jobs behind `after`, at most `most`."""
        place, announced, read = after or ("", ""), 0, 0
        while announced < most and read < _MOST_READ:
            limit = min(most - announced, _AT_ONCE)
            jobs, taken = await self._database.run(partial(self._announce, wanted, place, limit))
            announced, read = announced + taken, read + len(jobs)
            await failpoint(_ANNOUNCED)
            if len(jobs) < limit:
                return Replayed(announced=announced, after=None)
            place = jobs[-1].key
        return Replayed(announced=announced, after=place)

    async def _announce(self, wanted: Replay, after: Key, limit: int, tx: Transaction) -> tuple[list[PostJob], int]:
        """Returns the next jobs, and how many of them were announced."""
        now = await self._clock.now(tx.connection)
        jobs = await next_jobs(tx.connection, wanted, after=after, limit=limit)
        taken = [post_job_changed(job) for job in jobs if wanted.takes(job)]
        await self._outbox.append(tx, taken, now=now)
        return jobs, len(taken)
