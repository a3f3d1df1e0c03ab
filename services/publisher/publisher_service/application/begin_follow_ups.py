"""Makes follow-ups due once the part before is out: comments below a post, and further parts of a thread.

Each transaction that records that a part is out notes it, so no follow-up is forgotten; its job moves under its lock
and only from PENDING, so none is begun twice.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial

from channels.rules import ChannelRules
from publisher_service.adapters.postgres.account_schedules import schedules_of
from publisher_service.adapters.postgres.accounts import providers_of
from publisher_service.adapters.postgres.follow_ups import (
    drop_due,
    is_one_due,
    jobs_with_due_part,
    lock_free_jobs,
    put_off_due,
    tried_before,
)
from publisher_service.adapters.postgres.follow_ups_due import note_due
from publisher_service.adapters.postgres.jobs import known_jobs, save_jobs
from publisher_service.adapters.postgres.keys import Key
from publisher_service.adapters.postgres.safe_modes import newest_safe_mode
from publisher_service.application.post_log import write_outcomes
from publisher_service.application.reconcile import doubt
from publisher_service.domain.follow_up import begun, is_passed_on, next_part, parent_of
from publisher_service.domain.policy import Policy
from publisher_service.domain.post_job import JobState, PostJob
from publisher_service.domain.safe_mode import SafeMode, Step
from publisher_service.wire.posts import post_job_changed
from servicekit.failpoints import declare, failpoint
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.outbox import Outbox

Rules = Mapping[str, Mapping[str, ChannelRules]]
"""Those of channels, by provider and channel."""

_COMMITTED = declare("publisher.follow_ups.committed")
_PAGE = 100
# Only another release has the provider, or the account is not here yet.
_LATER = timedelta(seconds=30)


class BeginFollowUps:
    def __init__(
        self,
        *,
        database: Database,
        clock: DatabaseClock,
        outbox: Outbox,
        rules: Rules,
        policies: Callable[[str], Policy],
        wake_sweep: Callable[[], None],
    ) -> None:
        """`wake_sweep` is called when a follow-up is due."""
        self._database = database
        self._clock = clock
        self._outbox = outbox
        self._rules = rules
        self._policies = policies
        self._wake_sweep = wake_sweep
        # The organization that was looked at last: others come first.
        self._after = ""

    async def __call__(self) -> bool:
        """Returns whether there may be more to do."""
        async with self._database.session() as session:
            if not await is_one_due(session, now=await self._clock.now(session)):
                return False
        more = await self._database.run(self._page)
        await failpoint(_COMMITTED)
        return more

    async def _page(self, tx: Transaction) -> bool:
        now = await self._clock.now(tx.connection)
        mode = await newest_safe_mode(tx)
        if mode is not None and mode.active and mode.step is not Step.LOOKS:
            # What has been announced of the next parts is not applied yet.
            return False
        before: Sequence[PostJob] = ()
        for after in (self._after, ""):
            before = await jobs_with_due_part(tx.connection, after=after, now=now, limit=_PAGE)
            if before or not after:
                break
        self._after = max((job.organization_id for job in before), default="")
        providers = await providers_of(tx, [job.account_key for job in before])
        known = [job for job in before if providers.get(job.account_key, "") in self._rules]
        await put_off_due(tx.connection, {job.key for job in before} - {job.key for job in known}, until=now + _LATER)
        handled = await self._begin(tx, mode, known, providers, now)
        await drop_due(tx.connection, handled)
        return bool(handled)

    async def _begin(
        self,
        tx: Transaction,
        mode: SafeMode | None,
        before: Sequence[PostJob],
        providers: Mapping[Key, str],
        now: datetime,
    ) -> list[Key]:
        """Makes the next parts of these jobs due. Returns the jobs behind which nothing is left to do."""
        behind = {next_part(job): job for job in before}
        locked = await lock_free_jobs(tx.connection, behind)
        existing = await known_jobs(tx.connection, behind)
        waiting = [job for job in locked if job.state is JobState.PENDING and is_passed_on(behind[job.key])]
        schedules = await schedules_of(tx.connection, {job.account_key for job in waiting})
        after: list[PostJob] = []
        for job in waiting:
            account, channel = job.account_key, job.target.channel
            rules = self._rules[providers[account]].get(channel)
            parent = parent_of(behind[job.key], rules.follow_ups if rules else None)
            zone = schedules[account].time_zone if account in schedules else ""
            after.append(begun(job, behind[job.key], parent, now=now, time_zone=zone))
        await self._save(tx, mode, after, behind, now)
        return [behind[key].key for key in behind if key in {job.key for job in locked} or key not in existing]

    async def _save(
        self,
        tx: Transaction,
        mode: SafeMode | None,
        after: Sequence[PostJob],
        behind: Mapping[Key, PostJob],
        now: datetime,
    ) -> None:
        """Stores follow-ups as they have begun. One that a lost database may have sent is looked up before."""
        ready = [job for job in after if job.state is JobState.READY]
        maybe: Sequence[PostJob] = ()
        if mode is not None:
            maybe = await _maybe_sent(tx, mode, ready, behind)
            await doubt(tx, mode, maybe, policies=self._policies, outbox=self._outbox, now=now)
        others = [job for job in after if job not in maybe]
        await save_jobs(tx.connection, others)
        # Nothing behind one that the provider does not take is taken either.
        failed = [job for job in others if job.state is JobState.FAILED and is_passed_on(job)]
        await note_due(tx.connection, [job.key for job in failed], now=now)
        await self._outbox.append(tx, [post_job_changed(job) for job in others], now=now)
        tx.after_commit(partial(write_outcomes, others))
        if ready:
            tx.after_commit(self._wake_sweep)


async def _maybe_sent(
    tx: Transaction, mode: SafeMode, ready: Sequence[PostJob], behind: Mapping[Key, PostJob]
) -> list[PostJob]:
    """Returns the follow-ups that may have been sent from a database that is lost: it may have found the part before.

    Those that were made after the safe mode are new.
    """
    left = mode.leave_time
    if left is None:
        # Nothing is claimed meanwhile: what is out was out for the lost database, too.
        return list(ready)
    copied = {behind[job.key].key: job.create_time < left for job in ready}
    tried = await tried_before(tx.connection, copied, end_time=left)
    return [job for job in ready if behind[job.key].key in tried]
