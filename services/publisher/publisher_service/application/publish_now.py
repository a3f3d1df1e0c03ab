"""PublishNow: sends targets of a draft at once, with the content in the request.

One transaction stores the content, as `DraftSaved` of that version would, and makes the posts due, those of ended runs
in their next run. The checks of a claim then say which of them would be kept back: these stay as they were. The claim
makes all checks again, so what is stopped later, even before the answer, is not sent.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TypeVar

from publisher_service.adapters.postgres.account_schedules import lock_gates, schedules_of
from publisher_service.adapters.postgres.contents import lock_contents, read_content
from publisher_service.adapters.postgres.jobs import lock_jobs_of_drafts, save_jobs
from publisher_service.adapters.postgres.limits import refresh_limits
from publisher_service.adapters.postgres.opinions import opinions
from publisher_service.adapters.postgres.safe_modes import active_safe_mode
from publisher_service.application.reconciled import require_reconciled
from publisher_service.application.save_drafts import SaveDrafts
from publisher_service.domain.claim import Command, Verdict, command_of
from publisher_service.domain.limits import DEFAULTS, LimitDefaults
from publisher_service.domain.post_job import PostJob, Target
from publisher_service.domain.publish_now import (
    REFUSING,
    UrgentPost,
    UrgentPosts,
    require_consistent,
    require_sendable,
    sent_now,
)
from publisher_service.wire.posts import post_job_changed
from servicekit.failpoints import declare, failpoint
from servicekit.pg.database import Transaction
from servicekit.pg.ledger import Call, RequestLedger
from servicekit.pg.outbox import Outbox

R = TypeVar("R")

_BEFORE_COMMIT = declare("publisher.publish_now.before_commit")
_COMMITTED = declare("publisher.publish_now.committed")


class PublishNow:
    def __init__(
        self,
        *,
        ledger: RequestLedger,
        outbox: Outbox,
        save_drafts: SaveDrafts,
        wake_sweep: Callable[[], None],
        limits: LimitDefaults = DEFAULTS,
    ) -> None:
        """`wake_sweep` is called when a post is due."""
        self._ledger = ledger
        self._outbox = outbox
        self._save_drafts = save_drafts
        self._wake_sweep = wake_sweep
        self._limits = limits

    async def __call__(self, call: Call[Sequence[UrgentPost], R], asked: UrgentPosts) -> R:
        answer = await self._ledger.once(call, lambda tx, now: self._publish(tx, now, asked))
        await failpoint(_COMMITTED)
        return answer

    async def _publish(self, tx: Transaction, now: datetime, asked: UrgentPosts) -> Sequence[UrgentPost]:
        await require_reconciled(tx)
        key = asked.draft.key
        await lock_contents(tx.connection, [key])
        known = await read_content(tx.connection, *key)
        require_consistent(
            asked.draft,
            known_version=known.version,
            known_revision=known.revision,
            content_digest=known.content_digest,
            post_job_ids=known.post_job_ids,
        )
        await self._save_drafts(tx, [asked.draft], now)
        # What is stored may be newer than the request: a draft that has lost its approval, for example.
        content = await read_content(tx.connection, *key)
        require_sendable(
            asked.draft,
            known_revision=content.revision,
            approved=content.approved,
            withdrawn_below=content.withdrawn_below,
        )
        # Follow-ups become due by what they follow.
        jobs = {job.target: job for job in await lock_jobs_of_drafts(tx.connection, [key]) if not job.part}
        schedules = await schedules_of(tx.connection, {job.account_key for job in jobs.values()})
        zones = {key: schedule.time_zone for key, schedule in schedules.items()}
        results = [
            sent_now(jobs[target], asked, now=now, time_zone=zones.get(jobs[target].account_key, ""))
            for target in asked.targets
        ]
        await save_jobs(tx.connection, [each.job for each in results if not each.reason])
        results = await self._judged(tx, jobs, results, now)
        begun = [each.job for each in results if not each.reason]
        await self._outbox.append(tx, [post_job_changed(job) for job in begun], now=now)
        if begun:
            tx.after_commit(self._wake_sweep)
        await failpoint(_BEFORE_COMMIT)
        return results

    async def _verdicts(self, tx: Transaction, commands: Sequence[Command], now: datetime) -> Sequence[str]:
        """Returns the verdicts of the checks; as a claim does, computes windows and days that are over before."""
        if await active_safe_mode(tx) is not None:
            return [Verdict.SAFE_MODE] * len(commands)
        verdicts = await opinions(tx, commands, now=now, limits=self._limits)
        stale = [each for each, found in zip(commands, verdicts, strict=True) if found == Verdict.LIMITS_STALE]
        if not stale:
            return verdicts
        await lock_gates(tx.connection, {(each.organization_id, each.target.social_account_id) for each in stale})
        await refresh_limits(tx.connection, stale, now=now)
        return await opinions(tx, commands, now=now, limits=self._limits)

    async def _judged(
        self, tx: Transaction, jobs: dict[Target, PostJob], results: Sequence[UrgentPost], now: datetime
    ) -> list[UrgentPost]:
        """Restores the jobs that the checks would keep back."""
        begun = [each for each in results if not each.reason]
        verdicts = await self._verdicts(tx, [command_of(each.job) for each in begun], now)
        refused = {
            each.job.target: REFUSING[verdict]
            for each, verdict in zip(begun, verdicts, strict=True)
            if verdict in REFUSING
        }
        await save_jobs(tx.connection, [jobs[target] for target in refused])
        return [
            UrgentPost(job=jobs[target], reason=refused[target]) if (target := each.job.target) in refused else each
            for each in results
        ]
