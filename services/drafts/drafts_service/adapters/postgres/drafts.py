"""The SQL of drafts."""

import json
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from drafts_service.domain.account import AccountState, obstacle_of
from drafts_service.domain.content import Body
from drafts_service.domain.draft import NO_PLACEMENT, Approval, Draft, DraftKey, DraftTargets, Placement, Withdrawal
from drafts_service.domain.post_job import DraftState, FoldedState
from drafts_service.domain.slot_refusal import SlotRefusal
from drafts_service.domain.target import Target
from servicekit.pg.database import Transaction
from servicekit.pg.session import Session, Statement
from servicekit.timestamps import from_micros, micros

COLUMNS = """
    organization_id, id, content, content_digest, targets, revision, version, edit_version,
    approved_digest, approve_time, approver, withdraw_below, withdraw_due_time, exposed,
    state, schedule_time, publish_time, create_time, update_time, requested_time, category_id, brand_id,
    slot_refusals,
    (
        select jsonb_object_agg(account.id, jsonb_build_array(account.state, account.provider))
        from jsonb_array_elements(draft.targets) as target
        cross join lateral (
            select id, state, provider from social_account
            where social_account.organization_id = draft.organization_id
                and social_account.id = target.value ->> 0 offset 0
        ) as account
    ) as accounts
"""
"""The columns of `draft_of`."""

# See _LOCK_SEVERAL.
_LOCK = Statement(f"""
    select here.*
    from unnest(cast(:organizations as text[]), cast(:ids as text[])) as wanted (organization_id, id)
    cross join lateral (
        select {COLUMNS} from draft
        where draft.organization_id = wanted.organization_id and draft.id = wanted.id for update
    ) as here
""")
# A caller's id may have post jobs already, and must then not be created while such a job is stored (see `lock_drafts`).
# The lock of an id is taken before its row is inserted, both in the order of the arrays. A name that is null locks
# nothing. OFFSET 0 keeps the planner from taking the locks elsewhere.
_INSERT = Statement("""
    insert into draft (organization_id, id, content, content_digest, targets, revision, version, edit_version,
        state, create_time, update_time, requested_time, category_id, brand_id)
    select organization_id, id, content, content_digest, cast(targets as jsonb), 1, 1, 1, 'DRAFT', :now, :now,
        requested_time, category_id, brand_id
    from (
        select one.*, pg_advisory_xact_lock(hashtextextended(one.name, 0)) as locked
        from unnest(cast(:organizations as text[]), cast(:ids as text[]), cast(:names as text[]),
            cast(:contents as bytea[]), cast(:digests as text[]), cast(:targets as text[]),
            cast(:requested_times as timestamptz[]), cast(:category_ids as text[]), cast(:brand_ids as text[]))
            as one (organization_id, id, name, content, content_digest, targets, requested_time, category_id, brand_id)
        offset 0
    ) as one
    on conflict do nothing
    returning organization_id, id
""")
_APPROVE = Statement("""
    update draft set approved_digest = content_digest, approve_time = :now, approver = one.approver,
        version = one.version, edit_version = one.edit_version, update_time = :now
    from (
        select * from unnest(cast(:organizations as text[]), cast(:ids as text[]), cast(:approvers as text[]),
            cast(:versions as bigint[]), cast(:edit_versions as bigint[]))
            as one (organization_id, id, approver, version, edit_version)
        limit :count
    ) as one
    where draft.organization_id = one.organization_id and draft.id = one.id
""")
_SAVE = text("""
    update draft set content = :content, content_digest = :content_digest, targets = cast(:targets as jsonb),
        revision = :revision, version = :version, edit_version = :edit_version,
        approved_digest = :approved_digest, approve_time = :approve_time, approver = :approver,
        withdraw_below = :withdraw_below, withdraw_due_time = :withdraw_due_time, exposed = :exposed,
        state = :state, schedule_time = :schedule_time, publish_time = :publish_time, update_time = :update_time,
        requested_time = :requested_time, category_id = :category_id, brand_id = :brand_id,
        slot_refusals = cast(:slot_refusals as jsonb)
    where organization_id = :organization_id and id = :id
""")
_SAVE_REFUSALS = Statement("""
    update draft set slot_refusals = cast(one.refusals as jsonb), update_time = :now
    from (
        select * from unnest(cast(:organizations as text[]), cast(:ids as text[]), cast(:refusals as text[]))
            as one (organization_id, id, refusals)
        limit :count
    ) as one
    where draft.organization_id = one.organization_id and draft.id = one.id
""")
_NEXT_WITHDRAWAL = Statement("""
    select clock_timestamp(), (select min(withdraw_due_time) from draft where withdraw_due_time is not null)
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
_LOCK_SEVERAL = Statement("""
    select here.organization_id, here.id, cast(here.targets as text)
    from unnest(cast(:organizations as text[]), cast(:ids as text[])) as wanted (organization_id, id)
    cross join lateral (
        select organization_id, id, targets from draft
        where draft.organization_id = wanted.organization_id and draft.id = wanted.id for update
    ) as here
""")
_TARGETS = Statement("""
    select wanted.organization_id, wanted.id, here.revision, here.targets, here.category_id
    from unnest(cast(:organizations as text[]), cast(:ids as text[])) as wanted (organization_id, id)
    cross join lateral (
        select revision, targets, category_id from draft
        where draft.organization_id = wanted.organization_id and draft.id = wanted.id offset 0
    ) as here
""")
_LOCK_ABSENT = Statement("""
    select pg_advisory_xact_lock(hashtextextended(name, 0)) from unnest(cast(:names as text[])) as name
""")


async def lock_draft(tx: Transaction, key: DraftKey) -> Draft | None:
    """Returns the draft and locks it until the end of the transaction."""
    return (await lock_whole_drafts(tx, [key])).get(key)


async def lock_whole_drafts(tx: Transaction, keys: Collection[DraftKey]) -> dict[DraftKey, Draft]:
    """Returns those of the drafts that exist, and locks them until the end of the transaction."""
    drafts = map(draft_of, await tx.fetch(_LOCK, key_arrays(keys)))
    return {draft.key: draft for draft in drafts}


async def find_targets(session: Session, keys: Collection[DraftKey]) -> list[DraftTargets]:
    """Returns those of the drafts that exist."""
    return [
        DraftTargets(
            key=(organization_id, draft_id), revision=revision, targets=_targets(targets), category_id=category_id
        )
        for organization_id, draft_id, revision, targets, category_id in await session.fetch(_TARGETS, key_arrays(keys))
    ]


async def insert_drafts(tx: Transaction, drafts: Collection[Draft], *, given: Container[DraftKey]) -> set[DraftKey]:
    """Inserts new drafts, and returns the keys of those whose id was not in use.

    Locks the ids in `given`, which callers have chosen: their post jobs, if any, do not change from here on.
    """
    ordered = sorted(drafts, key=lambda draft: draft.key)
    rows = await tx.fetch(
        _INSERT,
        {
            "organizations": [draft.organization_id for draft in ordered],
            "ids": [draft.id for draft in ordered],
            "names": [_name(draft.key) if draft.key in given else None for draft in ordered],
            "contents": [draft.body.encoded for draft in ordered],
            "digests": [draft.body.digest for draft in ordered],
            "targets": [_encoded(draft.targets) for draft in ordered],
            "requested_times": [draft.placement.requested_time for draft in ordered],
            "category_ids": [draft.placement.category_id for draft in ordered],
            "brand_ids": [draft.placement.brand_id for draft in ordered],
            "now": ordered[0].create_time,
        },
    )
    return {(organization_id, draft_id) for organization_id, draft_id in rows}


async def save_approvals(tx: Transaction, drafts: Sequence[Draft], *, now: datetime) -> None:
    """Saves drafts that this transaction has locked and, at `now`, approved; nothing else of them has changed."""
    await tx.execute(
        _APPROVE,
        {
            "organizations": [draft.organization_id for draft in drafts],
            "ids": [draft.id for draft in drafts],
            "approvers": [draft.approval.approver if draft.approval else "" for draft in drafts],
            "versions": [draft.version for draft in drafts],
            "edit_versions": [draft.edit_version for draft in drafts],
            "count": len(drafts),
            "now": now,
        },
    )


async def save_draft(connection: AsyncConnection, draft: Draft) -> None:
    """Saves a draft that this transaction has locked."""
    await connection.execute(_SAVE, _columns(draft))


async def save_refusals(tx: Transaction, drafts: Sequence[Draft], *, now: datetime) -> None:
    """Saves the refusals of drafts that this transaction has locked."""
    await tx.execute(
        _SAVE_REFUSALS,
        {
            "organizations": [draft.organization_id for draft in drafts],
            "ids": [draft.id for draft in drafts],
            "refusals": [_encoded_refusals(draft.refusals) for draft in drafts],
            "count": len(drafts),
            "now": now,
        },
    )


async def next_withdrawal(session: Session) -> tuple[datetime, datetime | None]:
    """Returns the database's time, and when the first withdrawal is due; None if there is none."""
    ((now, due),) = await session.fetch(_NEXT_WITHDRAWAL)
    return now, due


async def claim_withdrawals(
    connection: AsyncConnection, *, now: datetime, next_time: datetime, limit: int
) -> list[tuple[DraftKey, int]]:
    """Returns the drafts whose withdrawal is due, each with its `below`, and makes them due again at `next_time`."""
    rows = await connection.execute(_CLAIM_WITHDRAWALS, {"now": now, "next": next_time, "limit": limit})
    return [((row.organization_id, row.id), row.withdraw_below) for row in rows]


async def lock_drafts(tx: Transaction, keys: Collection[DraftKey]) -> dict[DraftKey, tuple[Target, ...]]:
    """Locks the drafts and returns their targets; locks the ids of missing drafts, so that nobody creates them."""
    found = await _lock_rows(tx, keys)
    if absent := set(keys) - found.keys():
        await lock_absent_drafts(tx, absent)
        found |= await _lock_rows(tx, absent)
    return found


async def lock_absent_drafts(tx: Transaction, keys: Collection[DraftKey]) -> None:
    """Serializes the creation of a draft with the storage of events that already name its id."""
    await tx.fetch(_LOCK_ABSENT, {"names": [_name(key) for key in sorted(keys)]})


def key_arrays(keys: Collection[DraftKey]) -> dict[str, list[str]]:
    """Returns the keys as the array parameters `organizations` and `ids`, in the order in which rows are locked."""
    ordered = sorted(keys)
    return {"organizations": [key[0] for key in ordered], "ids": [key[1] for key in ordered]}


async def _lock_rows(tx: Transaction, keys: Collection[DraftKey]) -> dict[DraftKey, tuple[Target, ...]]:
    rows = await tx.fetch(_LOCK_SEVERAL, key_arrays(keys))
    return {(organization_id, draft_id): _decoded(targets) for organization_id, draft_id, targets in rows}


def _columns(draft: Draft) -> dict[str, object]:
    approval, withdrawal = draft.approval, draft.withdrawal
    return {
        "organization_id": draft.organization_id,
        "id": draft.id,
        "content": draft.body.encoded,
        "content_digest": draft.body.digest,
        "targets": _encoded(draft.targets),
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
        "requested_time": draft.placement.requested_time,
        "category_id": draft.placement.category_id,
        "brand_id": draft.placement.brand_id,
        "slot_refusals": _encoded_refusals(draft.refusals),
    }


def draft_of(row: Iterable[Any]) -> Draft:
    # Unpacked, because each attribute of a row costs as much as four columns.
    (
        organization_id, draft_id, content, digest, targets, revision, version, edit_version,
        approved_digest, approve_time, approver, withdraw_below, withdraw_due_time, exposed,
        state, schedule_time, publish_time, create_time, update_time, requested_time, category_id, brand_id,
        refusals, accounts,
    ) = row  # fmt: skip
    known = (accounts or {}).items()
    return Draft(
        organization_id=organization_id,
        id=draft_id,
        body=Body(encoded=content, digest=digest),
        targets=_targets(targets),
        create_time=create_time,
        update_time=update_time,
        approval=Approval(digest=approved_digest, time=approve_time, approver=approver) if approved_digest else None,
        revision=revision,
        version=version,
        edit_version=edit_version,
        withdrawal=Withdrawal(below=withdraw_below, due=withdraw_due_time) if withdraw_below else None,
        exposed=exposed,
        placement=Placement(requested_time=requested_time, category_id=category_id, brand_id=brand_id)
        if requested_time or category_id or brand_id
        else NO_PLACEMENT,
        refusals=_refusals(refusals) if refusals else (),
        folded=FoldedState(state=DraftState(state), schedule_time=schedule_time, publish_time=publish_time),
        obstacles={account_id: obstacle_of(AccountState(state)) for account_id, (state, _) in known},
        providers={account_id: provider for account_id, (_, provider) in known},
    )


def _name(key: DraftKey) -> str:
    """Returns the name under which the id of a missing draft is locked."""
    return f"draft {key[0]} {key[1]}"


def _encoded(targets: Sequence[Target]) -> str:
    return json.dumps([[each.social_account_id, each.channel, each.destination] for each in targets])


def _encoded_refusals(refusals: Iterable[SlotRefusal]) -> str | None:
    encoded = {
        each.social_account_id: [
            each.draft_version, micros(each.schedule_time), each.reason, each.message, micros(each.create_time)
        ]
        for each in refusals
    }  # fmt: skip
    return json.dumps(encoded) if encoded else None


def _refusals(rows: Mapping[str, Sequence[Any]]) -> tuple[SlotRefusal, ...]:
    return tuple(
        SlotRefusal(
            social_account_id=account,
            draft_version=version,
            schedule_time=from_micros(time),
            reason=reason,
            message=message,
            create_time=from_micros(refused),
        )
        for account, (version, time, reason, message, refused) in sorted(rows.items())
    )


@lru_cache(1024)  # drafts of one account often have the same targets; reading them costs 3 us
def _decoded(targets: str) -> tuple[Target, ...]:
    return _targets(json.loads(targets))


def _targets(rows: Sequence[Sequence[str]]) -> tuple[Target, ...]:
    return tuple(
        Target(social_account_id=account, channel=channel, destination=destination)
        for account, channel, destination in rows
    )
