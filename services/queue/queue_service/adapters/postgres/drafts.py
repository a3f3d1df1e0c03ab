"""Statements on `draft`: the targets of the drafts that Drafts has announced, as far as slots need them."""

import json
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from queue_service.adapters.postgres.plans import pin_plans_of
from queue_service.domain.draft import Draft, DraftKey, KnownDraft, LockedDraft, PublishedTarget, SavedDraft, Target
from queue_service.domain.slot import BlockingSlot
from servicekit.pg.database import Transaction
from servicekit.pg.session import Session, Statement

_FIND_DRAFTS = Statement("""
    select u.organization_id, u.id, known.revision, known.targets, known.category_id, array(
        select account.id from jsonb_array_elements(known.targets) as target cross join lateral (
            select a.id from social_account a
            where a.organization_id = u.organization_id and a.id = target ->> 0 and a.is_connected offset 0
        ) as account
    )
    from unnest(cast(:organization_ids as text[]), cast(:ids as text[])) as u (organization_id, id)
    cross join lateral (
        select d.revision, d.targets, d.category_id from draft d
        where d.organization_id = u.organization_id and d.id = u.id offset 0
    ) as known
""")

# Versions decide, not the order of arrival. The live slots of a saved draft get its revision, because commands name the
# newest revision known.
_SAVE_DRAFTS = text("""
    with saved as (
        insert into draft as d (organization_id, id, version, revision, targets, approved, requested_time, category_id)
        select * from unnest(
            cast(:organization_ids as text[]), cast(:ids as text[]), cast(:versions as bigint[]),
            cast(:revisions as bigint[]), cast(:targets as jsonb[]), cast(:are_approved as boolean[]),
            cast(:requested_times as timestamptz[]), cast(:category_ids as text[])
        )
        on conflict (organization_id, id) do update set
            version = excluded.version, revision = excluded.revision, targets = excluded.targets,
            approved = excluded.approved, requested_time = excluded.requested_time, category_id = excluded.category_id
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
# slot added in between. `emission` grows, or commands that were sent for the other targets, and that the stream still
# holds, would put off those for the added ones.
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
        emission = s.emission + case when s.state = 'DISPATCHED' then 1 else 0 end,
        next_emit_at = case when s.state = 'DISPATCHED' then least(s.next_emit_at, :now) else s.next_emit_at end
    from (select distinct organization_id, slot_id from added) as extended
    where s.organization_id = extended.organization_id and s.id = extended.slot_id
    returning s.organization_id, s.id
""")

# Locks the drafts' rows against saves until the slots are committed, in the order of the arrays. A target that a save
# adds is therefore either in the row already, or the save sees the slot. LATERAL with FOR SHARE or OFFSET 0 leaves only
# lookups by key, however small the tables were when the plan was made; and only the index by draft has the order of the
# slots, while that of a draft's slots by account would have the planner read all slots of the organization.
_LOCK_DRAFTS = Statement("""
    select u.organization_id, u.id, known.revision, known.targets, known.category_id, found.*
    from unnest(cast(:organization_ids as text[]), cast(:ids as text[])) as u (organization_id, id)
    cross join lateral (
        select d.revision, d.targets, d.category_id from draft d
        where d.organization_id = u.organization_id and d.id = u.id for share
    ) as known
    left join lateral (
        select s.id as slot_id, s.social_account_id, s.schedule_time, s.is_live, t.channel, t.destination,
            t.post_job_id, t.external_url
        from (
            select * from slot each
            where each.organization_id = u.organization_id and each.draft_id >= u.id and each.draft_id <= u.id
            order by each.draft_id offset 0
        ) as s
        cross join lateral (
            select * from slot_target each where each.organization_id = s.organization_id and each.slot_id = s.id
            offset 0
        ) as t
        where s.is_live or t.job_state = 'PUBLISHED'
        order by s.social_account_id, t.channel, t.destination offset 0
    ) as found on true
""")
_ADD_DRAFTS = text("""
    insert into draft (organization_id, id, version, revision, approved, targets, category_id)
    select u.organization_id, u.id, 0, u.revision, false, u.targets, u.category_id
    from unnest(
        cast(:organization_ids as text[]), cast(:ids as text[]), cast(:revisions as bigint[]),
        cast(:targets as jsonb[]), cast(:category_ids as text[])
    ) as u (organization_id, id, revision, targets, category_id)
    on conflict do nothing
""")


async def find_drafts(session: Session, keys: Collection[DraftKey]) -> dict[DraftKey, KnownDraft]:
    names = {"organization_ids": [key[0] for key in keys], "ids": [key[1] for key in keys]}
    return {
        (of_draft[0], of_draft[1]): KnownDraft(
            draft=_draft(*of_draft),
            connected=frozenset(connected),
        )
        for *of_draft, connected in await session.fetch(_FIND_DRAFTS, names)
    }


async def lock_drafts(tx: Transaction, drafts: Iterable[Draft]) -> dict[DraftKey, LockedDraft]:
    """Locks the drafts' rows against saves, and inserts those whose announcements have not arrived yet.

    The slots are only those of accounts whose locks the caller holds: others may change.
    """
    unique = {draft.key: draft for draft in sorted(drafts, key=attrgetter("key"))}
    names = {"organization_ids": [key[0] for key in unique], "ids": [key[1] for key in unique]}
    locked = _locked(await tx.fetch(_LOCK_DRAFTS, names))
    while len(locked) < len(unique):
        learned = {
            "revisions": [draft.revision for draft in unique.values()],
            "targets": [_encoded(draft.targets) for draft in unique.values()],
            "category_ids": [draft.category_id for draft in unique.values()],
        }
        await tx.connection.execute(_ADD_DRAFTS, names | learned)
        locked = _locked(await tx.fetch(_LOCK_DRAFTS, names))
    return locked


async def save_drafts(connection: AsyncConnection, drafts: Iterable[SavedDraft]) -> None:
    """Saves drafts that are newer than what is stored. Each draft occurs once."""
    # In the order of their keys, or two writers could deadlock.
    ordered = sorted(drafts, key=lambda each: (each.draft.organization_id, each.draft.id))
    await pin_plans_of(connection)
    await connection.execute(
        _SAVE_DRAFTS,
        {
            "organization_ids": [each.draft.organization_id for each in ordered],
            "ids": [each.draft.id for each in ordered],
            "versions": [each.version for each in ordered],
            "revisions": [each.draft.revision for each in ordered],
            "targets": [_encoded(each.draft.targets) for each in ordered],
            "are_approved": [each.is_approved for each in ordered],
            "requested_times": [each.requested_time for each in ordered],
            "category_ids": [each.draft.category_id for each in ordered],
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


def _locked(rows: Iterable[Any]) -> dict[DraftKey, LockedDraft]:
    found: dict[DraftKey, LockedDraft] = {}
    for row in rows:
        *of_draft, slot_id, account, time, is_live = row[:9]
        key = (of_draft[0], of_draft[1])
        if key not in found:
            found[key] = LockedDraft(draft=_draft(*of_draft))
        if is_live:
            slot = BlockingSlot(slot_id=slot_id, social_account_id=account, schedule_time=time)
            found[key] = found[key].with_slots([slot])
        elif slot_id:
            found[key] = found[key].with_published(_published(account, *row[9:]))
    return found


def _draft(
    organization_id: str, draft_id: str, revision: int, targets: Iterable[Sequence[str]], category_id: str
) -> Draft:
    return Draft(
        organization_id=organization_id,
        id=draft_id,
        revision=revision,
        targets=_decoded(targets),
        category_id=category_id,
    )


def _published(account: str, channel: str, destination: str, job_id: str, external_url: str) -> PublishedTarget:
    target = Target(social_account_id=account, channel=channel, destination=destination)
    return PublishedTarget(target=target, job_id=job_id, external_url=external_url)


def _decoded(targets: Iterable[Sequence[str]]) -> tuple[Target, ...]:
    return tuple(
        Target(social_account_id=account, channel=channel, destination=destination)
        for account, channel, destination in targets
    )


def _encoded(targets: Iterable[Target]) -> str:
    return json.dumps([(target.social_account_id, target.channel, target.destination) for target in targets])
