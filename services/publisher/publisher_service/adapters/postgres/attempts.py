"""Attempts of post jobs: how they end, and which of them may have gone out."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from publisher_service.adapters.postgres.destinations import note_successes
from publisher_service.adapters.postgres.effects import End, record_effects
from publisher_service.adapters.postgres.gates import release_gates
from publisher_service.adapters.postgres.keys import Key, key_arrays
from publisher_service.adapters.postgres.limits import Send, give_back
from publisher_service.domain.attempt import Attempt
from publisher_service.domain.limits import action_of_job
from publisher_service.domain.post_job import PostJob
from publisher_service.domain.settlement import Settlement

_CLOSE_ATTEMPTS = text("""
    update attempt a set state = new.state, end_time = :now, external_id = new.external_id,
        error_reason = new.error_reason, error_message = new.error_message
    from unnest(
        cast(:organization_ids as text[]), cast(:ids as text[]), cast(:fences as bigint[]), cast(:states as text[]),
        cast(:external_ids as text[]), cast(:error_reasons as text[]), cast(:error_messages as text[])
    ) as new (organization_id, id, fence, state, external_id, error_reason, error_message)
    where a.organization_id = new.organization_id and a.post_job_id = new.id and a.fence = new.fence
    returning a.organization_id, a.post_job_id, a.fence, a.run, a.start_time, old.state as before
""")

_ABANDON_ATTEMPTS = text("""
    update attempt a set state = 'ABANDONED', end_time = :now
    from unnest(cast(:organization_ids as text[]), cast(:ids as text[]), cast(:fences as bigint[]))
        as proven (organization_id, id, fence)
    where a.organization_id = proven.organization_id and a.post_job_id = proven.id and a.fence <> proven.fence
        and a.state in ('SENDING', 'UNKNOWN')
    returning a.organization_id, a.post_job_id, a.fence, a.run, a.start_time
""")

# The newest attempt of the run whose outcome is unknown, with the start of the first such attempt.
_DOUBTFUL = text("""
    select a.fence, a.idempotency_key, min(a.start_time) over () as since from attempt a
    where a.organization_id = :organization_id and a.post_job_id = :id and a.run = :run
        and a.state in ('UNKNOWN', 'ABSENT')
    order by a.state = 'UNKNOWN' desc, a.fence desc limit 1
""")

# `in_doubt`: another attempt of the same run may have gone out.
_OPEN_OF_SENDER = text("""
    select a.organization_id, a.post_job_id, a.fence, exists (
        select 1 from attempt other
        where other.organization_id = a.organization_id and other.post_job_id = a.post_job_id and other.run = a.run
            and other.fence <> a.fence and other.state in ('UNKNOWN', 'ABSENT')
    ) as in_doubt
    from unnest(cast(:organization_ids as text[]), cast(:ids as text[])) as wanted (organization_id, id)
    join attempt a on a.organization_id = wanted.organization_id and a.post_job_id = wanted.id
    where a.state in ('SENDING', 'UNKNOWN') and a.sender = :sender
""")

_ATTEMPTS = text("""
    select run, number, state, idempotency_key, content_revision, start_time, end_time, external_id, error_reason,
        error_message
    from attempt where organization_id = :organization_id and post_job_id = :id order by fence
""")


@dataclass(frozen=True, slots=True, kw_only=True)
class DoubtfulAttempt:
    """An attempt that may have gone out, and when the first such attempt of the run began."""

    fence: int
    idempotency_key: str
    since: datetime


async def close_attempts(connection: AsyncConnection, closed: Sequence[Settlement], *, now: datetime) -> None:
    """Records how attempts ended, releases the gates of their accounts, and notes what that means for others.

    The log of the accounts, their limits and their destinations follow what the attempts were before.
    """
    if not closed:
        return
    ends = {
        "organization_ids": [each.job.organization_id for each in closed],
        "ids": [each.job.id for each in closed],
        "fences": [each.fence for each in closed],
        "states": [each.attempt_state.value for each in closed],
        "external_ids": [each.job.external_id for each in closed],
        "error_reasons": [each.error_reason for each in closed],
        "error_messages": [each.error_message for each in closed],
        "now": now,
    }
    rows = (await connection.execute(_CLOSE_ATTEMPTS, ends)).all()
    await release_gates(connection, closed, now=now)
    settlements = {(*each.job.key, each.fence): each for each in closed}
    ended = [
        End(
            settlement=settlements[row.organization_id, row.post_job_id, row.fence],
            before=row.before,
            run=row.run,
            start_time=row.start_time,
        )
        for row in rows
    ]
    await record_effects(connection, ended, now=now)
    await note_successes(connection, closed, now=now)


async def abandon_attempts(connection: AsyncConnection, proven: Sequence[Settlement], *, now: datetime) -> None:
    """Closes the other open attempts of jobs that an attempt has proven to be out."""
    if proven:
        keys = {
            "organization_ids": [each.job.organization_id for each in proven],
            "ids": [each.job.id for each in proven],
            "fences": [each.fence for each in proven],
        }
        rows = (await connection.execute(_ABANDON_ATTEMPTS, keys | {"now": now})).all()
        jobs = {each.job.key: each.job for each in proven}
        # A run counts once: for the attempt that is proven.
        abandoned = [
            Send(
                organization_id=row.organization_id,
                post_job_id=row.post_job_id,
                fence=row.fence,
                run=row.run,
                account_id=jobs[row.organization_id, row.post_job_id].target.social_account_id,
                action=action_of_job(jobs[row.organization_id, row.post_job_id]),
                time=row.start_time,
            )
            for row in rows
        ]
        await give_back(connection, abandoned, now=now)


async def doubtful_attempt(connection: AsyncConnection, job: PostJob) -> DoubtfulAttempt | None:
    """Returns the attempt of the job's run to look up; None when all are known."""
    names = {"organization_id": job.organization_id, "id": job.id, "run": job.run}
    row = (await connection.execute(_DOUBTFUL, names)).one_or_none()
    return (
        None if row is None else DoubtfulAttempt(fence=row.fence, idempotency_key=row.idempotency_key, since=row.since)
    )


async def open_attempts_of_sender(
    connection: AsyncConnection, jobs: Iterable[Key], sender: str
) -> dict[tuple[str, str, int], bool]:
    """Returns the open attempts of a claim, by organization, job and fence, and whether their runs are in doubt."""
    result = await connection.execute(_OPEN_OF_SENDER, key_arrays(jobs, "ids") | {"sender": sender})
    return {(row.organization_id, row.post_job_id, row.fence): row.in_doubt for row in result}


async def list_attempts(connection: AsyncConnection, organization_id: str, job_id: str) -> list[Attempt]:
    result = await connection.execute(_ATTEMPTS, {"organization_id": organization_id, "id": job_id})
    return [Attempt(**row) for row in result.mappings()]
