"""The queues of accounts in PostgreSQL: one function per question."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from queue_service.domain.account import AccountQueue, Connection, ToldSchedule
from queue_service.domain.frontier import EPOCH, Frontier

# Another schedule, and another law, has other slot times, so nothing is known of them any more. An older version may
# tell of a newer law, while Schedule is being replaced.
_SAVE_SCHEDULES = text("""
    insert into account_queue as q (organization_id, social_account_id, schedule_version, time_zone, max_posts_per_day,
        enabled, tzdata_version, search_from, full_from, full_until)
    select told.*, :epoch, :epoch, :epoch from unnest(
        cast(:organization_ids as text[]), cast(:social_account_ids as text[]), cast(:versions as bigint[]),
        cast(:time_zones as text[]), cast(:caps as integer[]), cast(:enabled as boolean[]),
        cast(:tzdata_versions as text[])
    ) as told
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

_SAVE_CONNECTIONS = text("""
    insert into social_account as a (organization_id, id, version, is_connected)
    select * from unnest(
        cast(:organization_ids as text[]), cast(:ids as text[]), cast(:versions as bigint[]),
        cast(:are_connected as boolean[])
    )
    on conflict (organization_id, id) do update set version = excluded.version, is_connected = excluded.is_connected
    where a.version < excluded.version
""")
_CONNECTED = text("""
    select id from social_account
    where organization_id = :organization_id and id = any(cast(:ids as text[])) and is_connected
""")

_ACCOUNT = """
    select organization_id, social_account_id, schedule_version, time_zone, max_posts_per_day, enabled, search_from,
        full_from, full_until, next_due_time, tzdata_version, slots_behind
    from account_queue
    where organization_id = :organization_id and social_account_id = any(cast(:social_account_ids as text[]))
    order by social_account_id
"""
_FIND_ACCOUNTS = text(_ACCOUNT)
_LOCK_ACCOUNTS = text(f"{_ACCOUNT} for update")
_ADD_ACCOUNTS = text("""
    insert into account_queue (organization_id, social_account_id, schedule_version, time_zone, max_posts_per_day,
        enabled, search_from, full_from, full_until)
    select :organization_id, id, 0, '', 0, false, :epoch, :epoch, :epoch
    from unnest(cast(:social_account_ids as text[])) as id
    on conflict do nothing
""")
# Arrays are looked up in, not joined with: a join might be planned as a walk over all accounts.
_SAVE_FRONTIERS = text("""
    update account_queue set
        search_from = (cast(:search_from as timestamptz[]))[array_position(cast(:ids as text[]), social_account_id)],
        full_from = (cast(:full_from as timestamptz[]))[array_position(cast(:ids as text[]), social_account_id)],
        full_until = (cast(:full_until as timestamptz[]))[array_position(cast(:ids as text[]), social_account_id)]
    where organization_id = :organization_id and social_account_id = any(cast(:ids as text[]))
""")


async def save_schedules(connection: AsyncConnection, told: Iterable[ToldSchedule]) -> None:
    """As `save_drafts`."""
    ordered = sorted(told, key=lambda each: (each.organization_id, each.social_account_id))
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


async def save_connections(connection: AsyncConnection, announced: Iterable[Connection]) -> None:
    """Each account once, in the order of their keys."""
    ordered = sorted(announced, key=lambda each: (each.organization_id, each.social_account_id))
    await connection.execute(
        _SAVE_CONNECTIONS,
        {
            "organization_ids": [each.organization_id for each in ordered],
            "ids": [each.social_account_id for each in ordered],
            "versions": [each.version for each in ordered],
            "are_connected": [each.is_connected for each in ordered],
        },
    )


async def find_connected(connection: AsyncConnection, organization_id: str, accounts: Sequence[str]) -> frozenset[str]:
    """Those of the accounts that can post, as far as Publisher has announced it."""
    names = {"organization_id": organization_id, "ids": list(accounts)}
    return frozenset((await connection.execute(_CONNECTED, names)).scalars())


async def find_accounts(
    connection: AsyncConnection, organization_id: str, social_account_ids: Sequence[str]
) -> dict[str, AccountQueue]:
    names = {"organization_id": organization_id, "social_account_ids": list(social_account_ids)}
    return {row.social_account_id: account_queue(row) for row in await connection.execute(_FIND_ACCOUNTS, names)}


async def lock_accounts(
    connection: AsyncConnection, organization_id: str, social_account_ids: Sequence[str]
) -> dict[str, AccountQueue]:
    """Locks the accounts' rows in the order of their ids, and makes those that are missing."""
    names = {"organization_id": organization_id, "social_account_ids": sorted(social_account_ids)}
    rows = (await connection.execute(_LOCK_ACCOUNTS, names)).all()
    if len(rows) < len(social_account_ids):
        await connection.execute(_ADD_ACCOUNTS, names | {"epoch": EPOCH})
        rows = (await connection.execute(_LOCK_ACCOUNTS, names)).all()
    return {row.social_account_id: account_queue(row) for row in rows}


async def save_frontiers(connection: AsyncConnection, organization_id: str, frontiers: Mapping[str, Frontier]) -> None:
    """By account; their rows are locked."""
    await connection.execute(
        _SAVE_FRONTIERS,
        {
            "organization_id": organization_id,
            "ids": list(frontiers),
            "search_from": [frontier.search_from for frontier in frontiers.values()],
            "full_from": [frontier.full_from for frontier in frontiers.values()],
            "full_until": [frontier.full_until for frontier in frontiers.values()],
        },
    )


def account_queue(row: Row[Any]) -> AccountQueue:
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
