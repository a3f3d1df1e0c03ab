"""Claims the jobs of commands that are due, or says what keeps them from being sent."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from publisher_service.adapters.postgres import hot, store
from publisher_service.domain.claim import Claimed, Command, Judged, Verdict
from publisher_service.domain.policy import Policy
from publisher_service.domain.post_job import JobState, PostJob
from publisher_service.domain.refusal import CHANGING, DOUBTED, refused
from publisher_service.wire import post_job_changed
from servicekit.pg.clock import DatabaseClock, SteadyClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.outbox import Announcement, Outbox

# Somebody else holds the job or its account for the length of a transaction or of a send.
_BUSY = timedelta(milliseconds=250)
# The command has overtaken the event that makes its job.
_NOT_KNOWN_YET = timedelta(milliseconds=500)
# A wait up to this long is left to the stream; a longer one is the database's.
_CARRIED_BY_STREAM = timedelta(minutes=2)


@dataclass(frozen=True, slots=True)
class Again:
    """The same command again after the delay."""

    delay: timedelta


@dataclass(frozen=True, slots=True)
class Over:
    """Nothing is left to do for this command: the database knows how it goes on."""


Claim = Claimed | Again | Over


class ClaimJobs:
    def __init__(
        self,
        *,
        database: Database,
        clock: DatabaseClock,
        steady: SteadyClock,
        outbox: Outbox,
        policy: Policy,
        lease: timedelta,
    ) -> None:
        self._database = database
        self._clock = clock
        self._steady = steady
        self._outbox = outbox
        self._policy = policy
        self._lease = lease

    async def __call__(self, commands: Sequence[Command]) -> list[Claim]:
        """One answer per command. When this raises, nothing may be sent: the commit is not known to have happened."""
        return await self._database.run(lambda tx: self._claim(tx, commands))

    async def _claim(self, tx: Transaction, commands: Sequence[Command]) -> list[Claim]:
        now = await self._steady.observe(self._clock, tx.connection)
        judged = await self._judge(tx, commands, now)
        if any(each.verdict is not Verdict.CLAIMED for each in judged.values()):
            await self._refuse(tx, commands, judged, now)
        return [self._answer(judged.get(index), now) for index in range(len(commands))]

    async def _judge(self, tx: Transaction, commands: Sequence[Command], now: datetime) -> dict[int, Judged]:
        """A refusal is believed only when it is said again under the lock of the job.

        The statement reads contents and accounts as they were when it began, and locks later: what was approved or
        connected between the two has found no job to release. Nothing can come between the second look and the commit.
        """
        lease_end = now + self._lease
        judged = await hot.claim(tx.connection, commands, now=now, lease_end=lease_end)
        doubted = [index for index, each in judged.items() if each.verdict in DOUBTED]
        if doubted:
            again = await hot.claim(tx.connection, [commands[index] for index in doubted], now=now, lease_end=lease_end)
            judged |= {doubted[index]: each for index, each in again.items()}
        return judged

    async def _refuse(
        self, tx: Transaction, commands: Sequence[Command], judged: dict[int, Judged], now: datetime
    ) -> None:
        """Writes down why a job is not sent, and tells Queue again what it has not heard."""
        told = {
            index: each
            for index, each in judged.items()
            if each.verdict in CHANGING or (each.verdict is not Verdict.CLAIMED and commands[index].emission > 1)
        }
        found = await store.lock_jobs(tx.connection, [(each.organization_id, each.id) for each in told.values()])
        jobs = {(job.organization_id, job.id): job for job in found}
        saved: list[PostJob] = []
        announced: list[Announcement] = []
        for index, each in told.items():
            job = jobs[each.organization_id, each.id]
            after = self._after(job, commands[index], each.verdict, now)
            if after is not job:
                saved.append(after)
            if after.version > job.version or commands[index].emission > 1:
                announced.append(post_job_changed(after))
        await store.save_jobs(tx.connection, saved)
        await self._outbox.append(tx, announced, now=now)

    def _after(self, job: PostJob, command: Command, verdict: Verdict, now: datetime) -> PostJob:
        if verdict not in CHANGING:
            return job
        return refused(job, command, verdict, policy=self._policy, now=now)

    def _answer(self, judged: Judged | None, now: datetime) -> Claim:
        if judged is None:
            return Again(_NOT_KNOWN_YET)
        match judged.verdict:
            case Verdict.CLAIMED:
                assert judged.claimed is not None
                return judged.claimed
            case Verdict.ACCOUNT_BUSY:
                return Again(_BUSY)
            case Verdict.CONTENT_PENDING:
                return Again(self._policy.content_pending)
            case Verdict.EARLY:
                assert judged.next_action_time is not None
                remaining = judged.next_action_time - now
                return Again(remaining) if remaining <= _CARRIED_BY_STREAM else Over()
            case _:
                return Over()


def carried_by_stream(job: PostJob, now: datetime) -> timedelta | None:
    """How long the stream shall hold the command of a job that waits; None when the database takes over."""
    if job.state is not JobState.WAITING or job.next_action_time is None:
        return None
    remaining = job.next_action_time - now
    return remaining if remaining <= _CARRIED_BY_STREAM else None
