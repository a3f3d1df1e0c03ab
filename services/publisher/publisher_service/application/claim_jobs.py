"""Claims the jobs of commands that are due, or records why they may not be sent."""

import itertools
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar

from publisher_service.adapters.postgres.claim import claim
from publisher_service.adapters.postgres.contents import lock_contents
from publisher_service.adapters.postgres.jobs import insert_jobs, known_jobs, lock_jobs, save_jobs
from publisher_service.adapters.postgres.lines import first_in_lines, lock_due_lines, mark_lines_empty, next_wake_time
from publisher_service.application.disown_claims import FailedClaim
from publisher_service.application.post_log import write_outcomes
from publisher_service.domain.claim import IN_LINE, Claimed, Command, Judged, Lane, Verdict, command_of
from publisher_service.domain.plan import local_month, new_job
from publisher_service.domain.post_job import PostJob
from publisher_service.domain.refusal import CHANGING, DOUBTED, refused
from publisher_service.domain.waits import wait_of_stream
from publisher_service.wire.commands import commands_accepted
from publisher_service.wire.posts import post_job_changed
from servicekit.pg.clock import DatabaseClock, SteadyClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.outbox import Announcement, Outbox
from servicekit.run.transient import is_transient

T = TypeVar("T")

# The failed claims that are remembered. The attempts of a forgotten one end as SENDER_LOST when their lease ends.
_MOST_FAILED = 100
# Another transaction holds the job or its account.
_BUSY = timedelta(milliseconds=250)
_AT_ONCE = timedelta(milliseconds=1)
# A command may overtake the events that make its job. They come soon, or have been lost if it is overdue by this much.
_NOT_KNOWN_YET = timedelta(milliseconds=250)
_EVENTS_ARE_LATE = timedelta(seconds=2)
_SAYING_NOTHING = IN_LINE | {Verdict.CLAIMED, Verdict.UNREADABLE}
# After these the first post has left the line without being sent, so the next has its turn at once.
_LEAVING_LINE = CHANGING - {Verdict.ACCOUNT_NOT_CONNECTED, Verdict.ACCOUNT_ON_HOLD}


@dataclass(frozen=True, slots=True)
class Retry:
    """The command is to come back after the delay."""

    delay: timedelta


@dataclass(frozen=True, slots=True)
class Done:
    """Nothing is left to do for the command: the database knows how its job goes on."""


Claim = Claimed | Retry | Done


@dataclass(frozen=True, slots=True, kw_only=True)
class Turns:
    """The posts that were claimed from the lines of their accounts."""

    claimed: Sequence[tuple[Command, Claimed]]
    # Another post of some line may have its turn at once.
    more: bool


class ClaimJobs:
    def __init__(
        self, *, database: Database, clock: DatabaseClock, steady: SteadyClock, outbox: Outbox, instance: str
    ) -> None:
        """`instance` names this process on its attempts."""
        self.failed: deque[FailedClaim] = deque(maxlen=_MOST_FAILED)
        self._instance = instance
        self._numbers = itertools.count(1)
        self._database = database
        self._clock = clock
        self._steady = steady
        self._outbox = outbox

    async def __call__(self, commands: Sequence[Command], lanes: Sequence[Lane]) -> list[Claim]:
        """Returns an answer for each command. If this raises, nothing may be sent: the commit is in doubt."""
        first = _one_per_job(commands)
        unique = list(first.values())
        judged, now, absent = await self._named(lambda tx, name: self._claim(tx, unique, lanes, name))
        lost = [command for command in absent if _events_are_lost(command, now)]
        if lost and not await self._made(lost):
            lost = []
        answers: dict[str, Claim] = {
            command.post_job_id: self._answer(judged.get(index), now) for index, command in enumerate(unique)
        }
        answers |= {command.post_job_id: Retry(_NOT_KNOWN_YET) for command in absent}
        answers |= {command.post_job_id: Retry(_AT_ONCE) for command in lost}
        # A copy asks again once the first command of its job has its answer.
        return [answers[each.post_job_id] if first[each.post_job_id] is each else Retry(_BUSY) for each in commands]

    async def from_lines(self, lanes: Sequence[Lane], *, most: int) -> Turns:
        """Claims the first post of each line that has its turn, at most `most` of a provider.

        If this raises, nothing may be sent, as for a call.
        """
        return await self._named(lambda tx, name: self._take_turns(tx, lanes, most, name))

    async def next_turn(self, lanes: Sequence[Lane]) -> tuple[datetime | None, datetime]:
        """Returns when the next line has its turn, and the present time."""
        # Not on a reader's connection: claiming waits for this, and must not wait for lists.
        async with self._database.session() as session:
            read = next_wake_time(session, [lane.provider for lane in lanes])
            now, due = await self._steady.observe_beside(self._clock, read)
        return due, now

    async def _named(self, work: Callable[[Transaction, "_Name"], Awaitable[T]]) -> T:
        """Runs a claim under a name of its own; notes it in `failed` if it fails at its COMMIT."""
        name = _Name(f"{self._instance}/{next(self._numbers)}")
        try:
            return await self._database.run(lambda tx: work(tx, name))
        except BaseException:
            if name.claimed:
                self.failed.append(FailedClaim(sender=name.sender, jobs=name.claimed))
            raise

    async def _claim(
        self, tx: Transaction, commands: Sequence[Command], lanes: Sequence[Lane], name: "_Name"
    ) -> tuple[Mapping[int, Judged], datetime, Sequence[Command]]:
        now = await self._steady.observe(self._clock, tx)
        judged = await self._judge(tx, commands, lanes, now, name)
        return judged, now, await self._absent(tx, commands, judged)

    async def _take_turns(self, tx: Transaction, lanes: Sequence[Lane], most: int, name: "_Name") -> Turns:
        now = await self._steady.observe(self._clock, tx)
        accounts = await lock_due_lines(tx.connection, lanes, now=now, most=most)
        heads = await first_in_lines(tx.connection, accounts) if accounts else []
        waited_for = {job.account_key for job in heads}
        await mark_lines_empty(tx.connection, [account for account in accounts if account not in waited_for])
        commands = [command_of(job) for job in heads]
        judged = await self._judge(tx, commands, lanes, now, name, from_line=True) if commands else {}
        claimed = [
            (commands[index], each.claimed) for index, each in sorted(judged.items()) if each.claimed is not None
        ]
        has_left = any(each.verdict in _LEAVING_LINE for each in judged.values())
        return Turns(claimed=claimed, more=bool(claimed) or has_left)

    async def _judge(
        self,
        tx: Transaction,
        commands: Sequence[Command],
        lanes: Sequence[Lane],
        now: datetime,
        name: "_Name",
        *,
        from_line: bool = False,
    ) -> dict[int, Judged]:
        """Claims what may be sent, and records why the rest may not.

        A refusal counts only if a second look, under the lock of the job, repeats it. The statement reads contents and
        accounts as of its beginning and locks later: an approval or a connection in between has found no job to
        release. Nothing can come between the second look and the commit.
        """
        judge = partial(claim, tx, lanes=lanes, now=now, sender=name.sender, from_line=from_line)
        judged = await judge(commands)
        doubted = [index for index, each in judged.items() if each.verdict in DOUBTED]
        if doubted:
            again = await judge([commands[index] for index in doubted])
            judged |= {doubted[index]: each for index, each in again.items()}
        name.claimed = [each.key for each in judged.values() if each.claimed is not None]
        if any(each.verdict is not Verdict.CLAIMED for each in judged.values()):
            await self._refuse(tx, commands, judged, now)
            await self._accept(tx, commands, judged, now)
        return judged

    async def _refuse(
        self, tx: Transaction, commands: Sequence[Command], judged: Mapping[int, Judged], now: datetime
    ) -> None:
        """Records why jobs are not sent, and announces jobs again for which Queue has repeated the command."""
        asked = {
            index: each
            for index, each in judged.items()
            if each.verdict in CHANGING or (each.verdict not in _SAYING_NOTHING and commands[index].emission > 1)
        }
        if not asked:
            return
        found = await lock_jobs(tx.connection, [each.key for each in asked.values()])
        jobs = {job.key: job for job in found}
        saved: list[PostJob] = []
        announced: list[Announcement] = []
        for index, each in asked.items():
            job = jobs[each.key]
            after = refused(job, commands[index], each.verdict, now=now) if each.verdict in CHANGING else job
            if after is not job:
                saved.append(after)
            if after is not job or commands[index].emission > 1:
                announced.append(post_job_changed(after))
        await save_jobs(tx.connection, saved)
        tx.after_commit(partial(write_outcomes, saved))
        await self._outbox.append(tx, announced, now=now)

    async def _accept(
        self, tx: Transaction, commands: Sequence[Command], judged: Mapping[int, Judged], now: datetime
    ) -> None:
        """Announces the commands whose jobs wait in line, in one event per organization: a backlog costs no event each.

        A job that has just come into the line is announced, and any other if Queue has repeated its command.
        """
        accepted: dict[str, list[tuple[Command, int]]] = {}
        for index, each in judged.items():
            if each.verdict in IN_LINE and (each.is_lined or commands[index].emission > 1):
                accepted.setdefault(each.organization_id, []).append((commands[index], each.version))
        await self._outbox.append(tx, [commands_accepted(*each) for each in accepted.items()], now=now)

    async def _absent(
        self, tx: Transaction, commands: Sequence[Command], judged: Mapping[int, Judged]
    ) -> Sequence[Command]:
        """Returns the commands whose job does not exist. The job of any other unjudged command is locked."""
        unjudged = [command for index, command in enumerate(commands) if index not in judged]
        if not unjudged:
            return []
        keys = [(command.organization_id, command.post_job_id) for command in unjudged]
        known = await known_jobs(tx.connection, keys)
        return [command for command, key in zip(unjudged, keys, strict=True) if key not in known]

    async def _made(self, commands: Sequence[Command]) -> bool:
        """Makes missing jobs; returns whether it could. What was claimed before must be answered in any case."""
        try:
            await self._database.run(lambda tx: self._make_jobs(tx, commands))
        except Exception as error:
            if not is_transient(error):
                raise
            return False
        return True

    async def _make_jobs(self, tx: Transaction, commands: Sequence[Command]) -> None:
        """Makes the jobs of commands that have overtaken the events that make jobs, or whose events are lost."""
        now = await self._clock.now(tx.connection)
        drafts = {(command.organization_id, command.draft_id) for command in commands}
        # The lock on the content keeps other processes from making the same job.
        contents = await lock_contents(tx.connection, drafts)
        known = await known_jobs(tx.connection, [(each.organization_id, each.post_job_id) for each in commands])
        jobs = [
            _job_of(command, contents[command.organization_id, command.draft_id][1], now)
            for command in commands
            if (command.organization_id, command.post_job_id) not in known
        ]
        await insert_jobs(tx.connection, jobs)
        await self._outbox.append(tx, [post_job_changed(job) for job in jobs], now=now)

    @staticmethod
    def _answer(judged: Judged | None, now: datetime) -> Claim:
        if judged is None:
            return Retry(_BUSY)
        match judged.verdict:
            case Verdict.CLAIMED:
                assert judged.claimed is not None
                return judged.claimed
            case Verdict.EARLY:
                delay = wait_of_stream(judged.next_action_time, now)
                return Done() if delay is None else Retry(delay)
            case _:
                return Done()


@dataclass(slots=True)
class _Name:
    """The name of a claim on the attempts that it opens, and the jobs that it has claimed."""

    sender: str
    claimed: Sequence[tuple[str, str]] = field(default_factory=list)


def _one_per_job(commands: Sequence[Command]) -> dict[str, Command]:
    """Returns the first command of each job: one statement cannot write a row twice."""
    first: dict[str, Command] = {}
    for command in commands:
        first.setdefault(command.post_job_id, command)
    return first


def _events_are_lost(command: Command, now: datetime) -> bool:
    return command.emission > 1 or now > command.schedule_time + _EVENTS_ARE_LATE


def _job_of(command: Command, withdrawn_below: int, now: datetime) -> PostJob:
    """Returns the job as the events would have made it, but without a time: the claim of the command adds that."""
    job = new_job(command.organization_id, command.draft_id, command.target, below=withdrawn_below, now=now)
    return replace(job, target_month=command.target_month or local_month(command.schedule_time, ""))
