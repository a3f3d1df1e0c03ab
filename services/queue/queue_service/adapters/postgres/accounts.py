"""Statements on `account_queue`: what Schedule has announced about an account, and how far its queue is filled.

A row's lock serialises all changes to the slots of its account. Accounts are locked before slots everywhere, in the
order of their keys, so two writers never deadlock.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from queue_service.domain.account import AccountQueue, AnnouncedSchedule
from queue_service.domain.frontier import EPOCH, Frontier

# A new schedule, or new time zone data, gives other slot times, so the search starts from the beginning. During a
# rollout of Schedule, an older version of a schedule may arrive with newer time zone data.
_SAVE_SCHEDULES = text("""
    insert into account_queue as q (organization_id, social_account_id, schedule_version, time_zone, max_posts_per_day,
        enabled, tzdata_version, search_from, full_from, full_until)
    select announced.*, :epoch, :epoch, :epoch from unnest(
        cast(:organization_ids as text[]), cast(:social_account_ids as text[]), cast(:versions as bigint[]),
        cast(:time_zones as text[]), cast(:caps as integer[]), cast(:enabled as boolean[]),
        cast(:tzdata_versions as text[])
    ) as announced
    on conflict (organization_id, social_account_id) do update set
        schedule_version = greatest(q.schedule_version, excluded.schedule_version),
        time_zone = case when q.schedule_version < excluded.schedule_version then excluded.time_zone
            else q.time_zone end,
        max_posts_per_day = case when q.schedule_version < excluded.schedule_version then excluded.max_posts_per_day
            else q.max_posts_per_day end,
        enabled = case when q.schedule_version < excluded.schedule_version then excluded.enabled else q.enabled end,
        tzdata_version = greatest(q.tzdata_version, excluded.tzdata_version),
        slots_behind = q.slots_behind
            or (q.tzdata_version < excluded.tzdata_version and q.next_due_time is not null),
        search_from = excluded.search_from, full_from = excluded.full_from, full_until = excluded.full_until
    where q.schedule_version < excluded.schedule_version or q.tzdata_version < excluded.tzdata_version
""")

_QUEUE = """
    q.organization_id, q.social_account_id, q.schedule_version, q.time_zone, q.max_posts_per_day, q.enabled,
    q.search_from, q.full_from, q.full_until, q.next_due_time, q.tzdata_version, q.slots_behind
"""
_OF_ORGANIZATION = f"""
    select {_QUEUE} from account_queue q
    where q.organization_id = :organization_id and q.social_account_id = any(cast(:social_account_ids as text[]))
    order by q.social_account_id
"""
_FIND = text(_OF_ORGANIZATION)
_LOCK_OF_ORGANIZATION = text(f"{_OF_ORGANIZATION} for update")
_ADD = text("""
    insert into account_queue (organization_id, social_account_id, schedule_version, time_zone, max_posts_per_day,
        enabled, search_from, full_from, full_until)
    select :organization_id, id, 0, '', 0, false, :epoch, :epoch, :epoch
    from unnest(cast(:social_account_ids as text[])) as id
    on conflict do nothing
""")
# Joins, because the keys belong to many organizations. Only pinned plans make this a lookup of each key.
_LOCK = text(f"""
    select {_QUEUE}
    from unnest(cast(:organization_ids as text[]), cast(:social_account_ids as text[]))
        as u (organization_id, social_account_id)
    join account_queue q
        on q.organization_id = u.organization_id and q.social_account_id = u.social_account_id
    order by q.organization_id, q.social_account_id
    for update of q
""")

# An RPC does not pin plans, so these statements use `= any(...)`: a join might be planned as a scan of all accounts.
_ADVANCE_FRONTIERS = text("""
    update account_queue set
        search_from = (cast(:search_from as timestamptz[]))[array_position(cast(:ids as text[]), social_account_id)],
        full_from = (cast(:full_from as timestamptz[]))[array_position(cast(:ids as text[]), social_account_id)],
        full_until = (cast(:full_until as timestamptz[]))[array_position(cast(:ids as text[]), social_account_id)]
    where organization_id = :organization_id and social_account_id = any(cast(:ids as text[]))
""")
_REOPEN_FRONTIERS = text("""
    update account_queue q set
        search_from = r.search_from, full_from = r.full_from, full_until = r.full_until
    from unnest(
        cast(:organization_ids as text[]), cast(:social_account_ids as text[]), cast(:search_from as timestamptz[]),
        cast(:full_from as timestamptz[]), cast(:full_until as timestamptz[])
    ) as r (organization_id, social_account_id, search_from, full_from, full_until)
    where q.organization_id = r.organization_id and q.social_account_id = r.social_account_id
""")


async def save_schedules(connection: AsyncConnection, announced: Iterable[AnnouncedSchedule]) -> None:
    """Saves schedules that are newer than what is stored. Each account occurs once."""
    ordered = sorted(announced, key=lambda each: (each.organization_id, each.social_account_id))
    await connection.execute(
        _SAVE_SCHEDULES,
        {
            "organization_ids": [each.organization_id for each in ordered],
            "social_account_ids": [each.social_account_id for each in ordered],
            "versions": [each.version for each in ordered],
            "time_zones": [each.time_zone for each in ordered],
            "caps": [each.max_posts_per_day for each in ordered],
            "enabled": [each.enabled for each in ordered],
            "tzdata_versions": [each.tzdata_version for each in ordered],
            "epoch": EPOCH,
        },
    )


async def find_queues(
    connection: AsyncConnection, organization_id: str, social_account_ids: Sequence[str]
) -> dict[str, AccountQueue]:
    names = {"organization_id": organization_id, "social_account_ids": list(social_account_ids)}
    return {row.social_account_id: _account_queue(row) for row in await connection.execute(_FIND, names)}


async def lock_or_add_queues(
    connection: AsyncConnection, organization_id: str, social_account_ids: Sequence[str]
) -> dict[str, AccountQueue]:
    """Locks the accounts' rows and inserts those that are missing."""
    names = {"organization_id": organization_id, "social_account_ids": sorted(social_account_ids)}
    rows = (await connection.execute(_LOCK_OF_ORGANIZATION, names)).all()
    if len(rows) < len(social_account_ids):
        await connection.execute(_ADD, names | {"epoch": EPOCH})
        rows = (await connection.execute(_LOCK_OF_ORGANIZATION, names)).all()
    return {row.social_account_id: _account_queue(row) for row in rows}


async def lock_queues(
    connection: AsyncConnection, keys: Collection[tuple[str, str]]
) -> dict[tuple[str, str], AccountQueue]:
    """Locks the existing rows of accounts, given by organization and id. The transaction has pinned its plans."""
    if not keys:
        return {}
    ordered = sorted(keys)
    names = {
        "organization_ids": [organization for organization, _ in ordered],
        "social_account_ids": [account for _, account in ordered],
    }
    result = await connection.execute(_LOCK, names)
    return {(row.organization_id, row.social_account_id): _account_queue(row) for row in result}


async def advance_frontiers(
    connection: AsyncConnection, organization_id: str, frontiers: Mapping[str, Frontier]
) -> None:
    """Stores the frontiers that a search has reached, by account. The rows are locked."""
    names = {"organization_id": organization_id, "ids": list(frontiers)}
    await connection.execute(_ADVANCE_FRONTIERS, names | _stretches(frontiers.values()))


async def reopen_frontiers(connection: AsyncConnection, frontiers: Mapping[tuple[str, str], Frontier]) -> None:
    """Stores frontiers that were moved back because times are free again, by organization and account.

    The rows are locked, and the transaction has pinned its plans.
    """
    if not frontiers:
        return
    names = {
        "organization_ids": [organization for organization, _ in frontiers],
        "social_account_ids": [account for _, account in frontiers],
    }
    await connection.execute(_REOPEN_FRONTIERS, names | _stretches(frontiers.values()))


def _stretches(frontiers: Collection[Frontier]) -> dict[str, Any]:
    return {
        "search_from": [frontier.search_from for frontier in frontiers],
        "full_from": [frontier.full_from for frontier in frontiers],
        "full_until": [frontier.full_until for frontier in frontiers],
    }


def _account_queue(row: Row[Any]) -> AccountQueue:
    return AccountQueue(
        social_account_id=row.social_account_id,
        schedule_version=row.schedule_version,
        time_zone=row.time_zone,
        max_posts_per_day=row.max_posts_per_day,
        enabled=row.enabled,
        frontier=Frontier(search_from=row.search_from, full_from=row.full_from, full_until=row.full_until),
        next_due_time=row.next_due_time,
        tzdata_version=row.tzdata_version,
        slots_behind=row.slots_behind,
    )
