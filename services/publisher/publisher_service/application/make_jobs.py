"""Makes the jobs of commands that have overtaken the events that make jobs, or whose events are lost."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from publisher_service.adapters.postgres.contents import lock_contents
from publisher_service.adapters.postgres.jobs import insert_jobs, known_jobs
from publisher_service.adapters.postgres.reconciling import note_jobs
from publisher_service.adapters.postgres.safe_modes import newest_safe_mode
from publisher_service.application.note_commands import NoteCommands
from publisher_service.domain.claim import Command
from publisher_service.domain.plan import local_month, new_job
from publisher_service.domain.post_job import PostJob
from publisher_service.domain.safe_mode import Kind
from publisher_service.wire.posts import post_job_changed
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Transaction
from servicekit.pg.outbox import Outbox

# A command may overtake the events that make its job. They come soon, or have been lost if it is overdue by this much.
_EVENTS_ARE_LATE = timedelta(seconds=2)


class MakeJobs:
    def __init__(self, *, clock: DatabaseClock, outbox: Outbox, note_commands: NoteCommands) -> None:
        self._clock = clock
        self._outbox = outbox
        self._note_commands = note_commands

    async def __call__(self, tx: Transaction, commands: Sequence[Command]) -> None:
        now = await self._clock.now(tx.connection)
        drafts = {(command.organization_id, command.draft_id) for command in commands}
        # The lock on the content keeps other processes from making the same job.
        contents = await lock_contents(tx.connection, drafts)
        known = await known_jobs(tx.connection, [command.key for command in commands])
        jobs = [
            _job_of(command, contents[command.organization_id, command.draft_id][1], now)
            for command in commands
            if command.key not in known
        ]
        await insert_jobs(tx.connection, jobs)
        if mode := await newest_safe_mode(tx):
            await note_jobs(tx.connection, mode.number, Kind.RECREATED, jobs)
            await self._note_commands(tx, mode, commands, now=now)
        await self._outbox.append(tx, [post_job_changed(job) for job in jobs], now=now)


def events_are_lost(command: Command, now: datetime) -> bool:
    """Returns whether the job of the command is not waited for any longer."""
    return command.emission > 1 or now > command.schedule_time + _EVENTS_ARE_LATE


def _job_of(command: Command, withdrawn_below: int, now: datetime) -> PostJob:
    """Returns the job as the events would have made it, but without a time: the claim of the command adds that."""
    draft = (command.organization_id, command.draft_id)
    job = new_job(*draft, command.target, below=withdrawn_below, part=command.part, now=now)
    return replace(job, target_month=command.target_month or local_month(command.schedule_time, ""))
