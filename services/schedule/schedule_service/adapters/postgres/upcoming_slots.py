"""The SQL of the slots that lie ahead."""

from collections.abc import AsyncGenerator, Sequence
from datetime import datetime

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from schedule_service.domain.calendars.upcoming_slot import MOST_COUNTED, Meant, SlotsAhead, UpcomingSlot

_SAVE = text("""
    insert into upcoming_slot as known (organization_id, slot_id, social_account_id, revision, schedule_time, time_zone,
        nominal_local_time)
    select * from unnest(cast(:organization_ids as text[]), cast(:slot_ids as text[]),
        cast(:social_account_ids as text[]), cast(:revisions as bigint[]), cast(:schedule_times as timestamptz[]),
        cast(:time_zones as text[]), cast(:nominals as timestamp[]))
    on conflict (organization_id, slot_id) do update set social_account_id = excluded.social_account_id,
        revision = excluded.revision, schedule_time = excluded.schedule_time, time_zone = excluded.time_zone,
        nominal_local_time = excluded.nominal_local_time
    where known.revision < excluded.revision
""")
_AHEAD = text("""
    select (
        select count(*) from (
            select from upcoming_slot
            where organization_id = :organization_id and social_account_id = :social_account_id
                and schedule_time > :now
            limit :most
        ) as ahead
    ) as slots, (
        select schedule_time from upcoming_slot
        where organization_id = :organization_id and social_account_id = :social_account_id and schedule_time > :now
        order by schedule_time desc limit 1
    ) as last_time
""")
# Rows are compared as a whole, because a span by itself would be looked up among the slots of all accounts.
_ANY_WITHIN = text("""
    select exists (
        select from unnest(cast(:starts as timestamptz[]), cast(:ends as timestamptz[])) as span (starts, ends)
        cross join lateral (
            select from upcoming_slot
            where (organization_id, social_account_id, schedule_time)
                    >= (:organization_id, :social_account_id, span.starts)
                and (organization_id, social_account_id, schedule_time)
                    < (:organization_id, :social_account_id, span.ends)
            limit 1
        ) as slot
    )
""")
_MEANT = text("""
    select schedule_time, time_zone, nominal_local_time from upcoming_slot
    where (organization_id, social_account_id, schedule_time) > (:organization_id, :social_account_id, :after)
        and (organization_id, social_account_id, schedule_time) < (:organization_id, :social_account_id, 'infinity')
        and nominal_local_time is not null
    order by organization_id, social_account_id, schedule_time fetch first :size rows with ties
""")
_AT_ONCE = 500
# What somebody holds is news, and no longer past.
_FORGET = text("""
    delete from upcoming_slot where ctid = any(array(
        select ctid from upcoming_slot where schedule_time < :cutoff
        order by schedule_time limit :limit for update skip locked
    ))
""")


async def save(connection: AsyncConnection, slots: Sequence[UpcomingSlot]) -> None:
    """Each slot once, in the order of their keys: two writers never wait for each other in a circle."""
    await connection.execute(
        _SAVE,
        {
            "organization_ids": [slot.organization_id for slot in slots],
            "slot_ids": [slot.slot_id for slot in slots],
            "social_account_ids": [slot.social_account_id for slot in slots],
            "revisions": [slot.revision for slot in slots],
            "schedule_times": [slot.schedule_time for slot in slots],
            "time_zones": [slot.time_zone for slot in slots],
            "nominals": [slot.nominal for slot in slots],
        },
    )


async def ahead(
    connection: AsyncConnection, organization_id: str, social_account_id: str, *, now: datetime
) -> SlotsAhead:
    names = {
        "organization_id": organization_id,
        "social_account_id": social_account_id,
        "now": now,
        "most": MOST_COUNTED,
    }
    row = (await connection.execute(_AHEAD, names)).one()
    return SlotsAhead(count=row.slots, last_time=row.last_time)


async def any_within(
    connection: AsyncConnection,
    organization_id: str,
    social_account_id: str,
    spans: Sequence[tuple[datetime, datetime]],
) -> bool:
    """Whether a slot stands in one of the spans, each with its start and without its end."""
    names = {
        "organization_id": organization_id,
        "social_account_id": social_account_id,
        "starts": [start for start, _ in spans],
        "ends": [end for _, end in spans],
    }
    return bool((await connection.execute(_ANY_WITHIN, names)).scalar_one())


async def meant(
    connection: AsyncConnection, organization_id: str, social_account_id: str, *, after: datetime
) -> AsyncGenerator[list[Meant], None]:
    """The slots of an account that have a time on the wall to keep, in the order of their instants, some at a time."""
    names = {"organization_id": organization_id, "social_account_id": social_account_id, "size": _AT_ONCE}
    while slots := [Meant._make(row) for row in await connection.execute(_MEANT, names | {"after": after})]:
        yield slots
        after = slots[-1].schedule_time


async def forget(connection: AsyncConnection, *, cutoff: datetime, limit: int) -> int:
    """Deletes slots whose time lies before `cutoff`, the oldest first; returns how many."""
    return (await connection.execute(_FORGET, {"cutoff": cutoff, "limit": limit})).rowcount
