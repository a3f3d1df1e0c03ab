"""The SQL of post jobs as Publisher has announced them, and of the draft states folded from them."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from drafts_service.adapters.postgres.drafts import key_arrays
from drafts_service.domain.draft import DraftKey
from drafts_service.domain.post_job import DraftState, FoldedState, JobState, PostJob, PostJobEvent, Standing
from drafts_service.domain.target import Target
from servicekit.pg.database import Transaction
from servicekit.pg.session import Session, Statement

T = TypeVar("T")

# A dict is several times cheaper than calling the enum, and a batch has hundreds of jobs.
_JOB_STATES: Mapping[str, JobState] = {state.value: state for state in JobState}

COLUMNS = """
    organization_id, draft_id, id, version, social_account_id, channel, destination,
    state, state_reason, schedule_time, publish_time, external_url, error_message, part
"""
"""The columns of `job_of`."""

_UNLESS_OLDER = """
    on conflict (organization_id, draft_id, id) do update set version = excluded.version, state = excluded.state,
        state_reason = excluded.state_reason, schedule_time = excluded.schedule_time,
        publish_time = excluded.publish_time, external_url = excluded.external_url,
        error_message = excluded.error_message, part = excluded.part
    where post_job.version < excluded.version
"""
# LATERAL with OFFSET 0: see the plans in `drafts`.
_JOBS_OF_DRAFTS = Statement(f"""
    select job.*
    from unnest(cast(:organizations as text[]), cast(:ids as text[])) as wanted (organization_id, draft_id)
    cross join lateral (
        select {COLUMNS} from post_job
        where post_job.organization_id = wanted.organization_id and post_job.draft_id = wanted.draft_id offset 0
    ) as job
""")
_SAVE_JOB = text(f"""
    insert into post_job ({COLUMNS})
    values (:organization_id, :draft_id, :id, :version, :social_account_id, :channel, :destination,
        :state, :state_reason, :schedule_time, :publish_time, :external_url, :error_message, :part)
    {_UNLESS_OLDER}
""")
# Names a newer job of each draft, which replaces the stored one: of most drafts nothing is left to be read.
_STANDINGS = Statement("""
    select job.*
    from unnest(cast(:organizations as text[]), cast(:drafts as text[]), cast(:jobs as text[]),
        cast(:versions as bigint[])) as newer (organization_id, draft_id, id, version)
    cross join lateral (
        select organization_id, id, draft_id, version, social_account_id, channel, destination,
            state, schedule_time, publish_time, part from post_job
        where post_job.organization_id = newer.organization_id and post_job.draft_id = newer.draft_id
            and (post_job.id <> newer.id or post_job.version >= newer.version) offset 0
    ) as job
""")
# Arrays of which a batch has no value are empty (`_sparse`), because each element costs: UNNEST fills them with nulls.
# For an UPDATE, a limit unknown to the planner makes it expect a single row, and so use the index as well. Most jobs
# are known: an UPDATE writes less than INSERT ... ON CONFLICT, which locks each row first.
_REFLECT = Statement(f"""
    with arrived as materialized (
        select organization_id, id, draft_id, version, social_account_id, channel,
            coalesce(destination, '') as destination, state, coalesce(state_reason, '') as state_reason,
            schedule_time, publish_time, coalesce(external_url, '') as external_url,
            coalesce(error_message, '') as error_message, coalesce(part, 0) as part, kind, payload, occur_time,
            coalesce(is_newest, true) as is_newest
        from unnest(cast(:organizations as text[]), cast(:jobs as text[]), cast(:drafts as text[]),
            cast(:versions as bigint[]), cast(:accounts as text[]), cast(:channels as text[]),
            cast(:destinations as text[]), cast(:states as text[]), cast(:state_reasons as text[]),
            cast(:schedule_times as timestamptz[]),
            cast(:publish_times as timestamptz[]), cast(:urls as text[]), cast(:errors as text[]),
            cast(:parts as integer[]), cast(:kinds as text[]), cast(:payloads as bytea[]),
            cast(:occur_times as timestamptz[]), cast(:are_newest as boolean[]))
            as one (organization_id, id, draft_id, version, social_account_id, channel, destination,
                state, state_reason, schedule_time, publish_time, external_url, error_message, part,
                kind, payload, occur_time, is_newest)
    ), events as (
        insert into post_job_event (organization_id, post_job_id, version, draft_id, kind, payload, occur_time)
        select organization_id, id, version, draft_id, kind, payload, occur_time from arrived
        on conflict do nothing
    ), known as (
        update post_job set version = newest.version, state = newest.state, state_reason = newest.state_reason,
            schedule_time = newest.schedule_time, publish_time = newest.publish_time,
            external_url = newest.external_url, error_message = newest.error_message, part = newest.part
        from (select * from arrived where is_newest limit :job_count) as newest
        where post_job.organization_id = newest.organization_id and post_job.draft_id = newest.draft_id
            and post_job.id = newest.id and post_job.version < newest.version
        returning post_job.organization_id, post_job.draft_id, post_job.id
    ), others as (
        insert into post_job ({COLUMNS})
        select {COLUMNS} from arrived
        where is_newest and (select count(*) from known) < :job_count
            and (organization_id, draft_id, id) not in (select * from known)
        {_UNLESS_OLDER}
    )
    update draft set state = folded.state, schedule_time = folded.schedule_time, publish_time = folded.publish_time,
        update_time = :now
    from (
        select * from unnest(cast(:draft_organizations as text[]), cast(:draft_ids as text[]),
            cast(:draft_states as text[]), cast(:draft_schedule_times as timestamptz[]),
            cast(:draft_publish_times as timestamptz[]))
            as one (organization_id, id, state, schedule_time, publish_time)
        limit :draft_count
    ) as folded
    where draft.organization_id = folded.organization_id and draft.id = folded.id
        and (draft.state, draft.schedule_time, draft.publish_time)
            is distinct from (folded.state, folded.schedule_time, folded.publish_time)
    returning draft.state
""")


async def find_jobs(session: Session, key: DraftKey) -> list[PostJob]:
    return (await find_jobs_of(session, [key])).get(key, [])


async def find_jobs_of(session: Session, keys: Collection[DraftKey]) -> dict[DraftKey, list[PostJob]]:
    """Returns the jobs of each of these drafts that has any."""
    found: defaultdict[DraftKey, list[PostJob]] = defaultdict(list)
    for row in await session.fetch(_JOBS_OF_DRAFTS, key_arrays(keys)):
        job = job_of(row)
        found[job.organization_id, job.draft_id].append(job)
    return found


async def save_jobs(connection: AsyncConnection, jobs: Sequence[PostJob]) -> None:
    """Stores jobs from an answer of Publisher, unless a newer version is stored already."""
    if jobs:
        await connection.execute(
            _SAVE_JOB,
            [
                {
                    "organization_id": job.organization_id,
                    "draft_id": job.draft_id,
                    "id": job.id,
                    "version": job.version,
                    "social_account_id": job.target.social_account_id,
                    "channel": job.target.channel,
                    "destination": job.target.destination,
                    "state": job.state,
                    "state_reason": job.state_reason,
                    "schedule_time": job.schedule_time,
                    "publish_time": job.publish_time,
                    "external_url": job.external_url,
                    "error_message": job.error_message,
                    "part": job.part,
                }
                for job in jobs
            ],
        )


async def find_standings(tx: Transaction, newer: Collection[Standing]) -> list[Standing]:
    """Returns the standings of all jobs of the same drafts, but for those of which `newer` has a higher version."""
    versions = {(job.organization_id, job.id): job.version for job in newer}
    by_draft = {(job.organization_id, job.draft_id): job for job in newer}.values()
    names = {
        "organizations": [job.organization_id for job in by_draft],
        "drafts": [job.draft_id for job in by_draft],
        "jobs": [job.id for job in by_draft],
        "versions": [job.version for job in by_draft],
    }
    return [
        Standing(
            organization_id=organization_id,
            id=job_id,
            draft_id=draft_id,
            version=version,
            target=Target(social_account_id=account, channel=channel, destination=destination),
            state=_JOB_STATES[state],
            schedule_time=schedule_time,
            publish_time=publish_time,
            part=part,
        )
        for (
            organization_id, job_id, draft_id, version, account, channel, destination, state, schedule_time,
            publish_time, part,
        ) in await tx.fetch(_STANDINGS, names)
        if versions.get((organization_id, job_id), 0) <= version
    ]  # fmt: skip


async def reflect(
    tx: Transaction,
    *,
    events: Sequence[PostJobEvent],
    newest: Collection[PostJobEvent],
    folded: Mapping[DraftKey, FoldedState],
    now: datetime,
) -> list[DraftState]:
    """Stores the events, the newest one of each job, and the drafts' states; returns the states that have changed."""
    drafts = list(folded.items())
    are_newest = {id(event) for event in newest}
    changed = await tx.fetch(
        _REFLECT,
        {
            "organizations": [event.organization_id for event in events],
            "jobs": [event.id for event in events],
            "drafts": [event.draft_id for event in events],
            "versions": [event.version for event in events],
            "accounts": [event.target.social_account_id for event in events],
            "channels": [event.target.channel for event in events],
            "destinations": _sparse([event.target.destination for event in events], ""),
            "states": [event.state for event in events],
            "state_reasons": _sparse([event.state_reason for event in events], ""),
            "schedule_times": _sparse([event.schedule_time for event in events], None),
            "publish_times": _sparse([event.publish_time for event in events], None),
            "urls": _sparse([event.external_url for event in events], ""),
            "errors": _sparse([event.error_message for event in events], ""),
            "parts": _sparse([event.part for event in events], 0),
            "kinds": [event.kind for event in events],
            "payloads": [event.payload for event in events],
            "occur_times": [event.occur_time for event in events],
            "are_newest": _sparse([id(event) in are_newest for event in events], most=True),
            "draft_organizations": [key[0] for key, _ in drafts],
            "draft_ids": [key[1] for key, _ in drafts],
            "draft_states": [state.state for _, state in drafts],
            "draft_schedule_times": _sparse([state.schedule_time for _, state in drafts], None),
            "draft_publish_times": _sparse([state.publish_time for _, state in drafts], None),
            "draft_count": len(drafts),
            "job_count": len(newest),
            "now": now,
        },
    )
    return [DraftState(state) for (state,) in changed]


def _sparse(values: list[T], most: T) -> list[T]:
    """Returns no values if all of them are the one that `unnest` and the statement put in for a missing one."""
    return [] if values.count(most) == len(values) else values


def job_of(row: Iterable[Any]) -> PostJob:
    (
        organization_id, draft_id, job_id, version, account, channel, destination,
        state, state_reason, schedule_time, publish_time, external_url, error_message, part,
    ) = row  # fmt: skip
    return PostJob(
        organization_id=organization_id,
        id=job_id,
        draft_id=draft_id,
        version=version,
        target=Target(social_account_id=account, channel=channel, destination=destination),
        state=_JOB_STATES[state],
        state_reason=state_reason,
        schedule_time=schedule_time,
        publish_time=publish_time,
        external_url=external_url,
        error_message=error_message,
        part=part,
    )
