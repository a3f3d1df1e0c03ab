"""The SQL of drafts."""

import json
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from drafts_service.domain.account import AccountState, obstacle_of
from drafts_service.domain.content import Body
from drafts_service.domain.draft import Approval, Draft, DraftKey, DraftTargets, Withdrawal
from drafts_service.domain.post_job import DraftState, FoldedState
from drafts_service.domain.target import Target

_SELECT = """
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
_FIND = text(_SELECT)
_LOCK = text(f"{_SELECT} for update")
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
# A generic plan is made while a table is small and kept while it grows, so it must not scan the table. LATERAL with a
# subquery that cannot be merged into the query around it (FOR UPDATE, OFFSET 0) leaves only an index look-up per row.
# Locks are taken in the order of the arrays, so batches that share drafts wait for each other and do not deadlock.
_LOCK_SEVERAL = text("""
    select here.organization_id, here.id, here.targets
    from unnest(cast(:organizations as text[]), cast(:ids as text[])) as wanted (organization_id, id)
    cross join lateral (
        select organization_id, id, targets from draft
        where draft.organization_id = wanted.organization_id and draft.id = wanted.id for update
    ) as here
""")
_TARGETS = text("""
    select wanted.organization_id, wanted.id, here.revision, here.targets
    from unnest(cast(:organizations as text[]), cast(:ids as text[])) as wanted (organization_id, id)
    cross join lateral (
        select revision, targets from draft
        where draft.organization_id = wanted.organization_id and draft.id = wanted.id offset 0
    ) as here
""")
_LOCK_ABSENT = text("""
    select pg_advisory_xact_lock(hashtextextended(name, 0)) from unnest(cast(:names as text[])) as name
""")


async def find_draft(connection: AsyncConnection, organization_id: str, draft_id: str) -> Draft | None:
    row = (await connection.execute(_FIND, {"organization_id": organization_id, "id": draft_id})).one_or_none()
    return _draft(row) if row else None


async def lock_draft(connection: AsyncConnection, organization_id: str, draft_id: str) -> Draft | None:
    """Returns the draft and locks it until the end of the transaction."""
    row = (await connection.execute(_LOCK, {"organization_id": organization_id, "id": draft_id})).one_or_none()
    return _draft(row) if row else None


async def find_targets(connection: AsyncConnection, keys: Collection[DraftKey]) -> list[DraftTargets]:
    """Returns those of the drafts that exist."""
    return [
        DraftTargets(key=(organization_id, draft_id), revision=revision, targets=_targets(targets))
        for organization_id, draft_id, revision, targets in await connection.execute(_TARGETS, key_arrays(keys))
    ]


async def insert_draft(connection: AsyncConnection, draft: Draft) -> bool:
    """Returns False if the id is in use."""
    return (await connection.execute(_INSERT, _columns(draft))).rowcount == 1


async def save_draft(connection: AsyncConnection, draft: Draft) -> None:
    """Saves a draft that this transaction has locked."""
    await connection.execute(_SAVE, _columns(draft))


async def claim_withdrawals(
    connection: AsyncConnection, *, now: datetime, next_time: datetime, limit: int
) -> list[tuple[DraftKey, int]]:
    """Returns the drafts whose withdrawal is due, each with its `below`, and makes them due again at `next_time`."""
    rows = await connection.execute(_CLAIM_WITHDRAWALS, {"now": now, "next": next_time, "limit": limit})
    return [((row.organization_id, row.id), row.withdraw_below) for row in rows]


async def lock_drafts(connection: AsyncConnection, keys: Collection[DraftKey]) -> dict[DraftKey, tuple[Target, ...]]:
    """Locks the drafts and returns their targets; locks the ids of missing drafts, so that nobody creates them."""
    found = await _lock_rows(connection, keys)
    if absent := set(keys) - found.keys():
        await lock_absent_drafts(connection, absent)
        found |= await _lock_rows(connection, absent)
    return found


async def lock_absent_drafts(connection: AsyncConnection, keys: Collection[DraftKey]) -> None:
    """Serializes the creation of a draft with the storage of events that already name its id."""
    await connection.execute(
        _LOCK_ABSENT, {"names": sorted(f"draft {organization} {key}" for organization, key in keys)}
    )


def key_arrays(keys: Collection[DraftKey]) -> dict[str, list[str]]:
    """Returns the keys as the array parameters `organizations` and `ids`, in the order in which rows are locked."""
    ordered = sorted(keys)
    return {"organizations": [key[0] for key in ordered], "ids": [key[1] for key in ordered]}


async def _lock_rows(connection: AsyncConnection, keys: Collection[DraftKey]) -> dict[DraftKey, tuple[Target, ...]]:
    rows = await connection.execute(_LOCK_SEVERAL, key_arrays(keys))
    return {(organization_id, draft_id): _targets(targets) for organization_id, draft_id, targets in rows}


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
        "state": draft.folded.state,
        "schedule_time": draft.folded.schedule_time,
        "publish_time": draft.folded.publish_time,
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
        folded=FoldedState(state=DraftState(row.state), schedule_time=row.schedule_time, publish_time=row.publish_time),
        obstacles={account_id: obstacle_of(AccountState(state)) for account_id, state in (row.accounts or {}).items()},
    )


def _targets(rows: Sequence[Sequence[str]]) -> tuple[Target, ...]:
    return tuple(
        Target(social_account_id=account, channel=channel, destination=destination)
        for account, channel, destination in rows
    )
