"""Drafts in PostgreSQL, as far as Queue needs them: one function per question."""

import json
from collections.abc import Iterable

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from queue_service.adapters.postgres.statements import pin_plans
from queue_service.domain.draft import Draft, SavedDraft, Target

_FIND_DRAFT = text("select revision, targets from draft where organization_id = :organization_id and id = :id")

# Versions decide, not the order of arrival. A draft that is saved again takes its live slots along: their commands name
# the newest revision that is known.
_SAVE_DRAFTS = text("""
    with saved as (
        insert into draft as d (organization_id, id, version, revision, approved, targets)
        select * from unnest(
            cast(:organization_ids as text[]), cast(:ids as text[]), cast(:versions as bigint[]),
            cast(:revisions as bigint[]), cast(:approved as boolean[]), cast(:targets as jsonb[])
        )
        on conflict (organization_id, id) do update set
            version = excluded.version, revision = excluded.revision, approved = excluded.approved,
            targets = excluded.targets
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


async def find_draft(connection: AsyncConnection, organization_id: str, draft_id: str) -> Draft | None:
    row = (await connection.execute(_FIND_DRAFT, {"organization_id": organization_id, "id": draft_id})).one_or_none()
    if row is None:
        return None
    targets = tuple(Target(social_account_id=account, channel=c, destination=d) for account, c, d in row.targets)
    return Draft(organization_id=organization_id, id=draft_id, revision=row.revision, targets=targets)


async def save_drafts(connection: AsyncConnection, drafts: Iterable[SavedDraft]) -> None:
    """In the order of their keys, so that two writers never wait for each other in a circle; each draft once."""
    ordered = sorted(drafts, key=lambda each: (each.draft.organization_id, each.draft.id))
    await pin_plans(connection)
    await connection.execute(
        _SAVE_DRAFTS,
        {
            "organization_ids": [each.draft.organization_id for each in ordered],
            "ids": [each.draft.id for each in ordered],
            "versions": [each.version for each in ordered],
            "revisions": [each.draft.revision for each in ordered],
            "approved": [each.approved for each in ordered],
            "targets": [_encoded(each.draft.targets) for each in ordered],
        },
    )


def _encoded(targets: Iterable[Target]) -> str:
    return json.dumps([(target.social_account_id, target.channel, target.destination) for target in targets])
