"""Judges commands: claims what may be sent, and records why the rest may not."""

from collections.abc import Awaitable, Callable, Mapping, Sequence, Set
from datetime import datetime
from functools import partial

from publisher_service.adapters.postgres.claim import claim
from publisher_service.adapters.postgres.destinations import share_destinations
from publisher_service.adapters.postgres.jobs import lock_jobs, save_jobs
from publisher_service.adapters.postgres.limits import refresh_limits, reserve
from publisher_service.adapters.postgres.parking import park
from publisher_service.adapters.postgres.preparations import answer_media
from publisher_service.adapters.postgres.safe_modes import active_safe_mode, enter
from publisher_service.application.keep_marks import ALIVE, report
from publisher_service.application.marks import Marks
from publisher_service.application.note_commands import NoteCommands
from publisher_service.application.parking import Parked, park_behind
from publisher_service.application.post_log import write_outcomes
from publisher_service.domain.claim import IN_LINE, UNSAFE, Command, Judged, Lane, Verdict
from publisher_service.domain.limits import PARKING, LimitDefaults, action_of_command, parking_of
from publisher_service.domain.mark import Mark
from publisher_service.domain.post_job import PostJob, Target
from publisher_service.domain.refusal import CHANGING, DOUBTED, refused
from publisher_service.domain.safe_mode import SafeModeReason
from publisher_service.wire.commands import commands_accepted
from publisher_service.wire.posts import post_job_changed
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Transaction
from servicekit.pg.outbox import Announcement, Outbox

# The second look is at rows that were not locked before, or at limits that are computed for it.
_LOOKED_AT_AGAIN = DOUBTED | {Verdict.LIMITS_STALE}
_SAYING_NOTHING = IN_LINE | UNSAFE | {Verdict.CLAIMED, Verdict.UNREADABLE, Verdict.LIMITS_STALE}
# A first look, one with the limits computed, and one more if that has only then come to the limits.
_MOST_LOOKS = 3

Verdicts = dict[int, Judged]
"""By the number of the command. A command whose job is absent, or locked by another transaction, has none."""

Look = Callable[[Sequence[Command]], Awaitable[Verdicts]]


class JudgeCommands:
    def __init__(
        self,
        *,
        clock: DatabaseClock,
        outbox: Outbox,
        marks: Marks,
        limits: LimitDefaults,
        note_commands: NoteCommands,
        on_asked: Callable[[], None],
    ) -> None:
        """`on_asked` is called when a provider may have a post to prepare."""
        self._clock = clock
        self._outbox = outbox
        self._marks = marks
        self._limits = limits
        self._note_commands = note_commands
        self._on_asked = on_asked

    async def __call__(
        self,
        tx: Transaction,
        commands: Sequence[Command],
        lanes: Sequence[Lane],
        *,
        now: datetime,
        sender: str,
        from_line: bool = False,
    ) -> Verdicts:
        """Opens attempts in the name of `sender`."""
        look = partial(
            claim,
            tx,
            lanes=lanes,
            now=now,
            sender=sender,
            from_line=from_line,
            process=self._marks.process,
            marks=self._marks.known,
            limits=self._limits,
        )
        judged = await look(commands)
        if unsafe := {each.verdict for each in judged.values() if each.verdict in UNSAFE}:
            await self._stop(tx, unsafe, [commands[index] for index in judged], now)
        await _look_again(tx, look, commands, judged, now)
        await reserve(tx.connection, [each for each in judged.values() if each.claimed and each.reserves], now=now)
        if mark := max((each.mark for each in judged.values()), default=0):
            tx.after_commit(partial(self._marks.reach, Mark(process=self._marks.process, number=mark, time=now)))
        if any(each.verdict is not Verdict.CLAIMED for each in judged.values()):
            await self._refuse(tx, commands, judged, now)
            if from_line:
                await park_behind(tx, self._outbox, _parked(commands, judged), now=now)
            await self._accept(tx, commands, judged, now)
        return judged

    async def enter_safe_mode(self, tx: Transaction, reason: SafeModeReason) -> None:
        now = await self._clock.now(tx)
        entered = await enter(tx, reason, self._marks.known, alive=now - ALIVE, now=now)
        tx.after_commit(partial(report, entered))

    async def _stop(self, tx: Transaction, unsafe: Set[Verdict], commands: Sequence[Command], now: datetime) -> None:
        """Enters the safe mode if the database is older than a mark or a command; notes what the commands know."""
        if Verdict.OLDER in unsafe:
            await self.enter_safe_mode(tx, SafeModeReason.MARK_AHEAD)
        elif Verdict.COMMAND_AHEAD in unsafe:
            await self.enter_safe_mode(tx, SafeModeReason.COMMAND_AHEAD)
        elif mode := await active_safe_mode(tx):
            await self._note_commands(tx, mode, commands, now=now)

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

        A job that has just come into the line is announced, and any other if Queue has repeated its command. One that
        a call sends without a slot is no command of Queue's, which could not apply an event that names it.
        """
        accepted: dict[str, list[tuple[Command, int]]] = {}
        without_slot = []
        for index, each in judged.items():
            if each.verdict in IN_LINE and (each.is_lined or commands[index].emission > 1):
                if commands[index].slot_id:
                    accepted.setdefault(each.organization_id, []).append((commands[index], each.version))
                else:
                    without_slot.append(each.key)
        announced = [commands_accepted(*each) for each in accepted.items()]
        if without_slot:
            announced += map(post_job_changed, await lock_jobs(tx.connection, without_slot))
        await self._outbox.append(tx, announced, now=now)


async def _look_again(
    tx: Transaction, look: Look, commands: Sequence[Command], judged: Verdicts, now: datetime
) -> None:
    """Replaces verdicts that rest on rows which were not locked, or on limits that are over, by those of another look.

    A refusal counts only if a look under the lock of the job repeats it. The statement reads contents and accounts as
    of its beginning and locks later: an approval or a connection in between has found no job to release. Nothing can
    come between the second look and the commit. That an inactive destination is not activated meanwhile needs a lock
    on it: a post whose destination is just being changed comes back.
    """
    doubted = [index for index, each in judged.items() if each.verdict in _LOOKED_AT_AGAIN]
    for _ in range(1, _MOST_LOOKS):
        if not doubted:
            return
        stale = [commands[index] for index in doubted if judged[index].verdict is Verdict.LIMITS_STALE]
        await refresh_limits(tx.connection, stale, now=now)
        shared = await share_destinations(tx.connection, [_destination_of(commands[index]) for index in doubted])
        again = await look([commands[index] for index in doubted])
        judged |= {doubted[index]: each for index, each in again.items()}
        for index in doubted:
            inactive = judged[index].verdict is Verdict.DESTINATION_INACTIVE
            if inactive and _destination_of(commands[index]) not in shared:
                del judged[index]
        doubted = [index for index in doubted if index in judged and judged[index].verdict is Verdict.LIMITS_STALE]


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


def _destination_of(command: Command) -> tuple[str, Target]:
    return command.organization_id, command.target
