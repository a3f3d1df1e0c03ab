"""The bytes of attempts that may have gone out: a resend under the same key must carry the same bytes."""

from collections.abc import Iterable, Sequence

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from publisher_service.adapters.postgres.keys import Key, key_arrays
from publisher_service.domain.claim import Claimed

_KEEP = text("""
    insert into kept_content (organization_id, post_job_id, revision, content, content_digest)
    select * from unnest(
        cast(:organization_ids as text[]), cast(:ids as text[]), cast(:revisions as bigint[]),
        cast(:contents as bytea[]), cast(:content_digests as text[])
    )
    on conflict do nothing
""")

# A newer revision may have overwritten the bytes; then the process that has them in memory keeps them when it settles.
_KEEP_CURRENT = text("""
    insert into kept_content (organization_id, post_job_id, revision, content, content_digest)
    select j.organization_id, j.id, k.revision, k.content, k.content_digest
    from unnest(cast(:organization_ids as text[]), cast(:ids as text[])) as wanted (organization_id, id)
    join post_job j on j.organization_id = wanted.organization_id and j.id = wanted.id
    join content k on k.organization_id = j.organization_id and k.draft_id = j.draft_id
    where k.revision = j.content_revision and (j.in_doubt or j.state in ('SENDING', 'UNKNOWN'))
    on conflict do nothing
""")

_SENT_CONTENT = text("""
    select coalesce(
        (
            select kept.content from kept_content kept
            where kept.organization_id = j.organization_id and kept.post_job_id = j.id
                and kept.revision = j.content_revision
        ),
        (
            select k.content from content k
            where k.organization_id = j.organization_id and k.draft_id = j.draft_id
                and k.revision = j.content_revision
        )
    )
    from post_job j where j.organization_id = :organization_id and j.id = :id
""")

# The lock on the job spares bytes that a concurrent transaction is about to need.
_DROP = text("""
    with over as materialized (
        select kept.organization_id, kept.post_job_id, kept.revision
        from kept_content kept
        join post_job j on j.organization_id = kept.organization_id and j.id = kept.post_job_id
        where not j.in_doubt and j.state not in ('SENDING', 'UNKNOWN')
        limit :limit for update of j skip locked
    )
    delete from kept_content kept using over
    where kept.organization_id = over.organization_id and kept.post_job_id = over.post_job_id
        and kept.revision = over.revision
""")


async def keep_contents(connection: AsyncConnection, sent: Sequence[Claimed]) -> None:
    """Keeps the bytes that these attempts carried."""
    if sent:
        await connection.execute(
            _KEEP,
            {
                "organization_ids": [each.job.organization_id for each in sent],
                "ids": [each.job.id for each in sent],
                "revisions": [each.job.content_revision for each in sent],
                "contents": [each.content for each in sent],
                "content_digests": [each.content_digest for each in sent],
            },
        )


async def keep_current_contents(connection: AsyncConnection, jobs: Iterable[Key]) -> None:
    """Keeps the content that locked jobs may have sent, where it is still the draft's newest."""
    keys = key_arrays(jobs, "ids")
    if keys["ids"]:
        await connection.execute(_KEEP_CURRENT, keys)


async def sent_content(connection: AsyncConnection, organization_id: str, job_id: str) -> bytes | None:
    """Returns the bytes of the job's last attempt; None when they are lost."""
    names = {"organization_id": organization_id, "id": job_id}
    content: bytes | None = (await connection.execute(_SENT_CONTENT, names)).scalar_one_or_none()
    return content


async def drop_kept_contents(connection: AsyncConnection, *, limit: int) -> int:
    """Deletes bytes that no attempt can need again. Returns the number of rows."""
    result = await connection.execute(_DROP, {"limit": limit})
    return result.rowcount
