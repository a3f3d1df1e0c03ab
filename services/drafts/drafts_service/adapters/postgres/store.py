"""The SQL of drafts and of what became of them: one method per question."""

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from drafts_service.domain.account import AccountState, obstacle_of
from drafts_service.domain.content import Body
from drafts_service.domain.draft import Approval, Draft, Withdrawal
from drafts_service.domain.post_job import DraftState, JobState, PostJob, PostJobEvent, Progress, Standing
from drafts_service.domain.target import Target

DraftKey = tuple[str, str]
"""Organization and id."""

# Several times cheaper than calling the enum, where there are hundreds at a time.
_JOB_STATES: Mapping[str, JobState] = {state.value: state for state in JobState}

_FIND = """
    select organization_id, id, content, content_digest, targets, revision, version, edit_version,
        approved_digest, approve_time, approver, withdraw_below, withdraw_due_time, exposed,
        state, schedule_time, publish_time, create_time, update_time,
        (
            select jsonb_object_agg(account.id, account.state)
            from jsonb_array_elements(draft.targets) as target
            cross join lateral (
                select id, state from social_account
                where social_account.organization_id = draft.organization_id
                    and social_account.id = target.value ->> 0 offset 0
            ) as account
        ) as accounts
    from draft where organization_id = :organization_id and id = :id
"""
_GET = text(_FIND)
_LOAD = text(f"{_FIND} for update")
_INSERT = text("""
    insert into draft (organization_id, id, content, content_digest, targets, revision, version, edit_version,
        state, schedule_time, publish_time, create_time, update_time)
    values (:organization_id, :id, :content, :content_digest, cast(:targets as jsonb), :revision, :version,
        :edit_version, :state, :schedule_time, :publish_time, :create_time, :update_time)
    on conflict do nothing
""")
_SAVE = text("""
    update draft set content = :content, content_digest = :content_digest, targets = cast(:targets as jsonb),
        revision = :revision, version = :version, edit_version = :edit_version,
        approved_digest = :approved_digest, approve_time = :approve_time, approver = :approver,
        withdraw_below = :withdraw_below, withdraw_due_time = :withdraw_due_time, exposed = :exposed,
        state = :state, schedule_time = :schedule_time, publish_time = :publish_time, update_time = :update_time
    where organization_id = :organization_id and id = :id
""")
_CLAIM_WITHDRAWALS = text("""
    with due as materialized (
        select organization_id, id from draft where withdraw_due_time <= :now
        order by withdraw_due_time limit :limit for update skip locked
    )
    update draft set withdraw_due_time = :next from due
    where draft.organization_id = due.organization_id and draft.id = due.id
    returning draft.organization_id, draft.id, draft.withdraw_below
""")
_JOBS = text("""
    select organization_id, id, draft_id, version, social_account_id, channel, destination,
        state, state_reason, schedule_time, publish_time, external_url, error_message
    from post_job where organization_id = :organization_id and draft_id = :draft_id
""")
_LEARN = text("""
    insert into post_job (organization_id, draft_id, id, version, social_account_id, channel, destination,
        state, state_reason, schedule_time, publish_time, external_url, error_message)
    values (:organization_id, :draft_id, :id, :version, :social_account_id, :channel, :destination,
        :state, :state_reason, :schedule_time, :publish_time, :external_url, :error_message)
    on conflict (organization_id, draft_id, id) do update set version = excluded.version, state = excluded.state,
        state_reason = excluded.state_reason, schedule_time = excluded.schedule_time,
        publish_time = excluded.publish_time, external_url = excluded.external_url,
        error_message = excluded.error_message
    where post_job.version < excluded.version
""")

# A plan that is made while a table is small, and kept while it grows, must not read the whole table. LATERAL with what
# cannot be merged into the query around it (FOR UPDATE, OFFSET 0) leaves one way: one look into the index per row. For
# the UPDATE a limit that the planner does not know makes it expect a single row, with the same effect.

# Locks are taken in the order of the arrays, so that batches which share drafts wait for one another, and do not die.
_LOCK = text("""
    select here.organization_id, here.id, here.targets
    from unnest(cast(:organizations as text[]), cast(:ids as text[])) as wanted (organization_id, id)
    cross join lateral (
        select organization_id, id, targets from draft
        where draft.organization_id = wanted.organization_id and draft.id = wanted.id for update
    ) as here
""")
_LOCK_ABSENT = text("""
    select pg_advisory_xact_lock(hashtextextended(name, 0)) from unnest(cast(:names as text[])) as name
""")
_STANDINGS_OF = text("""
    select job.*
    from unnest(cast(:organizations as text[]), cast(:ids as text[])) as wanted (organization_id, draft_id)
    cross join lateral (
        select organization_id, id, draft_id, version, social_account_id, channel, destination,
            state, schedule_time, publish_time from post_job
        where post_job.organization_id = wanted.organization_id and post_job.draft_id = wanted.draft_id offset 0
    ) as job
""")
_REFLECT = text("""
    with arrived as materialized (
        select * from unnest(cast(:organizations as text[]), cast(:jobs as text[]), cast(:drafts as text[]),
            cast(:versions as bigint[]), cast(:accounts as text[]), cast(:channels as text[]),
            cast(:destinations as text[]), cast(:states as text[]), cast(:state_reasons as text[]),
            cast(:schedule_times as timestamptz[]),
            cast(:publish_times as timestamptz[]), cast(:urls as text[]), cast(:errors as text[]),
            cast(:kinds as text[]), cast(:payloads as bytea[]), cast(:occur_times as timestamptz[]),
            cast(:are_newest as boolean[]))
            as one (organization_id, id, draft_id, version, social_account_id, channel, destination,
                state, state_reason, schedule_time, publish_time, external_url, error_message,
                kind, payload, occur_time, is_newest)
    ), events as (
        insert into post_job_event (organization_id, post_job_id, version, draft_id, kind, payload, occur_time)
        select organization_id, id, version, draft_id, kind, payload, occur_time from arrived
        on conflict do nothing
    ), jobs as (
        insert into post_job (organization_id, draft_id, id, version, social_account_id, channel, destination,
            state, state_reason, schedule_time, publish_time, external_url, error_message)
        select organization_id, draft_id, id, version, social_account_id, channel, destination,
            state, state_reason, schedule_time, publish_time, external_url, error_message
        from arrived where is_newest
        on conflict (organization_id, draft_id, id) do update set version = excluded.version, state = excluded.state,
            state_reason = excluded.state_reason, schedule_time = excluded.schedule_time,
            publish_time = excluded.publish_time,
            external_url = excluded.external_url, error_message = excluded.error_message
        where post_job.version < excluded.version
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


async def find(connection: AsyncConnection, organization_id: str, draft_id: str) -> Draft | None:
    row = (await connection.execute(_GET, {"organization_id": organization_id, "id": draft_id})).one_or_none()
    return _draft(row) if row else None


async def lock(connection: AsyncConnection, organization_id: str, draft_id: str) -> Draft | None:
    """The draft, which stays as it is until the end of the transaction."""
    row = (await connection.execute(_LOAD, {"organization_id": organization_id, "id": draft_id})).one_or_none()
    return _draft(row) if row else None


async def insert(connection: AsyncConnection, draft: Draft) -> bool:
    """False: its id is in use."""
    return (await connection.execute(_INSERT, _columns(draft))).rowcount == 1


async def save(connection: AsyncConnection, draft: Draft) -> None:
    """The draft is locked by this transaction."""
    await connection.execute(_SAVE, _columns(draft))


async def claim_withdrawals(
    connection: AsyncConnection, *, now: datetime, next_time: datetime, limit: int
) -> list[tuple[DraftKey, int]]:
    """Drafts with a withdrawal that is due, each with its revision; due again at `next_time` unless it has ended."""
    rows = await connection.execute(_CLAIM_WITHDRAWALS, {"now": now, "next": next_time, "limit": limit})
    return [((row.organization_id, row.id), row.withdraw_below) for row in rows]


async def jobs(connection: AsyncConnection, organization_id: str, draft_id: str) -> list[PostJob]:
    rows = await connection.execute(_JOBS, {"organization_id": organization_id, "draft_id": draft_id})
    return [_job(row) for row in rows]


async def learn(connection: AsyncConnection, published: Sequence[PostJob]) -> None:
    """Stores jobs that an answer of Publisher has shown, unless a newer event was here first."""
    if published:
        await connection.execute(
            _LEARN,
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
                }
                for job in published
            ],
        )


async def lock_all(connection: AsyncConnection, keys: Collection[DraftKey]) -> dict[DraftKey, tuple[Target, ...]]:
    """Locks the drafts, and the ids of those that are not here against being created; returns the others' targets."""
    found = await _lock_rows(connection, keys)
    if absent := set(keys) - found.keys():
        await lock_absent(connection, absent)
        found |= await _lock_rows(connection, absent)
    return found


async def lock_absent(connection: AsyncConnection, keys: Collection[DraftKey]) -> None:
    """Whoever creates a draft under an id that may have events, and whoever stores such events, take turns."""
    await connection.execute(
        _LOCK_ABSENT, {"names": sorted(f"draft {organization} {key}" for organization, key in keys)}
    )


async def standings_of(connection: AsyncConnection, keys: Collection[DraftKey]) -> list[Standing]:
    """Where the jobs of these drafts stand."""
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
        )
        for (
            organization_id, job_id, draft_id, version, account, channel, destination, state, schedule_time,
            publish_time,
        ) in await connection.execute(_STANDINGS_OF, _arrays(keys))
    ]  # fmt: skip


async def reflect(
    connection: AsyncConnection,
    *,
    events: Sequence[PostJobEvent],
    newest: Collection[PostJobEvent],
    folded: Mapping[DraftKey, Progress],
    now: datetime,
) -> list[DraftState]:
    """Stores events, the newest of each job and the state of each draft; returns the drafts' states that are news."""
    drafts = list(folded.items())
    are_newest = {id(event) for event in newest}
    result = await connection.execute(
        _REFLECT,
        {
            "organizations": [event.organization_id for event in events],
            "jobs": [event.id for event in events],
            "drafts": [event.draft_id for event in events],
            "versions": [event.version for event in events],
            "accounts": [event.target.social_account_id for event in events],
            "channels": [event.target.channel for event in events],
            "destinations": [event.target.destination for event in events],
            "states": [event.state for event in events],
            "state_reasons": [event.state_reason for event in events],
            "schedule_times": [event.schedule_time for event in events],
            "publish_times": [event.publish_time for event in events],
            "urls": [event.external_url for event in events],
            "errors": [event.error_message for event in events],
            "kinds": [event.kind for event in events],
            "payloads": [event.payload for event in events],
            "occur_times": [event.occur_time for event in events],
            "are_newest": [id(event) in are_newest for event in events],
            "draft_organizations": [key[0] for key, _ in drafts],
            "draft_ids": [key[1] for key, _ in drafts],
            "draft_states": [progress.state for _, progress in drafts],
            "draft_schedule_times": [progress.schedule_time for _, progress in drafts],
            "draft_publish_times": [progress.publish_time for _, progress in drafts],
            "draft_count": len(drafts),
            "now": now,
        },
    )
    return [DraftState(state) for (state,) in result]


async def _lock_rows(connection: AsyncConnection, keys: Collection[DraftKey]) -> dict[DraftKey, tuple[Target, ...]]:
    rows = await connection.execute(_LOCK, _arrays(keys))
    return {(organization_id, draft_id): _targets(targets) for organization_id, draft_id, targets in rows}


def _arrays(keys: Collection[DraftKey]) -> dict[str, list[str]]:
    ordered = sorted(keys)
    return {"organizations": [key[0] for key in ordered], "ids": [key[1] for key in ordered]}


def _columns(draft: Draft) -> dict[str, object]:
    approval, withdrawal = draft.approval, draft.withdrawal
    return {
        "organization_id": draft.organization_id,
        "id": draft.id,
        "content": draft.body.encoded,
        "content_digest": draft.body.digest,
        "targets": json.dumps([[each.social_account_id, each.channel, each.destination] for each in draft.targets]),
        "revision": draft.revision,
        "version": draft.version,
        "edit_version": draft.edit_version,
        "approved_digest": approval.digest if approval else None,
        "approve_time": approval.time if approval else None,
        "approver": approval.approver if approval else None,
        "withdraw_below": withdrawal.below if withdrawal else None,
        "withdraw_due_time": withdrawal.due if withdrawal else None,
        "exposed": draft.exposed,
        "state": draft.progress.state,
        "schedule_time": draft.progress.schedule_time,
        "publish_time": draft.progress.publish_time,
        "create_time": draft.create_time,
        "update_time": draft.update_time,
    }


def _draft(row: Row[Any]) -> Draft:
    return Draft(
        organization_id=row.organization_id,
        id=row.id,
        body=Body(encoded=row.content, digest=row.content_digest),
        targets=_targets(row.targets),
        create_time=row.create_time,
        update_time=row.update_time,
        approval=Approval(digest=row.approved_digest, time=row.approve_time, approver=row.approver)
        if row.approved_digest
        else None,
        revision=row.revision,
        version=row.version,
        edit_version=row.edit_version,
        withdrawal=Withdrawal(below=row.withdraw_below, due=row.withdraw_due_time) if row.withdraw_below else None,
        exposed=row.exposed,
        progress=Progress(state=DraftState(row.state), schedule_time=row.schedule_time, publish_time=row.publish_time),
        obstacles={account_id: obstacle_of(AccountState(state)) for account_id, state in (row.accounts or {}).items()},
    )


def _targets(rows: Sequence[Sequence[str]]) -> tuple[Target, ...]:
    return tuple(
        Target(social_account_id=account, channel=channel, destination=destination)
        for account, channel, destination in rows
    )


def _job(row: Row[Any]) -> PostJob:
    return PostJob(
        organization_id=row.organization_id,
        id=row.id,
        draft_id=row.draft_id,
        version=row.version,
        target=Target(social_account_id=row.social_account_id, channel=row.channel, destination=row.destination),
        state=JobState(row.state),
        state_reason=row.state_reason,
        schedule_time=row.schedule_time,
        publish_time=row.publish_time,
        external_url=row.external_url,
        error_message=row.error_message,
    )
