"""Claims the jobs of commands that are due, and the first posts of lines that have their turn."""

import itertools
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypeVar

from publisher_service.adapters.postgres.jobs import known_jobs
from publisher_service.adapters.postgres.lines import first_in_lines, lock_due_lines, mark_lines_empty, next_wake_time
from publisher_service.adapters.postgres.safe_modes import active_safe_mode
from publisher_service.adapters.postgres.wide_holds import share_wide_holds
from publisher_service.application.disown_claims import FailedClaim
from publisher_service.application.judge_commands import JudgeCommands, Verdicts
from publisher_service.application.make_jobs import MakeJobs, events_are_lost
from publisher_service.application.marks import Marks
from publisher_service.application.note_commands import NoteCommands
from publisher_service.domain.claim import UNSAFE, Claimed, Command, Judged, Lane, Verdict, command_of
from publisher_service.domain.limits import DEFAULTS, LimitDefaults
from publisher_service.domain.policy import Policy
from publisher_service.domain.refusal import CHANGING, STANDING
from publisher_service.domain.safe_mode import SafeModeReason
from publisher_service.domain.waits import wait_of_stream
from servicekit.failpoints import declare, failpoint
from servicekit.pg.clock import DatabaseClock, SteadyClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.outbox import Outbox
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
# The events that make the job of a command are on their way.
_NOT_KNOWN_YET = timedelta(milliseconds=250)
# After these the first post has left the line without being sent, so the next has its turn at once.
_LEAVING_LINE = CHANGING - STANDING


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
        marks = marks or Marks(instance)
        note_commands = NoteCommands(outbox=outbox, policies=policies)
        self._judge = JudgeCommands(
            clock=clock, outbox=outbox, marks=marks, limits=limits, note_commands=note_commands, on_asked=on_asked
        )
        self._make_jobs = MakeJobs(clock=clock, outbox=outbox, note_commands=note_commands)
        self._catch_up = catch_up
        self.failed: deque[FailedClaim] = deque(maxlen=_MOST_FAILED)
        self._instance = instance
        self._numbers = itertools.count(1)
        self._database = database
        self._clock = clock
        self._steady = steady

    async def __call__(self, commands: Sequence[Command], lanes: Sequence[Lane]) -> list[Claim]:
        """Returns an answer for each command. If this raises, nothing may be sent: the commit is in doubt."""
        first = _one_per_job(commands)
        unique = list(first.values())
        try:
            judged, now, absent = await self._named(lambda tx, name: self._claim(tx, unique, lanes, name))
        except _JobLost:
            # Rolled back: nothing of this batch may go out.
            await self._database.run(lambda tx: self._judge.enter_safe_mode(tx, SafeModeReason.COMMAND_AHEAD))
            await failpoint(_STOPPED)
            return [Retry(_UNSAFE)] * len(commands)
        lost = [command for command in absent if events_are_lost(command, now)]
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
    ) -> tuple[Verdicts, datetime, Sequence[Command]]:
        now, _ = await self._steady.observe_beside(self._clock, share_wide_holds(tx))
        judged = await self._judged(tx, commands, lanes, now, name)
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
        judged = await self._judged(tx, commands, lanes, now, name, from_line=True) if commands else {}
        claimed = [
            (commands[index], each.claimed) for index, each in sorted(judged.items()) if each.claimed is not None
        ]
        has_left = any(each.verdict in _LEAVING_LINE for each in judged.values())
        return Turns(claimed=claimed, more=bool(claimed) or has_left)

    async def _judged(
        self,
        tx: Transaction,
        commands: Sequence[Command],
        lanes: Sequence[Lane],
        now: datetime,
        name: "_Name",
        *,
        from_line: bool = False,
    ) -> Verdicts:
        judged = await self._judge(tx, commands, lanes, now=now, sender=name.sender, from_line=from_line)
        name.has_judged = bool(judged)
        name.claimed = [each.key for each in judged.values() if each.claimed is not None]
        if judged:
            await failpoint(_BEFORE_COMMIT)
        return judged

    async def _absent(self, tx: Transaction, commands: Sequence[Command], judged: Verdicts) -> Sequence[Command]:
        """Returns the commands whose job does not exist. The job of any other unjudged command is locked."""
        unjudged = [command for index, command in enumerate(commands) if index not in judged]
        if not unjudged:
            return []
        known = await known_jobs(tx.connection, [command.key for command in unjudged])
        return [command for command in unjudged if command.key not in known]

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


def _one_per_job(commands: Sequence[Command]) -> dict[str, Command]:
    """Returns the first command of each job: one statement cannot write a row twice.

    The job's own goes before those of the stream: a call may have begun it, or the stream has lost it.
    """
    first: dict[str, Command] = {}
    for command in commands:
        if first.setdefault(command.post_job_id, command).emission and not command.emission:
            first[command.post_job_id] = command
    return first
