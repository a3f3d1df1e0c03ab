"""Parked posts: those that a limit of their account keeps back, out of its line, so that others pass.

`parked_line` has one row for each account and limit, no matter how many posts are parked there. It says when the first
of them get back into the line. All who write it hold the lock of the account's gate.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from channels import Action
from publisher_service.adapters.postgres.jobs import JOB_COLUMNS, STANDS_IN_LINE, job_from
from publisher_service.adapters.postgres.keys import Key
from publisher_service.domain.limits import channels_of, closed_channel, offer_of
from publisher_service.domain.post_job import PostJob
from servicekit.pg.session import Session, Statement

_PARK = text("""
    insert into parked_line as p (organization_id, social_account_id, parked_on, wake_time)
    select organization_id, account_id, parked_on, min(wake_time)
    from unnest(
        cast(:organization_ids as text[]), cast(:account_ids as text[]), cast(:parked_ons as text[]),
        cast(:wake_times as timestamptz[])
    ) as new (organization_id, account_id, parked_on, wake_time)
    group by 1, 2, 3 order by 1, 2, 3
    on conflict (organization_id, social_account_id, parked_on) do update set
        wake_time = least(p.wake_time, excluded.wake_time)
""")

IS_ONE_PARKED: Final = "exists (select from parked_line where wake_time <= :now)"
_IS_ONE_PARKED = Statement(f"select {IS_ONE_PARKED}")
# A look considers at most this many organizations.
_POOL = 500
# As for lines: walks the organizations in the order of their ids, from the one whose limit has been over longest, and
# wraps around. All accounts of an organization may have a new day at once, and others must not wait for them.
_DUE = text("""
    with recursive organization as (
        (
            select organization_id as first, organization_id, wake_time, false as is_round, 1 as number
            from parked_line where wake_time <= :now
            order by wake_time limit 1
        )
        union all
        select o.first, next.organization_id, next.wake_time, next.is_round, o.number + 1
        from organization o cross join lateral (
            select * from (
                (
                    select p.organization_id, p.wake_time, o.is_round from parked_line p
                    where p.organization_id > o.organization_id and (not o.is_round or p.organization_id < o.first)
                    order by p.organization_id, p.wake_time limit 1
                )
                union all
                (
                    select p.organization_id, p.wake_time, true from parked_line p
                    where p.organization_id < o.first and not o.is_round
                    order by p.organization_id, p.wake_time limit 1
                )
            ) as behind_or_round limit 1
        ) as next
        where o.number < :pool
    ),
    due as (
        select line.*, row_number() over (partition by line.organization_id order by line.wake_time) as turn
        from (
            select organization_id, ceil(cast(:limit as numeric) / count(*) over ()) as share
            from organization where wake_time <= :now
        ) as o
        cross join lateral (
            select p.organization_id, p.social_account_id, p.parked_on, p.wake_time from parked_line p
            where p.organization_id = o.organization_id and p.wake_time <= :now
            order by p.wake_time limit cast(o.share as bigint)
        ) as line
    )
    select organization_id, social_account_id, parked_on from due order by turn, wake_time limit :limit
""")
# A claim that holds the gate may be about to wait for a parked line: skipped, it is found again.
_LOCK_GATE = text("""
    select g.limited, g.last_post_time + g.post_spacing as posts_from, g.last_outreach_time, g.post_spacing,
        cast(g.closed_channels ->> cast(:channel as text) as timestamptz) as closed_until
    from account_gate g
    where g.organization_id = :organization_id and g.social_account_id = :account_id
    for no key update skip locked
""")
_USE = text("""
    select a.day_end, a.cap, a.used, coalesce(a.day_start <= :now and :now < a.day_end, false) as is_today
    from account_action a
    where a.organization_id = :organization_id and a.social_account_id = :account_id and a.action = :action
""")
_FIRST = text(f"""
    select {JOB_COLUMNS} from post_job
    where organization_id = :organization_id and social_account_id = :account_id and parked_on = :parked_on
        and parked_on <> ''
    order by schedule_time, id limit :limit for update skip locked
""")
_IS_ANY = text("""
    select exists (
        select from post_job
        where organization_id = :organization_id and social_account_id = :account_id and parked_on = :parked_on
            and parked_on <> ''
    )
""")
_WAKE_AT = text("""
    update parked_line set wake_time = :wake_time
    where organization_id = :organization_id and social_account_id = :account_id and parked_on = :parked_on
""")
_DROP = text("""
    delete from parked_line
    where organization_id = :organization_id and social_account_id = :account_id and parked_on = :parked_on
""")
# Those of the action that have left the cap behind, and wait in line or for their spacing.
_BEHIND_CAP = text(f"""
    select count(*) from (
        (
            select from post_job
            where organization_id = :organization_id and social_account_id = :account_id
                and parked_on = :spacing and parked_on <> '' and channel = any(cast(:channels as text[]))
            order by schedule_time, id limit :limit
        )
        union all
        (
            select from post_job
            where organization_id = :organization_id and social_account_id = :account_id and {STANDS_IN_LINE}
                and state_reason = 'IN_LINE' and channel = any(cast(:channels as text[]))
            order by schedule_time, id limit :limit
        )
    ) as waiting
""")
_LINE_UP = text("""
    update account_gate g set lined = true,
        -- The posts come back as if the line moved.
        relabel = g.relabel or not g.connected or g.frozen <> '' or g.held or not g.enabled,
        wake_time = case
            when g.connected and not g.held and g.enabled and g.open_job_id is null
                then greatest(cast(:now as timestamptz), g.resume_time)
        end
    where g.organization_id = :organization_id and g.social_account_id = :account_id
""")
_BEHIND_HEAD = text(f"""
    select {JOB_COLUMNS} from post_job
    where organization_id = :organization_id and social_account_id = :account_id and {STANDS_IN_LINE}
        and state_reason = 'IN_LINE' and state = 'READY' and schedule_time is not null and not_after is not null
    order by schedule_time, id limit :limit for update skip locked
""")


@dataclass(frozen=True, slots=True, kw_only=True)
class ParkedLine:
    """The posts of an account that are parked on one limit."""

    organization_id: str
    account_id: str
    parked_on: str

    @property
    def account(self) -> Key:
        return self.organization_id, self.account_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """The ends of the last sends of an account, the least time between two of its posts, and when a channel opens."""

    posts_from: datetime | None
    last_outreach_time: datetime | None
    post_spacing: timedelta | None
    closed_until: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """The daily cap of an account itself, and how much of its cap is used."""

    cap: int | None
    used: int
    day_end: datetime | None
    # Otherwise the day has to be computed first.
    is_today: bool


async def park(connection: AsyncConnection, jobs: Iterable[PostJob]) -> None:
    """Notes when the posts among these that are parked are looked at. The gates of their accounts are locked."""
    await _wake_no_later(
        connection, [(job.account_key, job.parked_on, job.expected_time) for job in jobs if _has_look(job)]
    )


async def is_one_parked(session: Session, *, now: datetime) -> bool:
    """Returns whether it is time to look at a parked line."""
    found: bool = await session.fetch_value(_IS_ONE_PARKED, {"now": now})
    return found


async def due_parked_lines(connection: AsyncConnection, *, now: datetime, limit: int) -> Sequence[ParkedLine]:
    """Returns limits that are over, in turn over organizations."""
    rows = await connection.execute(_DUE, {"now": now, "limit": limit, "pool": _POOL})
    return [
        ParkedLine(organization_id=row.organization_id, account_id=row.social_account_id, parked_on=row.parked_on)
        for row in rows
    ]


async def lock_parked_gate(connection: AsyncConnection, line: ParkedLine) -> Pace | None:
    """Locks the gate of the account; None if another transaction has it."""
    names = _account(line) | {"channel": closed_channel(line.parked_on)}
    row = (await connection.execute(_LOCK_GATE, names)).one_or_none()
    if row is None:
        return None
    return Pace(
        posts_from=row.posts_from,
        last_outreach_time=row.last_outreach_time,
        post_spacing=row.post_spacing,
        closed_until=row.closed_until,
    )


async def use_of(connection: AsyncConnection, line: ParkedLine, action: Action, *, now: datetime) -> Use | None:
    """Returns the use of the action's cap; None if no claim has asked for it yet."""
    row = (await connection.execute(_USE, _account(line) | {"action": action, "now": now})).one_or_none()
    return None if row is None else Use(cap=row.cap, used=row.used, day_end=row.day_end, is_today=row.is_today)


async def first_parked(connection: AsyncConnection, line: ParkedLine, *, limit: int) -> list[PostJob]:
    """Locks the first posts that are parked there, skipping those that are locked."""
    rows = await connection.execute(_FIRST, _names(line) | {"limit": limit})
    return [job_from(row) for row in rows]


async def is_any_parked(connection: AsyncConnection, line: ParkedLine) -> bool:
    found: bool = (await connection.execute(_IS_ANY, _names(line))).scalar_one()
    return found


async def behind_cap(connection: AsyncConnection, line: ParkedLine, action: Action, *, spacing: str, limit: int) -> int:
    """Counts the posts of the action that wait for a turn or for their spacing, at most twice the limit."""
    names = _account(line) | {"channels": list(channels_of(action)), "spacing": spacing, "limit": limit}
    counted: int = (await connection.execute(_BEHIND_CAP, names)).scalar_one()
    return counted


async def wake_offered(connection: AsyncConnection, account: Key, channels: Iterable[str], *, now: datetime) -> None:
    """Has the posts looked at that wait for these channels, which the account offers now. Its gate is locked."""
    waiting = [(account, offer_of(channel), now) for channel in sorted(channels)]
    await _wake_no_later(connection, waiting)


async def wake_at(connection: AsyncConnection, line: ParkedLine, time: datetime) -> None:
    await connection.execute(_WAKE_AT, _names(line) | {"wake_time": time})


async def drop_parked_line(connection: AsyncConnection, line: ParkedLine) -> None:
    await connection.execute(_DROP, _names(line))


async def line_up_again(connection: AsyncConnection, line: ParkedLine, *, now: datetime) -> None:
    """Has the line of the account looked at: posts have come back into it."""
    await connection.execute(_LINE_UP, _account(line) | {"now": now})


async def behind_head(connection: AsyncConnection, account: Key, *, limit: int) -> list[PostJob]:
    """Locks the first posts in line of an account, skipping those that are locked."""
    names = {"organization_id": account[0], "account_id": account[1], "limit": limit}
    return [job_from(row) for row in await connection.execute(_BEHIND_HEAD, names)]


def _has_look(job: PostJob) -> bool:
    """Returns whether the job is parked on a limit that ends by itself."""
    return bool(job.parked_on and job.expected_time)


async def _wake_no_later(connection: AsyncConnection, lines: Sequence[tuple[Key, str, datetime | None]]) -> None:
    if lines:
        names = {
            "organization_ids": [account[0] for account, _, _ in lines],
            "account_ids": [account[1] for account, _, _ in lines],
            "parked_ons": [parked_on for _, parked_on, _ in lines],
            "wake_times": [time for _, _, time in lines],
        }
        await connection.execute(_PARK, names)


def _account(line: ParkedLine) -> dict[str, object]:
    return {"organization_id": line.organization_id, "account_id": line.account_id}


def _names(line: ParkedLine) -> dict[str, object]:
    return _account(line) | {"parked_on": line.parked_on}
