"""Other posts of an account for which a post that is recognized by its text may be taken. Such posts are rare."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from publisher_service.domain.post_job import PostJob

_NAMES_ANOTHER = text("""
    select exists (
        select from post_job o
        where o.organization_id = :organization_id and o.social_account_id = :account_id
            and o.list_state = 'PUBLISHED' and o.list_state <> '' and o.external_id = :external_id and o.id <> :id
    )
""")

# The posts of the account that are in doubt, or being sent, at the same place; with what they may have sent.
_RIVALS = text("""
    select o.part, coalesce(
        (
            select kept.content from kept_content kept
            where kept.organization_id = o.organization_id and kept.post_job_id = o.id
                and kept.revision = o.content_revision
        ),
        (
            select k.content from content k
            where k.organization_id = o.organization_id and k.draft_id = o.draft_id
                and k.revision = o.content_revision
        )
    ) as content
    from (
        select d.id from post_job d
        where d.organization_id = :organization_id and d.social_account_id = :account_id and d.in_doubt and d.id <> :id
        union
        select g.open_job_id from account_gate g
        where g.organization_id = :organization_id and g.social_account_id = :account_id and g.open_job_id <> :id
    ) as other
    join post_job o on o.organization_id = :organization_id and o.id = other.id
    where o.channel = :channel and lower(o.destination) = lower(:destination) and o.follows = :follows
        and exists (
            select from attempt a
            where a.organization_id = o.organization_id and a.post_job_id = o.id
                and a.state in ('SENDING', 'UNKNOWN', 'ABSENT')
        )
    limit :limit
""")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rival:
    """A post that may be out, too: which part of what content; None if that is lost."""

    part: int
    content: bytes | None


async def names_another(connection: AsyncConnection, job: PostJob, external_id: str) -> bool:
    """Returns whether another post of the account is out under this name."""
    names = _names(job) | {"external_id": external_id}
    found: bool = (await connection.execute(_NAMES_ANOTHER, names)).scalar_one()
    return found


async def rivals_of(connection: AsyncConnection, job: PostJob, *, limit: int) -> Sequence[Rival]:
    """Returns other posts that may be out at the place of this one, so many at most."""
    place = {"channel": job.target.channel, "destination": job.target.destination, "follows": job.follows}
    rows = await connection.execute(_RIVALS, _names(job) | place | {"limit": limit})
    return [Rival(**row) for row in rows.mappings()]


def _names(job: PostJob) -> dict[str, str]:
    return {
        "organization_id": job.organization_id,
        "account_id": job.target.social_account_id,
        "id": job.id,
    }
