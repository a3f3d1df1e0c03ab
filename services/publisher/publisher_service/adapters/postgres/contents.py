"""Contents of drafts: the newest text, its approval, its targets, and the revisions that were withdrawn."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from publisher_service.adapters.postgres.keys import Key, key_arrays
from publisher_service.domain.plan import SavedDraft

# Locks in the order of the arrays what an update would lock, without writing new row versions: each slot comes
# through here. LATERAL with a lock leaves only a lookup of each key, however small the table was at planning.
_LOCK_CONTENTS = text("""
    select locked.*
    from unnest(cast(:organization_ids as text[]), cast(:draft_ids as text[])) as wanted (organization_id, draft_id)
    cross join lateral (
        select c.organization_id, c.draft_id, c.version, c.revision, c.withdrawn_below, c.post_job_ids from content c
        where c.organization_id = wanted.organization_id and c.draft_id = wanted.draft_id for no key update
    ) as locked
""")
_READ_CONTENT = text("""
    select version, withdrawn_below, revision, post_job_ids, approved, content_digest from content
    where organization_id = :organization_id and draft_id = :draft_id
""")
_ADD_CONTENTS = text("""
    insert into content (organization_id, draft_id, version, revision, content, content_digest, approved,
        withdrawn_below, post_job_ids)
    select organization_id, draft_id, 0, 0, '', '', false, 0, '{}'
    from unnest(cast(:organization_ids as text[]), cast(:draft_ids as text[])) as new (organization_id, draft_id)
    order by 1, 2
    on conflict do nothing
""")

_SAVE_CONTENTS = text("""
    update content c set version = new.version, revision = new.revision, content = new.content,
        content_digest = new.content_digest, approved = new.approved,
        brand_id = new.brand_id, campaign_id = new.campaign_id,
        post_job_ids = string_to_array(new.post_job_ids, ' ')
    from unnest(
        cast(:organization_ids as text[]), cast(:draft_ids as text[]), cast(:versions as bigint[]),
        cast(:revisions as bigint[]), cast(:contents as bytea[]), cast(:content_digests as text[]),
        cast(:approved as boolean[]), cast(:post_job_ids as text[]), cast(:brand_ids as text[]),
        cast(:campaign_ids as text[])
    ) as new (organization_id, draft_id, version, revision, content, content_digest, approved, post_job_ids, brand_id,
        campaign_id)
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


_SET_IDS = text("""
    update post_job j set brand_id = new.brand_id, campaign_id = new.campaign_id
    from unnest(
        cast(:organization_ids as text[]), cast(:draft_ids as text[]), cast(:brand_ids as text[]),
        cast(:campaign_ids as text[])
    ) as new (organization_id, draft_id, brand_id, campaign_id)
    where j.organization_id = new.organization_id and j.draft_id = new.draft_id
        and (j.brand_id, j.campaign_id) <> (new.brand_id, new.campaign_id)
""")


# Without the version, as of one that is being sent: what is announced of it next has the number.
_SET_PARTS = text("""
    update post_job j set parts = new.parts
    from unnest(cast(:organization_ids as text[]), cast(:ids as text[]), cast(:parts as integer[]))
        as new (organization_id, id, parts)
    where j.organization_id = new.organization_id and j.id = new.id and j.parts <> new.parts
""")


class KnownContent(NamedTuple):
    """The content of a draft as it is known; all zero before Drafts has announced it."""

    version: int
    withdrawn_below: int
    revision: int
    post_job_ids: frozenset[str] = frozenset()
    # Only `read_content` says so.
    approved: bool = False
    content_digest: str = ""

    def lacks(self, job_id: str, *, since: int) -> bool:
        """Returns whether revision `since`, or a later one, has dropped the target of this post job."""
        return 0 < since <= self.revision and job_id not in self.post_job_ids


async def lock_contents(connection: AsyncConnection, drafts: Iterable[Key]) -> dict[Key, KnownContent]:
    """Locks the contents of drafts, inserting empty rows where there are none."""
    names = key_arrays(drafts, "draft_ids")
    locked = await _locked(connection, names)
    while len(locked) < len(names["draft_ids"]):
        await connection.execute(_ADD_CONTENTS, names)
        locked = await _locked(connection, names)
    return locked


async def _locked(connection: AsyncConnection, names: Mapping[str, list[str]]) -> dict[Key, KnownContent]:
    return {
        (organization_id, draft_id): KnownContent(version, withdrawn_below, revision, frozenset(post_job_ids))
        for organization_id, draft_id, version, revision, withdrawn_below, post_job_ids in await connection.execute(
            _LOCK_CONTENTS, names
        )
    }


async def read_content(connection: AsyncConnection, organization_id: str, draft_id: str) -> KnownContent:
    """Returns the content of a draft without locking it; an empty one before Drafts has announced it."""
    names = {"organization_id": organization_id, "draft_id": draft_id}
    row = (await connection.execute(_READ_CONTENT, names)).one_or_none()
    if row is None:
        return KnownContent(0, 0, 0)
    return KnownContent(**row._asdict() | {"post_job_ids": frozenset(row.post_job_ids)})


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
                "brand_ids": [each.brand_id for each in contents],
                "campaign_ids": [each.campaign_id for each in contents],
                # An array of arrays must be square, and unnest would flatten it.
                "post_job_ids": [" ".join(each.post_job_ids) for each in contents],
            },
        )


async def set_ids_of_jobs(connection: AsyncConnection, drafts: Sequence[SavedDraft]) -> None:
    """Writes the brands and campaigns of drafts to their jobs, which this transaction has locked."""
    if drafts:
        await connection.execute(
            _SET_IDS,
            {
                "organization_ids": [each.organization_id for each in drafts],
                "draft_ids": [each.draft_id for each in drafts],
                "brand_ids": [each.brand_id for each in drafts],
                "campaign_ids": [each.campaign_id for each in drafts],
            },
        )


async def set_parts_of_jobs(connection: AsyncConnection, parts: Mapping[Key, int]) -> None:
    """Writes how many follow-ups come after these jobs, which this transaction has locked."""
    if parts:
        names = {
            "organization_ids": [organization_id for organization_id, _ in parts],
            "ids": [job_id for _, job_id in parts],
            "parts": list(parts.values()),
        }
        await connection.execute(_SET_PARTS, names)


async def withdraw_below(connection: AsyncConnection, organization_id: str, draft_id: str, below: int) -> None:
    """Forbids revisions under `below`. This transaction has locked the content and the jobs."""
    names = {"organization_id": organization_id, "draft_id": draft_id, "below": below}
    await connection.execute(_WITHDRAW_CONTENT, names)
    await connection.execute(_WITHDRAW_JOBS, names)
