"""Post jobs: every statement that finds, locks or writes them, except the claim and the settlement."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from publisher_service.adapters.postgres.follow_ups_due import note_due
from publisher_service.adapters.postgres.gates import add_gates
from publisher_service.adapters.postgres.keys import Key, key_arrays
from publisher_service.domain.post_job import ENDED_RUN, JobFilter, JobState, PostJob, Target, reason_from, state_from

# Each column with the type of its array: the order of a row that is read, and of an insert.
_COLUMNS = {
    "social_account_id": "text",
    "channel": "text",
    "destination": "text",
    "organization_id": "text",
    "id": "text",
    "draft_id": "text",
    "create_time": "timestamptz",
    "withdrawn_below": "bigint",
    "brand_id": "text",
    "campaign_id": "text",
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
    "parked_on": "text",
    "expected_time": "timestamptz",
    "called_run": "integer",
    "publish_now": "boolean",
    "over_cap": "boolean",
    "part": "integer",
    "parts": "integer",
    "follows": "text",
}

# A target has three columns, each other column is a field of the job.
_FIELDS = tuple(_COLUMNS)[3:]
# The identity of a job never changes.
_FIXED = ("organization_id", "id", "draft_id", "social_account_id", "channel", "destination", "part", "create_time")
# These follow the draft, by statements of their own, in `contents`.
_OF_DRAFT = ("withdrawn_below", "brand_id", "campaign_id", "parts")

_MUTABLE = tuple(name for name in _COLUMNS if name not in (*_FIXED, *_OF_DRAFT))

_ARRAYS = ", ".join(f"cast(:{name} as {kind}[])" for name, kind in _COLUMNS.items())

JOB_COLUMNS = ", ".join(_COLUMNS)

# What the jobs in the line of an account show as their reason.
LINE_LABELS = (
    "IN_LINE",
    "ACCOUNT_NOT_CONNECTED",
    "ORGANIZATION_ON_HOLD",
    "PROVIDER_ON_HOLD",
    "ACCOUNT_ON_HOLD",
    "ACCOUNT_DISABLED",
    "SEND_WINDOW",
)
# The condition of the index `post_job_in_line`: a query needs it word for word.
STANDS_IN_LINE = "state_reason in ({})".format(", ".join(f"'{label}'" for label in LINE_LABELS))

# The columns of a row of the table. The end of a lease has a column of its own, which no index has.
_NEXT_ACTION = "case state when 'SENDING' then coalesce(next_action_time, lease_end) else next_action_time end"
READ_JOB = JOB_COLUMNS.replace("next_action_time", f"{_NEXT_ACTION} as next_action_time")

# A post that is parked keeps the time that it was parked with while others go before it: the look at its limit tells.
# One in line shows until when its provider takes nothing, of the account or at all.
_EXPECTED = """
    case
        when parked_on <> '' then coalesce((
            select line.wake_time from parked_line line
            where line.organization_id = post_job.organization_id
                and line.social_account_id = post_job.social_account_id and line.parked_on = post_job.parked_on
        ), expected_time)
        when state = 'READY' and state_reason = 'IN_LINE' then (
            select nullif(greatest(gate.resume_time, quota.closed_until, statement_timestamp()), statement_timestamp())
            from account_gate gate left join provider_quota quota on quota.provider = gate.provider
            where gate.organization_id = post_job.organization_id
                and gate.social_account_id = post_job.social_account_id
        )
        else expected_time
    end
"""
SHOWN_JOB = READ_JOB.replace("expected_time", f"{_EXPECTED} as expected_time")
"""The columns of a row of the table for those who only look."""

_INSERT_JOBS = text(f"""
    insert into post_job ({JOB_COLUMNS}) select {JOB_COLUMNS} from unnest({_ARRAYS}) as new ({JOB_COLUMNS})
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
    from unnest({_ARRAYS}) as new ({JOB_COLUMNS})
    where j.organization_id = new.organization_id and j.id = new.id
""")

_LOCK_JOBS = text(f"""
    select {READ_JOB} from post_job
    where (organization_id, id) in (
        select organization_id, id
        from unnest(cast(:organization_ids as text[]), cast(:ids as text[])) as wanted (organization_id, id)
    )
    order by organization_id, id for update
""")

_LOCK_JOBS_OF_DRAFTS = text(f"""
    select {READ_JOB} from post_job
    where (organization_id, draft_id) in (
        select organization_id, draft_id
        from unnest(cast(:organization_ids as text[]), cast(:draft_ids as text[])) as wanted (organization_id, draft_id)
    )
    order by organization_id, id for update
""")

_LOCK_DUE_JOBS = text(f"""
    select {JOB_COLUMNS} from post_job
    where next_action_time <= :before and (state <> 'WAITING' or next_action_time <= :patience)
    order by next_action_time limit :limit for update skip locked
""")

_PUT_OFF_JOBS = text("""
    update post_job j set next_action_time = :until
    from unnest(cast(:organization_ids as text[]), cast(:ids as text[])) as off (organization_id, id)
    where j.organization_id = off.organization_id and j.id = off.id
""")

_GET_JOB = text(f"""
    select {SHOWN_JOB} from post_job where organization_id = :organization_id and id = :id
""")

# All that has not ended. The index is ordered by state, so a state with many posts is walked only up to the first hit.
_JOB_OF_CHANNELS = text("""
    select found.id, found.channel from unnest(cast(:list_states as text[])) as wanted (wanted_state)
    cross join lateral (
        select id, channel from post_job
        where organization_id = :organization_id and social_account_id = :account_id and list_state = wanted_state
            and list_state <> '' and channel = any(cast(:channels as text[]))
            -- A follow-up that is not due, and may never be, needs no more than its post.
            and (part = 0 or follows <> '')
        limit 1
    ) as found
    limit 1
""")

# Reads the newest of each state by index, and takes the page from those, so jobs in other states cost nothing. What is
# being sent stands among what is SCHEDULED. If only the former is wanted, the gates name it: one post of each account.
_JOBS_OF_STATES = f"""
    with gate as materialized (
        select organization_id as of_organization, open_job_id from account_gate
        where cast(:only_sending as boolean) and {{gates}} and open_job_id is not null
    )
    select {JOB_COLUMNS} from unnest(cast(:list_states as text[])) as wanted (wanted_state) cross join lateral (
        select {SHOWN_JOB} from post_job
        where {{conditions}} and list_state = wanted_state and list_state <> '' and state = any(cast(:states as text[]))
        order by create_time desc, id desc limit :limit
    ) newest
    union all (
        select sending.* from gate cross join lateral (
            select {SHOWN_JOB} from post_job
            where {{conditions}} and organization_id = of_organization and id = open_job_id and state = 'SENDING'
            limit 1
        ) sending
        order by create_time desc, id desc limit :limit
    )
    order by create_time desc, id desc limit :limit
"""

# A draft has few jobs. Materialized, or the planner may walk an index in the wanted order to find them. Each post comes
# with its follow-ups, of which some may be younger; no job ever goes away, so a page begins behind the last one of the
# page before.
_JOBS_OF_DRAFT = f"""
    with jobs as materialized (select {SHOWN_JOB} from post_job where {{conditions}}),
    placed as materialized (
        select jobs.*, row_number() over (order by post_time desc, post_id desc, part) as place
        from (
            select jobs.*, first_value(create_time) over target as post_time, first_value(id) over target as post_id
            from jobs window target as (partition by social_account_id, channel, destination order by part)
        ) as jobs
    )
    select {JOB_COLUMNS} from placed
    where (cast(:every as boolean) or state = any(cast(:states as text[])))
        and place > coalesce((select place from placed where id = cast(:after as text)), 0)
    order by place limit :limit
"""


async def insert_jobs(connection: AsyncConnection, jobs: Sequence[PostJob]) -> None:
    """Inserts jobs, and the gates of their accounts where there are none."""
    if jobs:
        await add_gates(connection, [(job.organization_id, job.target.social_account_id) for job in jobs])
        await connection.execute(_INSERT_JOBS, _job_arrays(jobs))


async def known_jobs(connection: AsyncConnection, jobs: Iterable[Key]) -> set[Key]:
    """Returns which of the jobs exist, locked or not."""
    rows = await connection.execute(_KNOWN_JOBS, key_arrays(jobs, "ids"))
    return {(row.organization_id, row.id) for row in rows}


async def save_jobs(connection: AsyncConnection, jobs: Sequence[PostJob]) -> None:
    """Writes jobs that this transaction has locked, and notes the next parts of those that are out."""
    if jobs:
        await connection.execute(_SAVE_JOBS, _job_arrays(jobs))
        if out := [job for job in jobs if job.state is JobState.PUBLISHED]:
            await note_due(connection, [job.key for job in out], now=out[0].update_time)


async def lock_jobs(connection: AsyncConnection, jobs: Iterable[Key]) -> list[PostJob]:
    return [job_from(row) for row in await connection.execute(_LOCK_JOBS, key_arrays(jobs, "ids"))]


async def lock_jobs_of_drafts(connection: AsyncConnection, drafts: Iterable[Key]) -> list[PostJob]:
    result = await connection.execute(_LOCK_JOBS_OF_DRAFTS, key_arrays(drafts, "draft_ids"))
    return [job_from(row) for row in result]


async def lock_due_jobs(
    connection: AsyncConnection, *, before: datetime, patience: datetime, limit: int
) -> list[PostJob]:
    """Locks jobs whose next action was due at `before`.

    A WAITING job is taken only if it was due at `patience`: until then the stream may bring its command back.
    """
    result = await connection.execute(_LOCK_DUE_JOBS, {"before": before, "patience": patience, "limit": limit})
    return [job_from(row) for row in result]


async def put_off_jobs(connection: AsyncConnection, jobs: Iterable[Key], *, until: datetime) -> None:
    """Hides jobs that this transaction has locked from the sweep until then; nothing else of them changes."""
    names = key_arrays(jobs, "ids")
    if names["ids"]:
        await connection.execute(_PUT_OFF_JOBS, names | {"until": until})


async def get_job(connection: AsyncConnection, organization_id: str, job_id: str) -> PostJob | None:
    row = (await connection.execute(_GET_JOB, {"organization_id": organization_id, "id": job_id})).one_or_none()
    return None if row is None else job_from(row)


async def find_job_of_channels(
    connection: AsyncConnection, account: Key, channels: Sequence[str]
) -> tuple[str, str] | None:
    """Returns a job of the account that has not ended and uses one of the channels: its id and its channel."""
    ended = ENDED_RUN | {JobState.PUBLISHED, JobState.SENDING}
    names = {"organization_id": account[0], "account_id": account[1], "channels": list(channels)}
    states = sorted(frozenset(JobState) - ended)
    row = (await connection.execute(_JOB_OF_CHANNELS, names | {"list_states": states})).one_or_none()
    return None if row is None else (row.id, row.channel)


async def list_jobs(
    connection: AsyncConnection, wanted: JobFilter, *, before: tuple[datetime, str] | None, limit: int
) -> list[PostJob]:
    """Lists jobs, newest first, behind the (create_time, id) that ended the page before.

    Those of a draft come by target, each post with its follow-ups.
    """
    conditions, names = ["organization_id = :organization_id"], {"organization_id": wanted.organization_id}
    if wanted.social_account_id:
        conditions.append("social_account_id = :social_account_id")
        names["social_account_id"] = wanted.social_account_id
    gates = " and ".join(conditions)
    states = frozenset(wanted.states or JobState)
    more: dict[str, object] = {"states": sorted(states), "limit": limit}
    if wanted.draft_id:
        conditions.append("draft_id = :draft_id")
        # Includes jobs in a state that only a newer release knows.
        more |= {"draft_id": wanted.draft_id, "every": not wanted.states, "after": before[1] if before else ""}
        form = _JOBS_OF_DRAFT
    else:
        if before:
            conditions.append("(create_time, id) < (:create_time, :id)")
            more |= {"create_time": before[0], "id": before[1]}
        only_sending = JobState.SENDING in states and JobState.SCHEDULED not in states
        more |= {"list_states": sorted(states - {JobState.SENDING}), "only_sending": only_sending}
        form = _JOBS_OF_STATES
    statement = text(form.format(conditions=" and ".join(conditions), gates=gates))
    return [job_from(row) for row in await connection.execute(statement, names | more)]


def _job_arrays(jobs: Sequence[PostJob]) -> dict[str, list[Any]]:
    arrays = {name: [getattr(job, name) for job in jobs] for name in _COLUMNS if hasattr(PostJob, name)}
    return arrays | {
        "social_account_id": [job.target.social_account_id for job in jobs],
        "channel": [job.target.channel for job in jobs],
        "destination": [job.target.destination for job in jobs],
    }


def job_from(row: Row[Any]) -> PostJob:
    """Reads a row of the columns `JOB_COLUMNS`."""
    values: tuple[Any, ...] = tuple(row)
    account_id, channel, destination, *rest = values
    fields: dict[str, Any] = dict(zip(_FIELDS, rest, strict=True))
    fields["state"] = state_from(fields["state"])
    fields["state_reason"] = reason_from(fields["state_reason"])
    return PostJob(target=Target(social_account_id=account_id, channel=channel, destination=destination), **fields)
