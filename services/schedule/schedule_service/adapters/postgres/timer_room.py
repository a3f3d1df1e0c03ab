"""The number of timers that an organization may still create, without counting them each time.

The row holds the room at the last count, minus the timers created since. The true room may be larger, because timers
have been deleted or finished. The timers are counted again when the room is used up, so neither the engine nor a
deletion has to update the row.
"""

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

_TAKE = text("update timer_room set room = room - 1 where organization_id = :organization_id and room > 0")
_LOCK = text("""
    insert into timer_room (organization_id, room) values (:organization_id, 0)
    on conflict (organization_id) do update set room = timer_room.room
    returning room
""")
# Scans an index that includes `finish_time` and skips finished timers. An index on unfinished timers alone would be
# written whenever a timer fires, which adds a tenth to that work, for a count that is needed once in thousands of
# creations.
_COUNT = text("""
    select count(*) from (
        select from timer where organization_id = :organization_id and finish_time is null limit :limit
    ) as live
""")
_SET = text("update timer_room set room = :room where organization_id = :organization_id")


async def take_room(connection: AsyncConnection, organization_id: str, *, most: int) -> bool:
    """Takes room for a timer that this transaction has created. Returns False if that timer exceeds the limit.

    No other transaction can take room before this one ends, so the count includes every timer.
    """
    of_organization = {"organization_id": organization_id}
    if (await connection.execute(_TAKE, of_organization)).rowcount:
        return True
    room: int = (await connection.execute(_LOCK, of_organization)).scalar_one()
    if room > 0:  # another transaction counted while this one waited
        left = room - 1
    else:
        counted = await connection.execute(_COUNT, of_organization | {"limit": most + 1})
        left = most - int(counted.scalar_one())
    if left >= 0:
        await connection.execute(_SET, of_organization | {"room": left})
    return left >= 0
