"""Contents of drafts: the newest text, its approval, its targets, and the revisions that were withdrawn."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from publisher_service.adapters.postgres.keys import Key, key_arrays
from publisher_service.domain.plan import SavedDraft

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

_WITHDRAW_CONTENT = text("""
    update content set withdrawn_below = greatest(withdrawn_below, :below)
    where organization_id = :organization_id and draft_id = :draft_id
""")

_WITHDRAW_JOBS = text("""
    update post_job set withdrawn_below = greatest(withdrawn_below, :below)
    where organization_id = :organization_id and draft_id = :draft_id
""")


class KnownContent(NamedTuple):
    """The content of a draft as it is known; all zero before Drafts has announced it."""

    version: int
    withdrawn_below: int
    revision: int
    post_job_ids: frozenset[str] = frozenset()

    def lacks(self, job_id: str, *, since: int) -> bool:
        """Returns whether revision `since`, or a later one, has dropped the target of this post job."""
        return 0 < since <= self.revision and job_id not in self.post_job_ids


async def lock_contents(connection: AsyncConnection, drafts: Iterable[Key]) -> dict[Key, KnownContent]:
    """Locks the contents of drafts, inserting empty rows where there are none."""
    result = await connection.execute(_LOCK_CONTENTS, key_arrays(drafts, "draft_ids"))
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


async def withdraw_below(connection: AsyncConnection, organization_id: str, draft_id: str, below: int) -> None:
    """Forbids revisions under `below`. This transaction has locked the content and the jobs."""
    names = {"organization_id": organization_id, "draft_id": draft_id, "below": below}
    await connection.execute(_WITHDRAW_CONTENT, names)
    await connection.execute(_WITHDRAW_JOBS, names)
