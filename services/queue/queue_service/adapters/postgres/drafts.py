"""Statements on `draft`: the targets of the drafts that Drafts has announced, as far as slots need them."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from queue_service.adapters.postgres.plans import pin_plans
from queue_service.domain.draft import Draft, LockedDraft, PublishedTarget, SavedDraft, Target
from queue_service.domain.slot import BlockingSlot

_FIND_DRAFT = text("select revision, targets from draft where organization_id = :organization_id and id = :id")

# Versions decide, not the order of arrival. The live slots of a saved draft get its revision, because commands name the
# newest revision known. Nothing reads `approved`; the column stays until a migration drops it.
_SAVE_DRAFTS = text("""
    with saved as (
        insert into draft as d (organization_id, id, version, revision, targets, approved)
        select s.*, false from unnest(
            cast(:organization_ids as text[]), cast(:ids as text[]), cast(:versions as bigint[]),
            cast(:revisions as bigint[]), cast(:targets as jsonb[])
        ) as s
        on conflict (organization_id, id) do update set
            version = excluded.version, revision = excluded.revision, targets = excluded.targets
        where d.version < excluded.version
        returning d.organization_id, d.id, d.revision
    ),
    behind as materialized (
        select s.organization_id, s.id, saved.revision
        from saved join slot s on s.organization_id = saved.organization_id and s.draft_id = saved.id
        where s.state in ('SCHEDULED', 'DISPATCHED') and s.content_revision < saved.revision
        order by s.organization_id, s.id for update of s
    )
    update slot s set content_revision = behind.revision
    from behind
    where s.organization_id = behind.organization_id and s.id = behind.id
""")

# This is a separate statement, because its snapshot must be newer than the drafts' locks: otherwise it would overlook a
# slot added in between.
_EXTEND_SLOTS = text("""
    with live as materialized (
        select s.organization_id, s.id, s.draft_id, s.social_account_id
        from unnest(cast(:organization_ids as text[]), cast(:ids as text[])) as u (organization_id, id)
        join slot s on s.organization_id = u.organization_id and s.draft_id = u.id
        where s.state in ('SCHEDULED', 'DISPATCHED')
        order by s.organization_id, s.id for update of s
    ),
    added as (
        insert into slot_target (organization_id, slot_id, channel, destination, post_job_id, job_version, external_url,
            error_message)
        select live.organization_id, live.id, target ->> 1, target ->> 2, '', 0, '', ''
        from live
        join draft d on d.organization_id = live.organization_id and d.id = live.draft_id
        cross join lateral jsonb_array_elements(d.targets) as target
        where target ->> 0 = live.social_account_id and not exists (
            select from slot s join slot_target t on t.organization_id = s.organization_id and t.slot_id = s.id
            where s.organization_id = live.organization_id and s.draft_id = live.draft_id
                and s.social_account_id = live.social_account_id and t.channel = target ->> 1
                and t.destination = target ->> 2 and t.job_state = 'PUBLISHED'
        )
        on conflict do nothing
        returning organization_id, slot_id
    )
    update slot s set
        is_answered = false, update_time = :now,
        next_emit_at = case when s.state = 'DISPATCHED' then least(s.next_emit_at, :now) end
    from (select distinct organization_id, slot_id from added) as extended
    where s.organization_id = extended.organization_id and s.id = extended.slot_id
    returning s.organization_id, s.id
""")

# Locks the draft's row against saves until the slot is committed. A target that a save adds is therefore either in the
# row already, or the save sees the slot.
_LOCK_DRAFT = text("""
    with known as materialized (
        select revision, targets from draft where organization_id = :organization_id and id = :id for share
    )
    select known.revision, known.targets, found.*
    from (select) as once
    left join known on true
    left join lateral (
        select s.id as slot_id, s.social_account_id, s.schedule_time,
            s.state in ('SCHEDULED', 'DISPATCHED') as is_live, t.channel, t.destination, t.post_job_id, t.external_url
        from slot s join slot_target t on t.organization_id = s.organization_id and t.slot_id = s.id
        where s.organization_id = :organization_id and s.draft_id = :id
            and s.social_account_id = any(cast(:social_account_ids as text[]))
            and (s.state in ('SCHEDULED', 'DISPATCHED') or t.job_state = 'PUBLISHED')
    ) as found on true
    order by found.social_account_id, found.channel, found.destination
""")
_ADD_DRAFT = text("""
    insert into draft (organization_id, id, version, revision, approved, targets)
    values (:organization_id, :id, 0, :revision, false, cast(:targets as jsonb))
    on conflict do nothing
""")


async def find_draft(connection: AsyncConnection, organization_id: str, draft_id: str) -> Draft | None:
    row = (await connection.execute(_FIND_DRAFT, {"organization_id": organization_id, "id": draft_id})).one_or_none()
    if row is None:
        return None
    return Draft(organization_id=organization_id, id=draft_id, revision=row.revision, targets=_decoded(row.targets))


async def lock_draft(connection: AsyncConnection, draft: Draft, accounts: Sequence[str]) -> LockedDraft:
    """Locks the draft's row against saves, and inserts it when its announcement has not arrived yet.

    The caller holds the accounts' locks, so their slots stay as they are.
    """
    names = {"organization_id": draft.organization_id, "id": draft.id, "social_account_ids": list(accounts)}
    rows = (await connection.execute(_LOCK_DRAFT, names)).all()
    while rows[0].revision is None:
        learned = {"revision": draft.revision, "targets": _encoded(draft.targets)}
        await connection.execute(_ADD_DRAFT, learned | {"organization_id": draft.organization_id, "id": draft.id})
        rows = (await connection.execute(_LOCK_DRAFT, names)).all()
    found = [row for row in rows if row.slot_id]
    known = rows[0]
    return LockedDraft(
        draft=replace(draft, revision=known.revision, targets=_decoded(known.targets))
        if known.revision > draft.revision
        else draft,
        queued=next((_blocking(row) for row in found if row.is_live), None),
        published=tuple(_published(row) for row in found if not row.is_live),
    )


async def save_drafts(connection: AsyncConnection, drafts: Iterable[SavedDraft]) -> None:
    """Saves drafts that are newer than what is stored. Each draft occurs once."""
    # In the order of their keys, or two writers could deadlock.
    ordered = sorted(drafts, key=lambda each: (each.draft.organization_id, each.draft.id))
    await pin_plans(connection)
    await connection.execute(
        _SAVE_DRAFTS,
        {
            "organization_ids": [each.draft.organization_id for each in ordered],
            "ids": [each.draft.id for each in ordered],
            "versions": [each.version for each in ordered],
            "revisions": [each.draft.revision for each in ordered],
            "targets": [_encoded(each.draft.targets) for each in ordered],
        },
    )


async def extend_slots(
    connection: AsyncConnection, drafts: Iterable[SavedDraft], *, now: datetime
) -> list[tuple[str, str]]:
    """Adds targets that drafts have gained to their live slots. Returns those slots. The drafts are locked."""
    ordered = sorted((each.draft.organization_id, each.draft.id) for each in drafts)
    names = {
        "organization_ids": [organization for organization, _ in ordered],
        "ids": [draft for _, draft in ordered],
        "now": now,
    }
    return [(row.organization_id, row.id) for row in await connection.execute(_EXTEND_SLOTS, names)]


def _blocking(row: Row[Any]) -> BlockingSlot:
    return BlockingSlot(slot_id=row.slot_id, social_account_id=row.social_account_id, schedule_time=row.schedule_time)


def _published(row: Row[Any]) -> PublishedTarget:
    target = Target(social_account_id=row.social_account_id, channel=row.channel, destination=row.destination)
    return PublishedTarget(target=target, job_id=row.post_job_id, external_url=row.external_url)


def _decoded(targets: Iterable[Sequence[str]]) -> tuple[Target, ...]:
    return tuple(
        Target(social_account_id=account, channel=channel, destination=destination)
        for account, channel, destination in targets
    )


def _encoded(targets: Iterable[Target]) -> str:
    return json.dumps([(target.social_account_id, target.channel, target.destination) for target in targets])
