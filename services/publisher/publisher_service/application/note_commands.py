"""Takes over what Queue knows by its commands, on a database that has been restored."""

from collections.abc import Callable, Sequence
from datetime import datetime

from publisher_service.adapters.postgres.jobs import lock_jobs, save_jobs
from publisher_service.adapters.postgres.reconciling import noted_jobs
from publisher_service.application.reconcile import doubt
from publisher_service.domain.claim import Command
from publisher_service.domain.policy import Policy
from publisher_service.domain.post_job import PostJob
from publisher_service.domain.restored import may_have_been_sent, with_command
from publisher_service.domain.safe_mode import Kind, SafeMode, Step
from servicekit.pg.database import Transaction
from servicekit.pg.outbox import Outbox


class NoteCommands:
    def __init__(self, *, outbox: Outbox, policies: Callable[[str], Policy]) -> None:
        self._outbox = outbox
        self._policies = policies

    async def __call__(self, tx: Transaction, mode: SafeMode, commands: Sequence[Command], *, now: datetime) -> None:
        """Raises versions above what Queue knows; puts in doubt what may have been sent by a command that was lost.

        Until the events since the copy are applied, the commands wait.
        """
        if mode.step is not Step.LOOKS:
            return
        by_key = {(each.organization_id, each.post_job_id): each for each in commands}
        jobs = await lock_jobs(tx.connection, list(by_key))
        noted = await noted_jobs(tx.connection, mode.number, list(by_key))
        after = [with_command(job, by_key[job.key]) for job in jobs]
        await save_jobs(tx.connection, [job for job, before in zip(after, jobs, strict=True) if job is not before])
        maybe = [
            job
            for job in after
            if may_have_been_sent(job, until=mode.doubt_until) and _is_in_no_doubt_yet(job, noted.get(job.key))
        ]
        await doubt(tx, mode, maybe, policies=self._policies, outbox=self._outbox, now=now)


def _is_in_no_doubt_yet(job: PostJob, kind: Kind | None) -> bool:
    """Returns whether nothing is known of the job's run. What was taken over had ended: its slot has begun the next."""
    return kind in (None, Kind.TAKEN_OVER) or (kind is Kind.RECREATED and job.fence == 0)
