"""The lines of accounts: posts that are due and cannot go at once wait here.

A line is the account's gate and those of its post jobs that are READY (IN_LINE), BLOCKED by what blocks the account, or
WAITING for its SEND_WINDOW.
Until the line has its turn, only the gate is looked at, no matter how many wait.
"""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from publisher_service.adapters.postgres.jobs import JOB_COLUMNS, LINE_LABELS, STANDS_IN_LINE, job_from
from publisher_service.adapters.postgres.keys import Key
from publisher_service.adapters.postgres.looked_at import crowded_arrays
from publisher_service.domain.claim import Lane
from publisher_service.domain.post_job import PostJob
from servicekit.pg.session import Session, Statement

# A look considers at most this many organizations of a provider.
_POOL = 500
_LABELS = ", ".join(f"'{label}'" for label in LINE_LABELS)

_NEXT_WAKE = Statement("""
    select clock_timestamp(), min(first.wake_time)
    from unnest(cast(:providers as text[])) as wanted (provider) cross join lateral (
        select g.wake_time from account_gate g
        where g.provider = wanted.provider and g.wake_time is not null
        order by g.wake_time limit 1
    ) as first
""")

# Walks the organizations that have lines in the order of their ids, from the one whose line has waited longest, and
# wraps around. An organization with many lines costs no more than one with a single line.
_LOCK_DUE_LINES = text("""
    with recursive organization as (
        select lane.provider, least(lane.room, :most) as room, oldest.organization_id as first, oldest.organization_id,
            oldest.wake_time, false as is_round, 1 as number
        from unnest(cast(:providers as text[]), cast(:rooms as integer[])) as lane (provider, room)
        cross join lateral (
            select g.organization_id, g.wake_time from account_gate g
            where g.provider = lane.provider and g.wake_time <= :now
            order by g.wake_time limit 1
        ) as oldest
        where lane.room > 0
        union all
        select o.provider, o.room, o.first, next.organization_id, next.wake_time, next.is_round, o.number + 1
        from organization o cross join lateral (
            select * from (
                (
                    select g.organization_id, g.wake_time, o.is_round from account_gate g
                    where g.provider = o.provider and g.wake_time is not null
                        and g.organization_id > o.organization_id and (not o.is_round or g.organization_id < o.first)
                    order by g.organization_id, g.wake_time limit 1
                )
                union all
                (
                    select g.organization_id, g.wake_time, true from account_gate g
                    where g.provider = o.provider and g.wake_time is not null
                        and g.organization_id < o.first and not o.is_round
                    order by g.organization_id, g.wake_time limit 1
                )
            ) as behind_or_round limit 1
        ) as next
        where o.number < :pool
    ),
    due as (
        select line.*, o.provider, o.room,
            row_number() over (partition by o.provider, o.organization_id order by line.wake_time) as turn
        from (
            select *, ceil(cast(room as numeric) / count(*) over (partition by provider)) as share
            from organization where wake_time <= :now and (provider, organization_id) not in (
                select * from unnest(cast(:crowded_providers as text[]), cast(:crowded as text[]))
            )
        ) as o
        cross join lateral (
            select g.organization_id, g.social_account_id, g.wake_time from account_gate g
            where g.provider = o.provider and g.organization_id = o.organization_id and g.wake_time <= :now
            order by g.wake_time limit cast(o.share as bigint)
        ) as line
    )
    select g.organization_id, g.social_account_id
    from (
        select *, row_number() over (partition by provider order by turn, wake_time) as place from due
    ) as chosen
    -- Lateral, so that both columns always are index conditions.
    cross join lateral (
        select gate.organization_id, gate.social_account_id from account_gate gate
        where gate.organization_id = chosen.organization_id and gate.social_account_id = chosen.social_account_id
            and gate.wake_time <= :now
        for no key update skip locked
    ) as g
    where chosen.place <= chosen.room
""")

_OF_HEAD = ", ".join(f"head.{name}" for name in JOB_COLUMNS.split(", "))

# A separate statement: its snapshot is younger than the locks, so it sees every job that came into the line before.
# Nearly always all posts of a line show the same, and one more look finds the first; only while they are relabeled is
# there more than one label to look for.
_HEADS = text(f"""
    select {_OF_HEAD}
    from unnest(cast(:organization_ids as text[]), cast(:account_ids as text[])) as a (organization_id, account_id)
    cross join lateral (
        -- What PublishNow sends goes before the line. Few posts ever do.
        (
            select true as goes_first, {JOB_COLUMNS} from post_job
            where post_job.organization_id = a.organization_id and post_job.social_account_id = a.account_id
                and publish_now and state_reason <> '' and {STANDS_IN_LINE} and called_run = run
                and state in ('READY', 'BLOCKED', 'WAITING') and schedule_time is not null and not_after is not null
            order by schedule_time, id limit 1
        )
        union all
        select false as goes_first, first.*
        from (
            select state_reason as label from post_job
            where post_job.organization_id = a.organization_id and post_job.social_account_id = a.account_id
                and {STANDS_IN_LINE}
            order by state_reason limit 1
        ) as least cross join (
            select state_reason as label from post_job
            where post_job.organization_id = a.organization_id and post_job.social_account_id = a.account_id
                and {STANDS_IN_LINE}
            order by state_reason desc limit 1
        ) as greatest cross join lateral unnest(
            case when least.label = greatest.label then array[least.label] else array[{_LABELS}] end
        ) as shown (label) cross join lateral (
            select {JOB_COLUMNS} from post_job
            where post_job.organization_id = a.organization_id and post_job.social_account_id = a.account_id
                and state_reason = shown.label and {STANDS_IN_LINE}
                -- A job without its times cannot be sent: the sweep reports it, and the line skips it.
                and state in ('READY', 'BLOCKED', 'WAITING') and schedule_time is not null and not_after is not null
            order by schedule_time, id limit 1
        ) as first
        order by goes_first desc, schedule_time, id limit 1
    ) as head
""")

_EMPTIED = text("""
    update account_gate g set lined = false, wake_time = null
    from unnest(cast(:organization_ids as text[]), cast(:account_ids as text[])) as a (organization_id, account_id)
    where g.organization_id = a.organization_id and g.social_account_id = a.account_id
""")


async def next_wake_time(session: Session, providers: Sequence[str]) -> tuple[datetime, datetime | None]:
    """Returns the database's time, and when the next line of these providers is to be looked at; None if none waits."""
    ((now, due),) = await session.fetch(_NEXT_WAKE, {"providers": list(providers)})
    return now, due


async def lock_due_lines(connection: AsyncConnection, lanes: Sequence[Lane], *, now: datetime, most: int) -> list[Key]:
    """Locks lines that have their turn, as many per provider as it has room for, fair over organizations."""
    names = {
        "providers": [lane.provider for lane in lanes],
        "rooms": [lane.room for lane in lanes],
        "now": now,
        "pool": _POOL,
        "most": most,
        **crowded_arrays(lanes),
    }
    return [(row.organization_id, row.social_account_id) for row in await connection.execute(_LOCK_DUE_LINES, names)]


async def first_in_lines(connection: AsyncConnection, accounts: Sequence[Key]) -> list[PostJob]:
    """Returns the first post in each line; an empty line has none."""
    return [job_from(row) for row in await connection.execute(_HEADS, _arrays(accounts))]


async def mark_lines_empty(connection: AsyncConnection, accounts: Sequence[Key]) -> None:
    """Records that these lines, whose gates this transaction has locked, are empty."""
    if accounts:
        await connection.execute(_EMPTIED, _arrays(accounts))


def _arrays(accounts: Sequence[Key]) -> dict[str, list[str]]:
    """Keeps the order: with too little room the claim takes the first ones."""
    return {
        "organization_ids": [organization_id for organization_id, _ in accounts],
        "account_ids": [account_id for _, account_id in accounts],
    }
