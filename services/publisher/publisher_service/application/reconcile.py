"""Reconciles a restored database, step by step; any process may go on where another one has stopped."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta

from publisher_service.adapters.postgres.accounts import providers_of
from publisher_service.adapters.postgres.effects import count_lost
from publisher_service.adapters.postgres.jobs import save_jobs
from publisher_service.adapters.postgres.kept_contents import keep_current_contents
from publisher_service.adapters.postgres.reconciling import (
    add_attempts,
    count_untouched,
    leap_accounts,
    leap_jobs,
    lock_maybe_sent,
    note_jobs,
    note_made,
    note_sending,
    revisions_of,
)
from publisher_service.adapters.postgres.safe_modes import active_safe_mode, advance, set_untouched
from publisher_service.domain.policy import Policy
from publisher_service.domain.post_job import PostJob
from publisher_service.domain.restored import VERSION_LEAP, put_in_doubt, sent_since
from publisher_service.domain.safe_mode import Kind, SafeMode, Step
from publisher_service.wire.posts import post_job_changed
from publisher_service.wire.restored import publisher_restored
from servicekit.failpoints import declare, failpoint
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.outbox import Outbox

_REPLAYED = declare("publisher.reconcile.replayed")
_EVENTS = declare("publisher.reconcile.events")
_JOBS = declare("publisher.reconcile.jobs")
_VERSIONS = declare("publisher.reconcile.versions")
_PAGE = 500
# Clocks of the streams and of the database differ, and what was committed last was announced a little later.
_MARGIN = timedelta(minutes=5)


class Reconcile:
    def __init__(
        self,
        *,
        database: Database,
        clock: DatabaseClock,
        outbox: Outbox,
        policies: Callable[[str], Policy],
        replay: Callable[[datetime | None], Awaitable[None]],
    ) -> None:
        """`replay` applies the events again that were announced since a time, or all of them."""
        self._database = database
        self._clock = clock
        self._outbox = outbox
        self._policies = policies
        self._replay = replay

    async def step(self) -> bool:
        """Does the next part, if there is one. Returns whether more remains to be done at once."""
        async with self._database.session() as session:
            mode = await active_safe_mode(session)
        if mode is None or mode.step is Step.LOOKS:
            return False
        if mode.step is Step.EVENTS:
            await self._replay(mode.restored_time and mode.restored_time - _MARGIN)
            await failpoint(_REPLAYED)
            await self._database.run(lambda tx: advance(tx, mode, Step.JOBS))
            await failpoint(_EVENTS)
        elif mode.step is Step.JOBS:
            await self._database.run(lambda tx: self._doubt(tx, mode))
            await failpoint(_JOBS)
        else:
            await self._database.run(lambda tx: self._leap(tx, mode))
            await failpoint(_VERSIONS)
        return True

    async def _doubt(self, tx: Transaction, mode: SafeMode) -> None:
        now = await self._clock.now(tx)
        jobs = await lock_maybe_sent(tx.connection, mode.number, until=mode.doubt_until, limit=_PAGE)
        await doubt(tx, mode, jobs, policies=self._policies, outbox=self._outbox, now=now)
        if not jobs:
            await note_sending(tx.connection, mode.number)
            await advance(tx, mode, Step.VERSIONS)

    async def _leap(self, tx: Transaction, mode: SafeMode) -> None:
        now = await self._clock.now(tx)
        organization_id, _, job_id = mode.place.partition("/")
        last = await leap_jobs(tx.connection, (organization_id, job_id), leap=VERSION_LEAP, limit=_PAGE)
        if last is not None:
            if not await advance(tx, mode, Step.VERSIONS, "/".join(last)):
                raise _Overtaken
            return
        await leap_accounts(tx.connection, leap=VERSION_LEAP)
        await note_made(tx.connection, mode)
        await set_untouched(tx, mode, await count_untouched(tx.connection, mode.number))
        await self._outbox.append(tx, [publisher_restored(mode.restored_time)], now=now)
        if not await advance(tx, mode, Step.LOOKS):
            raise _Overtaken


class _Overtaken(ConnectionError):
    """Another process has done this part meanwhile: a transient failure, after which the step looks again."""


async def doubt(
    tx: Transaction,
    mode: SafeMode,
    jobs: Sequence[PostJob],
    *,
    policies: Callable[[str], Policy],
    outbox: Outbox,
    now: datetime,
) -> None:
    """Puts locked jobs in doubt: each gets the attempt that may be lost, and is looked up."""
    if not jobs:
        return
    providers = await providers_of(tx, [job.account_key for job in jobs])
    revisions = await revisions_of(tx.connection, jobs)
    doubted = [
        put_in_doubt(
            job,
            policy=policies(providers.get(job.account_key, "")),
            revision=revisions.get((job.organization_id, job.draft_id), 0),
            now=now,
        )
        for job in jobs
    ]
    await add_attempts(tx.connection, doubted, began=[sent_since(job, mode) for job in doubted])
    await count_lost(tx.connection, doubted, now=now)
    await save_jobs(tx.connection, doubted)
    await keep_current_contents(tx.connection, [job.key for job in doubted])
    await note_jobs(tx.connection, mode.number, Kind.DOUBT, doubted)
    await outbox.append(tx, [post_job_changed(job) for job in doubted], now=now)
