"""Statements on `account_queue`: what Schedule has announced about an account, and how far its queue is filled.

A row's lock serialises all changes to the slots of its account. Accounts are locked before slots everywhere, in the
order of their keys, so two writers never deadlock.
"""

import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from queue_service.domain.account import AccountKey, AccountQueue, AnnouncedSchedule
from queue_service.domain.frontier import EPOCH, Frontier
from queue_service.domain.late_policy import LateAction, LatePolicy
from servicekit.pg.database import Transaction
from servicekit.pg.session import Session, Statement
from servicekit.timestamps import from_micros, micros

# A new schedule, or new time zone data, gives other slot times, so the search starts from the beginning. During a
# rollout of Schedule, an older version of a schedule may arrive with newer time zone data.
_SAVE_SCHEDULES = text("""
    insert into account_queue as q (organization_id, social_account_id, schedule_version, time_zone, max_posts_per_day,
        enabled, tzdata_version, search_from, full_from, full_until, is_connected)
    select announced.*, :epoch, :epoch, :epoch, coalesce((
        select a.is_connected from social_account a
        where a.organization_id = announced.organization_id and a.id = announced.social_account_id
    ), true)
    from unnest(
        cast(:organization_ids as text[]), cast(:social_account_ids as text[]), cast(:versions as bigint[]),
        cast(:time_zones as text[]), cast(:caps as integer[]), cast(:enabled as boolean[]),
        cast(:tzdata_versions as text[])
    ) as announced (organization_id, social_account_id, version, time_zone, cap, enabled, tzdata_version)
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
        search_from = excluded.search_from, full_from = excluded.full_from, full_until = excluded.full_until,
        category_frontiers = '{}'
    where q.schedule_version < excluded.schedule_version or q.tzdata_version < excluded.tzdata_version
""")

_QUEUE = """
    q.organization_id, q.social_account_id, q.schedule_version, q.time_zone, q.max_posts_per_day, q.enabled,
    q.search_from, q.full_from, q.full_until, q.next_due_time, q.tzdata_version, q.slots_behind, q.last_sequence,
    q.arrangement, q.category_frontiers, q.pause_time, q.skip_next, q.skipped_times, q.late_action, q.late_grace,
    q.pace
"""
# LATERAL with FOR UPDATE, or OFFSET 0, leaves only a lookup of each key, however small the table was when the plan was
# made. The rows are locked in the order of the arrays.
_OF_KEYS = f"""
    select {_QUEUE}
    from unnest(cast(:organization_ids as text[]), cast(:social_account_ids as text[]))
        as u (organization_id, social_account_id)
    cross join lateral (
        select * from account_queue a
        where a.organization_id = u.organization_id and a.social_account_id = u.social_account_id %s
    ) as q
"""
_FIND = Statement(_OF_KEYS % "offset 0")
_LOCK = Statement(_OF_KEYS % "for update")
_ADD = text("""
    insert into account_queue (organization_id, social_account_id, schedule_version, time_zone, max_posts_per_day,
        enabled, search_from, full_from, full_until, is_connected)
    select u.*, 0, '', 0, false, :epoch, :epoch, :epoch, coalesce((
        select a.is_connected from social_account a
        where a.organization_id = u.organization_id and a.id = u.social_account_id
    ), true)
    from unnest(cast(:organization_ids as text[]), cast(:social_account_ids as text[]))
        as u (organization_id, social_account_id)
    on conflict do nothing
""")

# A LIMIT that is unknown to the planner makes it expect a single row, and so look up each key.
_SAVE_FRONTIERS = Statement("""
    update account_queue q set
        search_from = r.search_from, full_from = r.full_from, full_until = r.full_until
    from (
        select * from unnest(
            cast(:organization_ids as text[]), cast(:social_account_ids as text[]), cast(:search_from as timestamptz[]),
            cast(:full_from as timestamptz[]), cast(:full_until as timestamptz[])
        ) as r (organization_id, social_account_id, search_from, full_from, full_until)
        limit :accounts
    ) as r
    where q.organization_id = r.organization_id and q.social_account_id = r.social_account_id
""")
# Few accounts have weekly slots that are kept for a category: the others are spared the column.
_SAVE_CATEGORY_FRONTIERS = Statement("""
    update account_queue q set category_frontiers = r.category_frontiers
    from (
        select * from unnest(
            cast(:organization_ids as text[]), cast(:social_account_ids as text[]), cast(:category_frontiers as jsonb[])
        ) as r (organization_id, social_account_id, category_frontiers)
        limit :accounts
    ) as r
    where q.organization_id = r.organization_id and q.social_account_id = r.social_account_id
""")


_SAVE_SKIPS = Statement("""
    update account_queue q set
        skip_next = cast(:skip_next as boolean), skipped_times = cast(:skipped_times as timestamptz[]),
        arrangement = q.arrangement + cast(:changes as integer)
    where q.organization_id = :organization_id and q.social_account_id = :social_account_id
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


async def find_queues(session: Session, keys: Collection[AccountKey]) -> dict[AccountKey, AccountQueue]:
    return _account_queues(await session.fetch(_FIND, _names(keys)))


async def lock_or_add_queues(tx: Transaction, keys: Collection[AccountKey]) -> dict[AccountKey, AccountQueue]:
    """Locks the accounts' rows and inserts those that are missing."""
    queues = await lock_queues(tx, keys)
    if len(queues) < len(keys):
        await tx.connection.execute(_ADD, _names(keys) | {"epoch": EPOCH})
        queues = await lock_queues(tx, keys)
    return queues


async def lock_queues(tx: Transaction, keys: Collection[AccountKey]) -> dict[AccountKey, AccountQueue]:
    """Locks the existing rows of accounts."""
    return _account_queues(await tx.fetch(_LOCK, _names(keys))) if keys else {}


async def save_frontiers(tx: Transaction, queues: Mapping[AccountKey, AccountQueue]) -> None:
    """Stores the frontiers of locked accounts, that a search has reached or that times which are free again reopen."""
    if queues:
        await tx.execute(_SAVE_FRONTIERS, _names(queues) | _stretches(queues))
    if categorised := {key: queue for key, queue in queues.items() if queue.category_frontiers}:
        encoded = [_encoded(categorised[key]) for key in sorted(categorised)]
        names = _names(categorised) | {"category_frontiers": encoded, "accounts": len(categorised)}
        await tx.execute(_SAVE_CATEGORY_FRONTIERS, names)


async def save_skips(tx: Transaction, queues: Mapping[AccountKey, AccountQueue], *, changes: int = 0) -> None:
    """Stores what locked accounts leave empty, one by one: a skip is rare. `changes` counts those made by this call."""
    for (organization_id, account), queue in queues.items():
        await tx.execute(
            _SAVE_SKIPS,
            {
                "organization_id": organization_id,
                "social_account_id": account,
                "skip_next": queue.skip_next,
                "skipped_times": list(queue.skipped_times),
                "changes": changes,
            },
        )


def _names(keys: Iterable[AccountKey]) -> dict[str, Any]:
    """Returns the keys as arrays, in the order in which accounts are locked."""
    ordered = sorted(keys)
    return {
        "organization_ids": [organization for organization, _ in ordered],
        "social_account_ids": [account for _, account in ordered],
    }


def _stretches(queues: Mapping[AccountKey, AccountQueue]) -> dict[str, Any]:
    frontiers = [queues[key].frontier for key in sorted(queues)]
    return {
        "search_from": [frontier.search_from for frontier in frontiers],
        "full_from": [frontier.full_from for frontier in frontiers],
        "full_until": [frontier.full_until for frontier in frontiers],
        "accounts": len(frontiers),
    }


def _encoded(queue: AccountQueue) -> str:
    """Writes each category's frontier with the schedule that it is true of.

    The previous release saves a new schedule without resetting these frontiers.
    """
    return json.dumps(
        {
            category: (
                micros(frontier.search_from), micros(frontier.full_from), micros(frontier.full_until),
                queue.schedule_version, queue.tzdata_version,
            )
            for category, frontier in queue.category_frontiers.items()
        }
    )  # fmt: skip


def _category_frontiers(
    encoded: Mapping[str, Any], schedule_version: int, tzdata_version: str
) -> Mapping[str, Frontier]:
    return {
        category: Frontier(
            search_from=from_micros(search_from), full_from=from_micros(full_from), full_until=from_micros(full_until)
        )
        for category, (search_from, full_from, full_until, *of_schedule) in encoded.items()
        if of_schedule == [schedule_version, tzdata_version]
    }


def _account_queues(rows: Iterable[Any]) -> dict[AccountKey, AccountQueue]:
    return {
        (organization_id, account): AccountQueue(
            social_account_id=account,
            schedule_version=version,
            time_zone=time_zone,
            max_posts_per_day=cap,
            enabled=enabled,
            frontier=Frontier(search_from=search_from, full_from=full_from, full_until=full_until),
            next_due_time=next_due_time,
            tzdata_version=tzdata_version,
            slots_behind=slots_behind,
            last_sequence=last_sequence,
            arrangement=arrangement,
            category_frontiers=_category_frontiers(categories, version, tzdata_version),
            pause_time=pause_time,
            skip_next=skip_next,
            skipped_times=tuple(skipped_times),
            late_policy=LatePolicy(grace=late_grace, action=LateAction(late_action)),
            pace=pace,
        )
        for (
            organization_id, account, version, time_zone, cap, enabled, search_from, full_from, full_until,
            next_due_time, tzdata_version, slots_behind, last_sequence, arrangement, categories, pause_time, skip_next,
            skipped_times, late_action, late_grace, pace,
        ) in rows
    }  # fmt: skip
