"""The SQL of upcoming slots, as Queue announced them."""

from collections.abc import AsyncGenerator, Sequence
from datetime import datetime

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from schedule_service.domain.calendars.upcoming_slot import MOST_COUNTED, NominalSlot, SlotsAhead, UpcomingSlot
from servicekit.pg.database import Transaction
from servicekit.pg.session import Statement

_SAVE = Statement("""
    insert into upcoming_slot as known (organization_id, slot_id, social_account_id, revision, schedule_time, time_zone,
        nominal_local_time)
    select * from unnest(cast(:organization_ids as text[]), cast(:slot_ids as text[]),
        cast(:social_account_ids as text[]), cast(:revisions as bigint[]), cast(:schedule_times as timestamptz[]),
        cast(:time_zones as text[]), cast(:nominals as timestamp[]))
    on conflict (organization_id, slot_id) do update set social_account_id = excluded.social_account_id,
        revision = excluded.revision, schedule_time = excluded.schedule_time, time_zone = excluded.time_zone,
        nominal_local_time = excluded.nominal_local_time
    where known.revision < excluded.revision
        or (known.revision = excluded.revision and known.social_account_id <> '' and excluded.social_account_id = '')
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
# Compares whole rows, because a span alone would be searched among the slots of all accounts.
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
_WITH_NOMINAL_TIMES = text("""
    select schedule_time, time_zone, nominal_local_time from upcoming_slot
    where (organization_id, social_account_id, schedule_time) > (:organization_id, :social_account_id, :after)
        and (organization_id, social_account_id, schedule_time) < (:organization_id, :social_account_id, 'infinity')
        and nominal_local_time is not null
    order by organization_id, social_account_id, schedule_time fetch first :size rows with ties
""")
_AT_ONCE = 500
# Skips locked rows: a newer event is changing them, and may move their slot into the future.
_DELETE_PAST = text("""
    delete from upcoming_slot where ctid = any(array(
        select ctid from upcoming_slot where schedule_time < :cutoff
        order by schedule_time limit :limit for update skip locked
    ))
""")


async def save_slots(tx: Transaction, slots: Sequence[UpcomingSlot]) -> None:
    """Saves slots, each given once, in the order of their keys, so that two writers cannot deadlock.

    A canceled slot counts for no account, but its row stays until its time: older events may follow.
    """
    await tx.execute(
        _SAVE,
        {
            "organization_ids": [slot.organization_id for slot in slots],
            "slot_ids": [slot.slot_id for slot in slots],
            "social_account_ids": ["" if slot.is_canceled else slot.social_account_id for slot in slots],
            "revisions": [slot.revision for slot in slots],
            "schedule_times": [slot.schedule_time for slot in slots],
            "time_zones": [slot.time_zone for slot in slots],
            "nominals": [slot.nominal for slot in slots],
        },
    )


async def find_slots_ahead(
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


async def has_slots_within(
    connection: AsyncConnection,
    organization_id: str,
    social_account_id: str,
    spans: Sequence[tuple[datetime, datetime]],
) -> bool:
    """Returns whether a slot lies in one of the spans. Each includes its start, but not its end."""
    names = {
        "organization_id": organization_id,
        "social_account_id": social_account_id,
        "starts": [start for start, _ in spans],
        "ends": [end for _, end in spans],
    }
    return bool((await connection.execute(_ANY_WITHIN, names)).scalar_one())


async def list_nominal_slots(
    connection: AsyncConnection, organization_id: str, social_account_id: str, *, after: datetime
) -> AsyncGenerator[list[NominalSlot], None]:
    """Yields, in batches and in order of time, the slots of an account that have to keep a wall-clock time."""
    names = {"organization_id": organization_id, "social_account_id": social_account_id, "size": _AT_ONCE}
    while slots := [
        NominalSlot._make(row) for row in await connection.execute(_WITH_NOMINAL_TIMES, names | {"after": after})
    ]:
        yield slots
        after = slots[-1].schedule_time


async def delete_past_slots(connection: AsyncConnection, *, cutoff: datetime, limit: int) -> int:
    """Deletes slots whose time lies before `cutoff`, the oldest first; returns how many."""
    return (await connection.execute(_DELETE_PAST, {"cutoff": cutoff, "limit": limit})).rowcount
