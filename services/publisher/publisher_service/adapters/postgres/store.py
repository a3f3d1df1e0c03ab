"""Everything else that is asked of the database: one method per question."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from publisher_service.domain.attempt import Attempt
from publisher_service.domain.plan import SavedDraft
from publisher_service.domain.post_job import JobState, PostJob, Target, reason_from, state_from
from publisher_service.domain.settlement import Settlement

JOB_COLUMNS = """
    organization_id, id, draft_id, social_account_id, channel, destination, state, state_reason, version, run,
    slot_sequence, slot_id, slot_revision, schedule_time, not_after, next_action_time, max_attempts, attempts, fence,
    in_doubt, unknown_until, content_revision, wanted_revision, withdrawn_below, publish_time, external_id,
    external_url, evidence_kind, error_reason, error_message, last_attempt_time, target_month, traceparent,
    create_time, update_time
"""

# Column and array type, in the order of the table: what an insert writes.
_COLUMNS = {
    "organization_id": "text",
    "id": "text",
    "draft_id": "text",
    "social_account_id": "text",
    "channel": "text",
    "destination": "text",
    "create_time": "timestamptz",
    "withdrawn_below": "bigint",
    "state": "text",
    "state_reason": "text",
    "version": "bigint",
    "run": "integer",
    "slot_sequence": "bigint",
    "slot_id": "text",
    "slot_revision": "bigint",
    "schedule_time": "timestamptz",
    "not_after": "timestamptz",
    "next_action_time": "timestamptz",
    "max_attempts": "integer",
    "attempts": "integer",
    "fence": "bigint",
    "in_doubt": "boolean",
    "unknown_until": "timestamptz",
    "content_revision": "bigint",
    "wanted_revision": "bigint",
    "publish_time": "timestamptz",
    "external_id": "text",
    "external_url": "text",
    "evidence_kind": "text",
    "error_reason": "text",
    "error_message": "text",
    "last_attempt_time": "timestamptz",
    "target_month": "text",
    "traceparent": "text",
    "update_time": "timestamptz",
}
# What makes a job the job that it is never changes; a withdrawal is written by its own statement.
_FIXED = ("organization_id", "id", "draft_id", "social_account_id", "channel", "destination", "create_time")
_MUTABLE = tuple(name for name in _COLUMNS if name not in (*_FIXED, "withdrawn_below"))
_ARRAYS = ", ".join(f"cast(:{name} as {kind}[])" for name, kind in _COLUMNS.items())
_NAMES = ", ".join(_COLUMNS)

_INSERT_JOBS = text(f"""
    insert into post_job ({_NAMES}) select {_NAMES} from unnest({_ARRAYS}) as new ({_NAMES})
""")
_KNOWN_JOBS = text("""
    select organization_id, id from post_job
    where (organization_id, id) in (
        select organization_id, id
        from unnest(cast(:organization_ids as text[]), cast(:ids as text[])) as wanted (organization_id, id)
    )
""")
_SAVE_JOBS = text(f"""
    update post_job j set {", ".join(f"{name} = new.{name}" for name in _MUTABLE)}
    from unnest({_ARRAYS}) as new ({_NAMES})
    where j.organization_id = new.organization_id and j.id = new.id
""")
_ADD_GATES = text("""
    insert into account_gate (organization_id, social_account_id, connected)
    select distinct organization_id, social_account_id, false
    from unnest(cast(:organization_ids as text[]), cast(:social_account_ids as text[]))
        as new (organization_id, social_account_id)
    order by 1, 2
    on conflict do nothing
""")
_LOCK_CONTENTS = text("""
    insert into content (organization_id, draft_id, version, revision, content, content_digest, approved,
        withdrawn_below, post_job_ids)
    select organization_id, draft_id, 0, 0, '', '', false, 0, '{}'
    from unnest(cast(:organization_ids as text[]), cast(:draft_ids as text[])) as new (organization_id, draft_id)
    order by 1, 2
    on conflict (organization_id, draft_id) do update set version = content.version
    returning organization_id, draft_id, version, revision, withdrawn_below, post_job_ids
""")
_SAVE_CONTENTS = text("""
    update content c set version = new.version, revision = new.revision, content = new.content,
        content_digest = new.content_digest, approved = new.approved,
        post_job_ids = string_to_array(new.post_job_ids, ' ')
    from unnest(
        cast(:organization_ids as text[]), cast(:draft_ids as text[]), cast(:versions as bigint[]),
        cast(:revisions as bigint[]), cast(:contents as bytea[]), cast(:content_digests as text[]),
        cast(:approved as boolean[]), cast(:post_job_ids as text[])
    ) as new (organization_id, draft_id, version, revision, content, content_digest, approved, post_job_ids)
    where c.organization_id = new.organization_id and c.draft_id = new.draft_id and c.version < new.version
""")
_LOCK_JOBS_OF_DRAFTS = text(f"""
    select {JOB_COLUMNS} from post_job
    where (organization_id, draft_id) in (
        select organization_id, draft_id
        from unnest(cast(:organization_ids as text[]), cast(:draft_ids as text[])) as wanted (organization_id, draft_id)
    )
    order by organization_id, id for update
""")
_LOCK_JOBS = text(f"""
    select {JOB_COLUMNS} from post_job
    where (organization_id, id) in (
        select organization_id, id
        from unnest(cast(:organization_ids as text[]), cast(:ids as text[])) as wanted (organization_id, id)
    )
    order by organization_id, id for update
""")
_LOCK_DUE = text(f"""
    select {JOB_COLUMNS} from post_job
    where next_action_time <= :before and (state <> 'WAITING' or next_action_time <= :patience)
    order by next_action_time limit :limit for update skip locked
""")
_PUT_OFF = text("""
    update post_job j set next_action_time = :until
    from unnest(cast(:organization_ids as text[]), cast(:ids as text[])) as off (organization_id, id)
    where j.organization_id = off.organization_id and j.id = off.id
""")
_CLOSE_ATTEMPTS = text("""
    update attempt a set state = new.state, end_time = :now, external_id = new.external_id,
        error_reason = new.error_reason, error_message = new.error_message
    from unnest(
        cast(:organization_ids as text[]), cast(:ids as text[]), cast(:fences as bigint[]), cast(:states as text[]),
        cast(:external_ids as text[]), cast(:error_reasons as text[]), cast(:error_messages as text[])
    ) as new (organization_id, id, fence, state, external_id, error_reason, error_message)
    where a.organization_id = new.organization_id and a.post_job_id = new.id and a.fence = new.fence
""")
_ABANDON_ATTEMPTS = text("""
    update attempt a set state = 'ABANDONED', end_time = :now
    from unnest(cast(:organization_ids as text[]), cast(:ids as text[]), cast(:fences as bigint[]))
        as proven (organization_id, id, fence)
    where a.organization_id = proven.organization_id and a.post_job_id = proven.id and a.fence <> proven.fence
        and a.state in ('SENDING', 'UNKNOWN')
""")
_RELEASE_GATES = text("""
    update account_gate g set
        open_job_id = null,
        resume_time = greatest(g.resume_time, done.pause_until),
        wake_time = case when g.lined and g.connected
            then greatest(cast(:now as timestamptz), g.resume_time, done.pause_until) end
    from unnest(
        cast(:organization_ids as text[]), cast(:social_account_ids as text[]), cast(:ids as text[]),
        cast(:pauses_until as timestamptz[])
    ) as done (organization_id, social_account_id, id, pause_until)
    where g.organization_id = done.organization_id and g.social_account_id = done.social_account_id
        and g.open_job_id = done.id
""")
# The newest attempt of the run whose fate is unknown; the start is that of the first.
_DOUBTFUL = text("""
    select a.fence, a.idempotency_key, min(a.start_time) over () as since from attempt a
    where a.organization_id = :organization_id and a.post_job_id = :id and a.run = :run
        and a.state in ('UNKNOWN', 'ABSENT')
    order by a.state = 'UNKNOWN' desc, a.fence desc limit 1
""")
# With each: whether another attempt of its run may have gone out.
_OF_SENDER = text("""
    select a.organization_id, a.post_job_id, a.fence, exists (
        select 1 from attempt other
        where other.organization_id = a.organization_id and other.post_job_id = a.post_job_id and other.run = a.run
            and other.fence <> a.fence and other.state in ('UNKNOWN', 'ABSENT')
    ) as in_doubt
    from unnest(cast(:organization_ids as text[]), cast(:ids as text[])) as wanted (organization_id, id)
    join attempt a on a.organization_id = wanted.organization_id and a.post_job_id = wanted.id
    where a.state in ('SENDING', 'UNKNOWN') and a.sender = :sender
""")
_WITHDRAW_JOBS = text("""
    update post_job set withdrawn_below = greatest(withdrawn_below, :below)
    where organization_id = :organization_id and draft_id = :draft_id
""")
_WITHDRAW_CONTENT = text("""
    update content set withdrawn_below = greatest(withdrawn_below, :below)
    where organization_id = :organization_id and draft_id = :draft_id
""")
_GET_JOB = text(f"""
    select {JOB_COLUMNS} from post_job where organization_id = :organization_id and id = :id
""")
# The newest of each state are read by index, and the newest of those are the page: what stands beside costs nothing.
_JOBS_OF_STATES = f"""
    select {JOB_COLUMNS} from unnest(cast(:states as text[])) as wanted (wanted_state) cross join lateral (
        select {JOB_COLUMNS} from post_job where {{conditions}} and state = wanted_state and state <> 'SENDING'
        order by create_time desc, id desc limit :limit
    ) newest
    union all (
        select {JOB_COLUMNS} from post_job where {{conditions}} and state = 'SENDING'
            and 'SENDING' = any(cast(:states as text[]))
        order by create_time desc, id desc limit :limit
    )
    order by create_time desc, id desc limit :limit
"""
# A draft has few jobs. Fenced off, so that no index is walked in the wanted order in search of them.
_JOBS_OF_DRAFT = f"""
    with jobs as materialized (select {JOB_COLUMNS} from post_job where {{conditions}})
    select {JOB_COLUMNS} from jobs where cast(:every as boolean) or state = any(cast(:states as text[]))
    order by create_time desc, id desc limit :limit
"""
_ATTEMPTS = text("""
    select run, number, state, idempotency_key, content_revision, start_time, end_time, external_id, error_reason,
        error_message
    from attempt where organization_id = :organization_id and post_job_id = :id order by fence
""")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFilter:
    organization_id: str
    draft_id: str = ""
    social_account_id: str = ""
    states: tuple[JobState, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubtful:
    """An attempt that may have gone out, and when the first such attempt of the run began."""

    fence: int
    idempotency_key: str
    since: datetime


Key = tuple[str, str]


class KnownContent(NamedTuple):
    """All are 0 for a draft that has not been announced yet."""

    version: int
    withdrawn_below: int
    revision: int
    post_job_ids: frozenset[str] = frozenset()

    def lacks(self, job_id: str, *, since: int) -> bool:
        """Whether the draft, in the revision `since` or a later one, does not have the target of this post job."""
        return 0 < since <= self.revision and job_id not in self.post_job_ids


async def insert_jobs(connection: AsyncConnection, jobs: Sequence[PostJob]) -> None:
    if jobs:
        keys = {
            "organization_ids": [job.organization_id for job in jobs],
            "social_account_ids": [job.target.social_account_id for job in jobs],
        }
        await connection.execute(_ADD_GATES, keys)
        await connection.execute(_INSERT_JOBS, _job_arrays(jobs))


async def known_jobs(connection: AsyncConnection, jobs: Iterable[Key]) -> set[Key]:
    """Those of the jobs that exist, locked or not."""
    rows = await connection.execute(_KNOWN_JOBS, _keys(jobs, "ids"))
    return {(row.organization_id, row.id) for row in rows}


async def save_jobs(connection: AsyncConnection, jobs: Sequence[PostJob]) -> None:
    """The jobs are locked by this transaction."""
    if jobs:
        await connection.execute(_SAVE_JOBS, _job_arrays(jobs))


async def lock_contents(connection: AsyncConnection, drafts: Iterable[Key]) -> dict[Key, KnownContent]:
    """Locks, and makes where absent; returns what is known by draft."""
    result = await connection.execute(_LOCK_CONTENTS, _keys(drafts, "draft_ids"))
    return {
        (row.organization_id, row.draft_id): KnownContent(
            row.version, row.withdrawn_below, row.revision, frozenset(row.post_job_ids)
        )
        for row in result
    }


async def save_contents(connection: AsyncConnection, contents: Sequence[SavedDraft]) -> None:
    if contents:
        await connection.execute(
            _SAVE_CONTENTS,
            {
                "organization_ids": [each.organization_id for each in contents],
                "draft_ids": [each.draft_id for each in contents],
                "versions": [each.version for each in contents],
                "revisions": [each.revision for each in contents],
                "contents": [each.content for each in contents],
                "content_digests": [each.content_digest for each in contents],
                "approved": [each.approved for each in contents],
                # An array of arrays must be square, and unnest would flatten it.
                "post_job_ids": [" ".join(each.post_job_ids) for each in contents],
            },
        )


async def lock_jobs_of_drafts(connection: AsyncConnection, drafts: Iterable[Key]) -> list[PostJob]:
    result = await connection.execute(_LOCK_JOBS_OF_DRAFTS, _keys(drafts, "draft_ids"))
    return [job_from(row) for row in result]


async def lock_jobs(connection: AsyncConnection, jobs: Iterable[Key]) -> list[PostJob]:
    return [job_from(row) for row in await connection.execute(_LOCK_JOBS, _keys(jobs, "ids"))]


async def lock_due(connection: AsyncConnection, *, before: datetime, patience: datetime, limit: int) -> list[PostJob]:
    """Due before `before`; a wait, which a message carries too, only before `patience`."""
    result = await connection.execute(_LOCK_DUE, {"before": before, "patience": patience, "limit": limit})
    return [job_from(row) for row in result]


async def put_off(connection: AsyncConnection, jobs: Iterable[Key], *, until: datetime) -> None:
    """Has the sweep leave these jobs alone for a while. They are locked by this transaction, and stay as they are."""
    names = _keys(jobs, "ids")
    if names["ids"]:
        await connection.execute(_PUT_OFF, names | {"until": until})


async def close_attempts(connection: AsyncConnection, closed: Sequence[Settlement], *, now: datetime) -> None:
    """Writes how tries ended, and gives their accounts free."""
    if not closed:
        return
    keys = {
        "organization_ids": [each.job.organization_id for each in closed],
        "ids": [each.job.id for each in closed],
    }
    ends = {
        "fences": [each.fence for each in closed],
        "states": [each.attempt_state.value for each in closed],
        "external_ids": [each.job.external_id for each in closed],
        "error_reasons": [each.error_reason for each in closed],
        "error_messages": [each.error_message for each in closed],
        "now": now,
    }
    await connection.execute(_CLOSE_ATTEMPTS, keys | ends)
    gates = {
        "social_account_ids": [each.job.target.social_account_id for each in closed],
        "pauses_until": [each.pause_until for each in closed],
    }
    await connection.execute(_RELEASE_GATES, keys | gates | {"now": now})


async def abandon_attempts(connection: AsyncConnection, proven: Sequence[Settlement], *, now: datetime) -> None:
    """Closes what is open beside the tries that brought the proof."""
    if proven:
        keys = {
            "organization_ids": [each.job.organization_id for each in proven],
            "ids": [each.job.id for each in proven],
            "fences": [each.fence for each in proven],
        }
        await connection.execute(_ABANDON_ATTEMPTS, keys | {"now": now})


async def doubtful_attempt(connection: AsyncConnection, job: PostJob) -> Doubtful | None:
    names = {"organization_id": job.organization_id, "id": job.id, "run": job.run}
    row = (await connection.execute(_DOUBTFUL, names)).one_or_none()
    return None if row is None else Doubtful(fence=row.fence, idempotency_key=row.idempotency_key, since=row.since)


async def attempts_of_sender(
    connection: AsyncConnection, jobs: Iterable[Key], sender: str
) -> dict[tuple[str, str, int], bool]:
    """Returns the open attempts of a claim by organization, job and fence, and whether their runs are in doubt."""
    result = await connection.execute(_OF_SENDER, _keys(jobs, "ids") | {"sender": sender})
    return {(row.organization_id, row.post_job_id, row.fence): row.in_doubt for row in result}


async def forbid(connection: AsyncConnection, organization_id: str, draft_id: str, below: int) -> None:
    """Forbids older revisions. Content and jobs are locked by this transaction."""
    names = {"organization_id": organization_id, "draft_id": draft_id, "below": below}
    await connection.execute(_WITHDRAW_CONTENT, names)
    await connection.execute(_WITHDRAW_JOBS, names)


async def get_job(connection: AsyncConnection, organization_id: str, job_id: str) -> PostJob | None:
    row = (await connection.execute(_GET_JOB, {"organization_id": organization_id, "id": job_id})).one_or_none()
    return None if row is None else job_from(row)


async def attempts_of(connection: AsyncConnection, organization_id: str, job_id: str) -> list[Attempt]:
    result = await connection.execute(_ATTEMPTS, {"organization_id": organization_id, "id": job_id})
    return [Attempt(**row) for row in result.mappings()]


async def list_jobs(
    connection: AsyncConnection, wanted: JobFilter, *, before: tuple[datetime, str] | None, limit: int
) -> list[PostJob]:
    """Newest first, below the (create_time, id) of the page before."""
    conditions, names = ["organization_id = :organization_id"], {"organization_id": wanted.organization_id}
    if wanted.social_account_id:
        conditions.append("social_account_id = :social_account_id")
        names["social_account_id"] = wanted.social_account_id
    if before:
        conditions.append("(create_time, id) < (:create_time, :id)")
    if wanted.draft_id:
        conditions.append("draft_id = :draft_id")
        names["draft_id"] = wanted.draft_id
    form = _JOBS_OF_DRAFT if wanted.draft_id else _JOBS_OF_STATES
    more: dict[str, object] = {
        "states": sorted(state.value for state in set(wanted.states or JobState)),
        "limit": limit,
    }
    if wanted.draft_id:
        # Those too whose state only a newer release knows.
        more["every"] = not wanted.states
    if before:
        more |= {"create_time": before[0], "id": before[1]}
    statement = text(form.format(conditions=" and ".join(conditions)))
    return [job_from(row) for row in await connection.execute(statement, names | more)]


def _keys(keys: Iterable[Key], second: str) -> dict[str, list[str]]:
    unique = sorted(set(keys))
    return {"organization_ids": [key[0] for key in unique], second: [key[1] for key in unique]}


def _job_arrays(jobs: Sequence[PostJob]) -> dict[str, list[Any]]:
    arrays = {name: [getattr(job, name) for job in jobs] for name in _COLUMNS if hasattr(PostJob, name)}
    return arrays | {
        "social_account_id": [job.target.social_account_id for job in jobs],
        "channel": [job.target.channel for job in jobs],
        "destination": [job.target.destination for job in jobs],
    }


def job_from(row: Row[Any]) -> PostJob:
    """Of the columns `JOB_COLUMNS`."""
    values: tuple[Any, ...] = tuple(row)
    (
        organization_id, job_id, draft_id, social_account_id, channel, destination, state, state_reason, version, run,
        slot_sequence, slot_id, slot_revision, schedule_time, not_after, next_action_time, max_attempts, attempts,
        fence, in_doubt, unknown_until, content_revision, wanted_revision, withdrawn_below, publish_time, external_id,
        external_url, evidence_kind, error_reason, error_message, last_attempt_time, target_month, traceparent,
        create_time, update_time,
    ) = values  # fmt: skip
    return PostJob(
        organization_id=organization_id,
        id=job_id,
        draft_id=draft_id,
        target=Target(social_account_id=social_account_id, channel=channel, destination=destination),
        state=state_from(state),
        state_reason=reason_from(state_reason),
        version=version,
        run=run,
        slot_sequence=slot_sequence,
        slot_id=slot_id,
        slot_revision=slot_revision,
        schedule_time=schedule_time,
        not_after=not_after,
        next_action_time=next_action_time,
        max_attempts=max_attempts,
        attempts=attempts,
        fence=fence,
        in_doubt=in_doubt,
        unknown_until=unknown_until,
        content_revision=content_revision,
        wanted_revision=wanted_revision,
        withdrawn_below=withdrawn_below,
        publish_time=publish_time,
        external_id=external_id,
        external_url=external_url,
        evidence_kind=evidence_kind,
        error_reason=error_reason,
        error_message=error_message,
        last_attempt_time=last_attempt_time,
        target_month=target_month,
        traceparent=traceparent,
        create_time=create_time,
        update_time=update_time,
    )
