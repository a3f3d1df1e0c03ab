"""Claims the jobs of commands that are due, or records why they may not be sent."""

import itertools
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar

from publisher_service.adapters.postgres.claim import claim
from publisher_service.adapters.postgres.contents import lock_contents
from publisher_service.adapters.postgres.destinations import share_destinations
from publisher_service.adapters.postgres.jobs import insert_jobs, known_jobs, lock_jobs, save_jobs
from publisher_service.adapters.postgres.limits import refresh_limits, reserve
from publisher_service.adapters.postgres.lines import first_in_lines, lock_due_lines, mark_lines_empty, next_wake_time
from publisher_service.adapters.postgres.parking import park
from publisher_service.adapters.postgres.preparations import answer_media
from publisher_service.adapters.postgres.reconciling import note_jobs
from publisher_service.adapters.postgres.safe_modes import active_safe_mode, enter, newest_safe_mode
from publisher_service.adapters.postgres.wide_holds import share_wide_holds
from publisher_service.application.disown_claims import FailedClaim
from publisher_service.application.keep_marks import ALIVE, report
from publisher_service.application.marks import Marks
from publisher_service.application.note_commands import NoteCommands
from publisher_service.application.parking import Parked, park_behind
from publisher_service.application.post_log import write_outcomes
from publisher_service.domain.claim import IN_LINE, UNSAFE, Claimed, Command, Judged, Lane, Verdict, command_of
from publisher_service.domain.limits import DEFAULTS, PARKING, LimitDefaults, action_of_command, parking_of
from publisher_service.domain.mark import Mark
from publisher_service.domain.plan import local_month, new_job
from publisher_service.domain.policy import Policy
from publisher_service.domain.post_job import PostJob, Target
from publisher_service.domain.refusal import CHANGING, DOUBTED, STANDING, refused
from publisher_service.domain.safe_mode import Kind, SafeModeReason
from publisher_service.domain.waits import wait_of_stream
from publisher_service.wire.commands import commands_accepted
from publisher_service.wire.posts import post_job_changed
from servicekit.failpoints import declare, failpoint
from servicekit.pg.clock import DatabaseClock, SteadyClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.outbox import Announcement, Outbox
from servicekit.run.transient import is_transient

T = TypeVar("T")
_STOPPED = declare("publisher.claim.stopped")

_BEFORE_COMMIT = declare("publisher.claim.before_commit")
_COMMITTED = declare("publisher.claim.committed")
_MADE = declare("publisher.claim.made_jobs")

# The failed claims that are remembered. The attempts of a forgotten one end as SENDER_LOST when their lease ends.
_MOST_FAILED = 100
# Another transaction holds the job or its account.
_BUSY = timedelta(milliseconds=250)
_AT_ONCE = timedelta(milliseconds=1)
# In safe mode commands come again after this, until it is left.
_UNSAFE = timedelta(seconds=5)
# A command may overtake the events that make its job. They come soon, or have been lost if it is overdue by this much.
_NOT_KNOWN_YET = timedelta(milliseconds=250)
_EVENTS_ARE_LATE = timedelta(seconds=2)
# The second look is at rows that were not locked before, or at limits that are computed for it.
_LOOKED_AT_AGAIN = DOUBTED | {Verdict.LIMITS_STALE}
_SAYING_NOTHING = IN_LINE | UNSAFE | {Verdict.CLAIMED, Verdict.UNREADABLE, Verdict.LIMITS_STALE}
# After these the first post has left the line without being sent, so the next has its turn at once.
_LEAVING_LINE = CHANGING - STANDING
# A first look, one with the limits computed, and one more if that has only then come to the limits.
_MOST_LOOKS = 3


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
        self,
        *,
        database: Database,
        clock: DatabaseClock,
        steady: SteadyClock,
        outbox: Outbox,
        instance: str,
        on_asked: Callable[[], None] = lambda: None,
        marks: Marks | None = None,
        catch_up: Callable[[], Awaitable[None]] | None = None,
        limits: LimitDefaults = DEFAULTS,
        policies: Callable[[str], Policy] = lambda name: Policy(),
    ) -> None:
        """`instance` names this process on its attempts; `catch_up` learns the marks again if that is necessary."""
        self._on_asked = on_asked
        self._note_commands = NoteCommands(outbox=outbox, policies=policies)
        self._marks = marks or Marks(instance)
        self._catch_up = catch_up
        self.failed: deque[FailedClaim] = deque(maxlen=_MOST_FAILED)
        self._instance = instance
        self._numbers = itertools.count(1)
        self._database = database
        self._clock = clock
        self._steady = steady
        self._outbox = outbox
        self._limits = limits

    async def __call__(self, commands: Sequence[Command], lanes: Sequence[Lane]) -> list[Claim]:
        """Returns an answer for each command. If this raises, nothing may be sent: the commit is in doubt."""
        first = _one_per_job(commands)
        unique = list(first.values())
        try:
            judged, now, absent = await self._named(lambda tx, name: self._claim(tx, unique, lanes, name))
        except _JobLost:
            # Rolled back: nothing of this batch may go out.
            await self._database.run(lambda tx: self._enter_safe_mode(tx, SafeModeReason.COMMAND_AHEAD))
            await failpoint(_STOPPED)
            return [Retry(_UNSAFE)] * len(commands)
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
        if self._catch_up is not None:
            await self._catch_up()
        try:
            answer = await self._database.run(lambda tx: work(tx, name))
        except BaseException:
            if name.claimed:
                self.failed.append(FailedClaim(sender=name.sender, jobs=name.claimed))
            raise
        if name.has_judged:
            await failpoint(_COMMITTED)
        return answer

    async def _claim(
        self, tx: Transaction, commands: Sequence[Command], lanes: Sequence[Lane], name: "_Name"
    ) -> tuple[Mapping[int, Judged], datetime, Sequence[Command]]:
        now, _ = await self._steady.observe_beside(self._clock, share_wide_holds(tx))
        judged = await self._judge(tx, commands, lanes, now, name)
        absent = await self._absent(tx, commands, judged)
        is_safe = any(each.verdict in UNSAFE for each in judged.values())
        if not is_safe and any(command.known_job_version for command in absent) and not await active_safe_mode(tx):
            raise _JobLost
        return judged, now, absent

    async def _take_turns(self, tx: Transaction, lanes: Sequence[Lane], most: int, name: "_Name") -> Turns:
        now, _ = await self._steady.observe_beside(self._clock, share_wide_holds(tx))
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
        release. Nothing can come between the second look and the commit. That an inactive destination is not activated
        meanwhile needs a lock on it: a post whose destination is just being changed comes back.
        """
        judge = partial(
            claim,
            tx,
            lanes=lanes,
            now=now,
            sender=name.sender,
            from_line=from_line,
            process=self._marks.process,
            marks=self._marks.known,
            limits=self._limits,
        )
        judged = await judge(commands)
        if unsafe := {each.verdict for each in judged.values() if each.verdict in UNSAFE}:
            await self._stop(tx, unsafe, [commands[index] for index in judged], now)
        doubted = [index for index, each in judged.items() if each.verdict in _LOOKED_AT_AGAIN]
        for _ in range(1, _MOST_LOOKS):
            if not doubted:
                break
            stale = [commands[index] for index in doubted if judged[index].verdict is Verdict.LIMITS_STALE]
            await refresh_limits(tx.connection, stale, now=now)
            shared = await share_destinations(tx.connection, [_destination_of(commands[index]) for index in doubted])
            again = await judge([commands[index] for index in doubted])
            judged |= {doubted[index]: each for index, each in again.items()}
            for index in doubted:
                inactive = judged[index].verdict is Verdict.DESTINATION_INACTIVE
                if inactive and _destination_of(commands[index]) not in shared:
                    del judged[index]
            doubted = [index for index in doubted if index in judged and judged[index].verdict is Verdict.LIMITS_STALE]
        await reserve(tx.connection, [each for each in judged.values() if each.claimed and each.reserves], now=now)
        name.has_judged = bool(judged)
        name.claimed = [each.key for each in judged.values() if each.claimed is not None]
        if mark := max((each.mark for each in judged.values()), default=0):
            tx.after_commit(partial(self._marks.reach, Mark(process=self._marks.process, number=mark, time=now)))
        if any(each.verdict is not Verdict.CLAIMED for each in judged.values()):
            await self._refuse(tx, commands, judged, now)
            if from_line:
                await park_behind(tx, self._outbox, _parked(commands, judged), now=now)
            await self._accept(tx, commands, judged, now)
        if judged:
            await failpoint(_BEFORE_COMMIT)
        return judged

    async def _stop(self, tx: Transaction, unsafe: Set[Verdict], commands: Sequence[Command], now: datetime) -> None:
        """Enters the safe mode if the database is older than a mark or a command; notes what the commands know."""
        if Verdict.OLDER in unsafe:
            await self._enter_safe_mode(tx, SafeModeReason.MARK_AHEAD)
        elif Verdict.COMMAND_AHEAD in unsafe:
            await self._enter_safe_mode(tx, SafeModeReason.COMMAND_AHEAD)
        elif mode := await active_safe_mode(tx):
            await self._note_commands(tx, mode, commands, now=now)

    async def _enter_safe_mode(self, tx: Transaction, reason: SafeModeReason) -> None:
        now = await self._clock.now(tx)
        entered = await enter(tx, reason, self._marks.known, alive=now - ALIVE, now=now)
        tx.after_commit(partial(report, entered))

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
        errors = await answer_media(tx.connection, judged.values(), now=now)
        tx.after_commit(self._on_asked)
        saved: list[PostJob] = []
        announced: list[Announcement] = []
        for index, each in asked.items():
            job = jobs[each.key]
            after = job
            if each.verdict in CHANGING:
                error, limit_time = errors.get(each.key), each.limit_time
                after = refused(job, commands[index], each.verdict, now=now, limit_time=limit_time, error=error)
            if after is not job:
                saved.append(after)
            if after is not job or commands[index].emission > 1:
                announced.append(post_job_changed(after))
        await save_jobs(tx.connection, saved)
        await park(tx.connection, saved)
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
        await failpoint(_MADE)
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
        if mode := await newest_safe_mode(tx):
            await note_jobs(tx.connection, mode.number, Kind.RECREATED, jobs)
            await self._note_commands(tx, mode, commands, now=now)
        await self._outbox.append(tx, [post_job_changed(job) for job in jobs], now=now)

    @staticmethod
    def _answer(judged: Judged | None, now: datetime) -> Claim:
        if judged is None:
            return Retry(_BUSY)
        match judged.verdict:
            case Verdict.CLAIMED:
                assert judged.claimed is not None
                return judged.claimed
            case Verdict.OLDER | Verdict.SAFE_MODE | Verdict.COMMAND_AHEAD:
                return Retry(_UNSAFE)
            case Verdict.LIMITS_STALE:
                return Retry(_BUSY)
            case Verdict.EARLY:
                delay = wait_of_stream(judged.next_action_time, now)
                return Done() if delay is None else Retry(delay)
            case _:
                return Done()


class _JobLost(Exception):
    """A command knows a job that the database does not have."""


@dataclass(slots=True)
class _Name:
    """The name of a claim on the attempts that it opens, and the jobs that it has claimed."""

    sender: str
    claimed: Sequence[tuple[str, str]] = field(default_factory=list)
    has_judged: bool = False


def _parked(commands: Sequence[Command], judged: Mapping[int, Judged]) -> list[Parked]:
    """Returns the limits on which heads of lines were parked."""
    return [
        Parked(
            organization_id=each.organization_id,
            account_id=command.target.social_account_id,
            verdict=each.verdict,
            parked_on=parking_of(each.verdict, action_of_command(command), command.target.channel),
            until=each.limit_time,
        )
        for command, each in ((commands[index], each) for index, each in judged.items())
        if each.verdict in PARKING and each.limit_time is not None
    ]


def _one_per_job(commands: Sequence[Command]) -> dict[str, Command]:
    """Returns the first command of each job: one statement cannot write a row twice.

    The job's own goes before those of the stream: a call may have begun it, or the stream has lost it.
    """
    first: dict[str, Command] = {}
    for command in commands:
        if first.setdefault(command.post_job_id, command).emission and not command.emission:
            first[command.post_job_id] = command
    return first


def _destination_of(command: Command) -> tuple[str, Target]:
    return command.organization_id, command.target


def _events_are_lost(command: Command, now: datetime) -> bool:
    return command.emission > 1 or now > command.schedule_time + _EVENTS_ARE_LATE


def _job_of(command: Command, withdrawn_below: int, now: datetime) -> PostJob:
    """Returns the job as the events would have made it, but without a time: the claim of the command adds that."""
    job = new_job(command.organization_id, command.draft_id, command.target, below=withdrawn_below, now=now)
    return replace(job, target_month=command.target_month or local_month(command.schedule_time, ""))
