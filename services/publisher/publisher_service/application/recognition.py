"""Tells whether a post that was recognized by its text is that of another job."""

from typing import Final

from sqlalchemy.ext.asyncio import AsyncConnection

from publisher_service.adapters.postgres.kept_contents import sent_content
from publisher_service.adapters.postgres.rivals import names_another, rivals_of
from publisher_service.domain.content import Message, is_alike, message_for
from publisher_service.domain.post_job import PostJob
from publisher_service.wire.contents import content_from
from publisher_service.wire.unreadable import UnreadableMessage

# An account with more posts in doubt at one place than this is one for a person.
_MOST_RIVALS: Final = 50


async def is_of_another(connection: AsyncConnection, job: PostJob, external_id: str) -> bool:
    """Returns whether the post of this name may be that of another job of the account.

    It is if that job is known to be this post, or may have sent the same and nobody knows the outcome.
    """
    if await names_another(connection, job, external_id):
        return True
    rivals = await rivals_of(connection, job, limit=_MOST_RIVALS)
    if not rivals or len(rivals) == _MOST_RIVALS:
        return bool(rivals)
    own = _message(job, job.part, await sent_content(connection, job.organization_id, job.id))
    others = [_message(job, each.part, each.content) for each in rivals]
    # A mail is recognized by its subject; only what goes to one person has one.
    by_title = bool(job.target.destination)
    return own is None or any(each is None or is_alike(own, each, by_title=by_title) for each in others)


def _message(job: PostJob, part: int, encoded: bytes | None) -> Message | None:
    """Returns what a post on the channel of the job has sent; None if that is lost."""
    try:
        return message_for(content_from(encoded), job.target.channel, part) if encoded is not None else None
    except UnreadableMessage:
        return None
