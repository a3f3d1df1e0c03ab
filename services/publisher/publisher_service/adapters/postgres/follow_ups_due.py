"""Notes that a part of a post is out, so that its next follow-up is due. Few posts have follow-ups."""

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from publisher_service.adapters.postgres.keys import Key, key_arrays

NOTE_SETTLED: Final = """
    insert into follow_up_due (organization_id, post_job_id, next_time)
    select organization_id, id, cast(:now as timestamptz) from settled
    where attempt_state = 'ACCEPTED' and parts > 0
    on conflict do nothing
"""
"""The same for the rows that a settlement has written."""

# The number of parts is that of the row: a draft may have got follow-ups while the post was being sent.
_NOTE = text("""
    insert into follow_up_due (organization_id, post_job_id, next_time)
    select organization_id, id, cast(:now as timestamptz)
    from unnest(cast(:organization_ids as text[]), cast(:ids as text[])) as out (organization_id, id)
    cross join lateral (
        select from post_job j
        where j.organization_id = out.organization_id and j.id = out.id and j.parts > 0 offset 0
    ) as followed
    order by organization_id, id
    on conflict do nothing
""")


async def note_due(connection: AsyncConnection, jobs: Iterable[Key], *, now: datetime) -> None:
    """Has the next parts of these jobs looked at, of those that have any. This transaction has locked the jobs."""
    keys = key_arrays(jobs, "ids")
    if keys["ids"]:
        await connection.execute(_NOTE, keys | {"now": now})
