"""How many timers an organization may still make, without counting them each time.

The row says how much room there was when they were last counted, less what was made since. What has been deleted since,
or has fired for the last time, has left more room than it says: that is found when the room is used up, and they
are counted again. So the engine, and whoever deletes, has nothing to do with the row.
"""

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

_TAKE = text("update timer_room set room = room - 1 where organization_id = :organization_id and room > 0")
_LOCK = text("""
    insert into timer_room (organization_id, room) values (:organization_id, 0)
    on conflict (organization_id) do update set room = timer_room.room
    returning room
""")
# Within an index that has `finish_time`, past those that have finished: an index on the others would be written to
# whenever a timer fires, a tenth of all that work, for a question that is asked once in thousands of creations.
_COUNT = text("""
    select count(*) from (
        select from timer where organization_id = :organization_id and finish_time is null limit :limit
    ) as live
""")
_SET = text("update timer_room set room = :room where organization_id = :organization_id")


async def take(connection: AsyncConnection, organization_id: str, *, most: int) -> bool:
    """For a timer that this transaction has made; False: it is one too many.

    Until the transaction ends nobody else takes room, so what is counted is all that will be there.
    """
    of_organization = {"organization_id": organization_id}
    if (await connection.execute(_TAKE, of_organization)).rowcount:
        return True
    room: int = (await connection.execute(_LOCK, of_organization)).scalar_one()
    if room > 0:  # somebody has counted while this transaction waited
        left = room - 1
    else:
        counted = await connection.execute(_COUNT, of_organization | {"limit": most + 1})
        left = most - int(counted.scalar_one())
    if left >= 0:
        await connection.execute(_SET, of_organization | {"room": left})
    return left >= 0
