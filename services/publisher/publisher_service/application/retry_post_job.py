"""RetryPostJob: begins the next run of a post that has failed or was missed; every check of a send is made again."""

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import TypeVar

from channels.rules import ChannelRules
from publisher_service.adapters.postgres.account_schedules import schedules_of
from publisher_service.adapters.postgres.accounts import providers_of
from publisher_service.adapters.postgres.contents import read_content
from publisher_service.adapters.postgres.jobs import get_job, lock_jobs, save_jobs
from publisher_service.application.post_log import write_outcomes
from publisher_service.application.reconciled import require_reconciled
from publisher_service.domain.follow_up import Parent, parent_of, part_id
from publisher_service.domain.post_job import PostJob
from publisher_service.domain.retry import is_never_due, retried
from publisher_service.wire.posts import post_job_changed
from servicekit.failpoints import declare, failpoint
from servicekit.faults import NotFound
from servicekit.pg.database import Transaction
from servicekit.pg.ledger import Call, RequestLedger
from servicekit.pg.outbox import Outbox

R = TypeVar("R")

Rules = Mapping[str, Mapping[str, ChannelRules]]

_NO_RULES: Rules = {}

_COMMITTED = declare("publisher.retry.committed")


class RetryPostJob:
    def __init__(
        self, *, ledger: RequestLedger, outbox: Outbox, rules: Rules = _NO_RULES, wake_sweep: Callable[[], None]
    ) -> None:
        """`rules` are those of channels, by provider and channel; `wake_sweep` is called when a post is due."""
        self._ledger = ledger
        self._outbox = outbox
        self._rules = rules
        self._wake_sweep = wake_sweep

    async def __call__(self, call: Call[PostJob, R], job_id: str, not_after: datetime | None) -> R:
        """`not_after` is the latest time of the run; None leaves it to the default."""
        key = (call.organization_id, job_id)
        answer = await self._ledger.once(call, lambda tx, now: self._retry(tx, now, key, not_after))
        await failpoint(_COMMITTED)
        return answer

    async def _retry(self, tx: Transaction, now: datetime, key: tuple[str, str], not_after: datetime | None) -> PostJob:
        """Reads the content under the lock of the job: a target that the draft loses later cancels the run."""
        await require_reconciled(tx)
        found = await lock_jobs(tx.connection, [key])
        if not found:
            raise NotFound("POST_JOB_NOT_FOUND", "there is no such post job", metadata={"post_job_id": key[1]})
        job = found[0]
        content = await read_content(tx.connection, job.organization_id, job.draft_id)
        is_target = not content.lacks(job.id, since=1)
        schedules = await schedules_of(tx.connection, [job.account_key])
        zone = schedules[job.account_key].time_zone if schedules else ""
        parent = await self._parent(tx, job) if is_never_due(job) else None
        after = retried(job, is_target=is_target, parent=parent, not_after=not_after, now=now, time_zone=zone)
        await save_jobs(tx.connection, [after])
        await self._outbox.append(tx, [post_job_changed(after)], now=now)
        tx.after_commit(partial(write_outcomes, [after]))
        tx.after_commit(self._wake_sweep)
        return after

    async def _parent(self, tx: Transaction, job: PostJob) -> Parent:
        """Returns what a follow-up follows that was never due. Nothing is locked: what is published never changes."""
        before = await get_job(tx.connection, job.organization_id, part_id(job, job.part - 1))
        providers = await providers_of(tx, [job.account_key])
        rules = self._rules.get(providers.get(job.account_key, ""), {}).get(job.target.channel)
        assert before is not None, "a follow-up has a post"
        return parent_of(before, rules.follow_ups if rules else None)
