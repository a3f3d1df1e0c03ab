"""The lines of accounts: what is due and cannot go at once waits here, and an account knows when its next may go.

A line is the account's row in `account_gate`, and those of its post jobs that are READY (IN_LINE) or BLOCKED
(ACCOUNT_NOT_CONNECTED). However many wait, one row is looked at.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from publisher_service.adapters.postgres.store import JOB_COLUMNS, Key, job_from
from publisher_service.domain.claim import Lane
from publisher_service.domain.post_job import JobState, PostJob, Reason

# So many organizations of a provider are looked at for a choice.
_POOL = 500

_NEXT_WAKE = text("""
    select min(first.wake_time) from unnest(cast(:providers as text[])) as wanted (provider) cross join lateral (
        select g.wake_time from account_gate g
        where g.provider = wanted.provider and g.wake_time is not null
        order by g.wake_time limit 1
    ) as first
""")
# The organizations that have lines are walked in their order, from that of the line that has waited longest, and round:
# however many lines one of them has, they are not read for it.
_LOCK_DUE = text("""
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
            from organization where wake_time <= :now
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
# A statement of its own: its snapshot is younger than the locks, so it sees every job that was lined before.
_HEADS = text(f"""
    select head.*
    from unnest(cast(:organization_ids as text[]), cast(:account_ids as text[])) as a (organization_id, account_id)
    cross join lateral (
        select first.* from (values ('IN_LINE'), ('ACCOUNT_NOT_CONNECTED')) as shown (label) cross join lateral (
            select {JOB_COLUMNS} from post_job
            where post_job.organization_id = a.organization_id and post_job.social_account_id = a.account_id
                and state_reason = shown.label and state_reason in ('IN_LINE', 'ACCOUNT_NOT_CONNECTED')
                -- One without its times goes nowhere: the sweep shows it, and the line goes on behind it.
                and state in ('READY', 'BLOCKED') and schedule_time is not null and not_after is not null
            order by schedule_time, id limit 1
        ) as first
        order by first.schedule_time, first.id limit 1
    ) as head
""")
_EMPTIED = text("""
    update account_gate g set lined = false, wake_time = null
    from unnest(cast(:organization_ids as text[]), cast(:account_ids as text[])) as a (organization_id, account_id)
    where g.organization_id = a.organization_id and g.social_account_id = a.account_id
""")
# Everything that may wait is shown and looked at again: whether there is anything is found out then.
_SET_CONNECTION = text("""
    insert into account_gate as g (organization_id, social_account_id, provider, connected)
    values (:organization_id, :id, :provider, :connected)
    on conflict (organization_id, social_account_id) do update set
        provider = excluded.provider, connected = excluded.connected, lined = true, relabel = true, resume_time = null,
        wake_time = case when excluded.connected and g.open_job_id is null then cast(:now as timestamptz) end
""")
# Shared with other pages and with claims, which change no key: a line goes on while it is relabeled.
_FIND_RELABELED = text("""
    select organization_id, social_account_id, connected from account_gate where relabel
    limit 1 for key share skip locked
""")
# From its end, so that the first of the line is not kept from going out.
_LOCK_MISLABELED = text(f"""
    select {JOB_COLUMNS} from post_job
    where organization_id = :organization_id and social_account_id = :id and state_reason = :label
        and state_reason in ('IN_LINE', 'ACCOUNT_NOT_CONNECTED') and state in ('READY', 'BLOCKED')
        and not_after is not null
    order by schedule_time desc, id desc limit :limit for update skip locked
""")
# Not while another page is open. Two that waited for each other's would be a deadlock.
_LOCK_GATE = text("""
    select 1 from account_gate where organization_id = :organization_id and social_account_id = :id
    for update skip locked
""")
_RELABELED = text("""
    update account_gate g set relabel = false
    where g.organization_id = :organization_id and g.social_account_id = :id and g.connected = :connected
        and not exists (
            select from post_job j
            where j.organization_id = :organization_id and j.social_account_id = :id and j.state_reason = :label
                and j.state_reason in ('IN_LINE', 'ACCOUNT_NOT_CONNECTED') and j.state in ('READY', 'BLOCKED')
                and j.not_after is not null
        )
""")
# A line whose account no event will wake: nothing is out, or what is said to be out has ended, and no look is due. The
# states are those that hold no account; one that only a newer release knows may.
_IS_STRANDED = """(
    (g.open_job_id is null and g.connected and (g.wake_time is null or not g.lined))
    or (g.open_job_id is not null and not g.lined)
    or exists (
        select from post_job o
        where o.organization_id = g.organization_id and o.id = g.open_job_id and o.state = any(cast(:idle as text[]))
    )
)"""
# From one line to the next: the posts behind a head are not read.
_LINES_BEHIND = text(f"""
    with recursive line as (
        (
            select organization_id, social_account_id, 1 as number from post_job
            where state_reason in ('IN_LINE', 'ACCOUNT_NOT_CONNECTED')
                and (organization_id, social_account_id) > (:organization_id, :id)
            order by organization_id, social_account_id, state_reason, schedule_time, id limit 1
        )
        union all
        select next.organization_id, next.social_account_id, line.number + 1
        from line cross join lateral (
            select organization_id, social_account_id from post_job
            where state_reason in ('IN_LINE', 'ACCOUNT_NOT_CONNECTED')
                and (organization_id, social_account_id) > (line.organization_id, line.social_account_id)
            order by organization_id, social_account_id, state_reason, schedule_time, id limit 1
        ) as next
        where line.number < :limit
    )
    select line.organization_id, line.social_account_id, coalesce(gate.is_stranded, false) as is_stranded
    from line left join lateral (
        select {_IS_STRANDED} as is_stranded from account_gate g
        where g.organization_id = line.organization_id and g.social_account_id = line.social_account_id
    ) as gate on true
    order by line.number
""")
_LOCK_GATES = text("""
    select g.organization_id, g.social_account_id
    from unnest(cast(:organization_ids as text[]), cast(:account_ids as text[])) as a (organization_id, account_id)
    join account_gate g on g.organization_id = a.organization_id and g.social_account_id = a.account_id
    for no key update of g skip locked
""")
_WAKE = text(f"""
    update account_gate g set
        lined = true,
        open_job_id = case when w.is_open then g.open_job_id end,
        wake_time = case when g.connected and not w.is_open then greatest(cast(:now as timestamptz), g.resume_time) end
    from (
        select g.organization_id, g.social_account_id, g.open_job_id is not null and not exists (
            select from post_job o
            where o.organization_id = g.organization_id and o.id = g.open_job_id
                and o.state = any(cast(:idle as text[]))
        ) as is_open
        from unnest(cast(:organization_ids as text[]), cast(:account_ids as text[])) as a (organization_id, account_id)
        join account_gate g on g.organization_id = a.organization_id and g.social_account_id = a.account_id
        where {_IS_STRANDED}
    ) as w
    where g.organization_id = w.organization_id and g.social_account_id = w.social_account_id
""")
_IDLE = sorted(frozenset(JobState) - {JobState.SENDING})


@dataclass(frozen=True, slots=True, kw_only=True)
class Relabeled:
    """An account whose waiting posts do not show yet that it was connected or disconnected."""

    organization_id: str
    account_id: str
    connected: bool

    @property
    def label(self) -> str:
        """What its posts still show."""
        return Reason.ACCOUNT_NOT_CONNECTED if self.connected else Reason.IN_LINE


async def next_wake_time(connection: AsyncConnection, providers: Sequence[str]) -> datetime | None:
    """When the next line of one of the providers is to be looked at."""
    found: datetime | None = (await connection.execute(_NEXT_WAKE, {"providers": list(providers)})).scalar_one()
    return found


async def lock_due(connection: AsyncConnection, lanes: Sequence[Lane], *, now: datetime, most: int) -> list[Key]:
    """Accounts whose next post may go now: fair over organizations, so many of a provider as it has room for."""
    names = {
        "providers": [lane.provider for lane in lanes],
        "rooms": [lane.room for lane in lanes],
        "now": now,
        "pool": _POOL,
        "most": most,
    }
    return [(row.organization_id, row.social_account_id) for row in await connection.execute(_LOCK_DUE, names)]


async def heads(connection: AsyncConnection, accounts: Sequence[Key]) -> list[PostJob]:
    """The first post in the line of each account, as far as it has one."""
    return [job_from(row) for row in await connection.execute(_HEADS, _names(accounts))]


async def emptied(connection: AsyncConnection, accounts: Sequence[Key]) -> None:
    """Nothing waits for these accounts, whose rows are locked."""
    if accounts:
        await connection.execute(_EMPTIED, _names(accounts))


async def lines_behind(connection: AsyncConnection, account: Key, *, limit: int) -> tuple[list[Key], list[Key]]:
    """The accounts behind this one in whose lines something waits, and those of them that nothing seems to wake."""
    names = {"organization_id": account[0], "id": account[1], "limit": limit, "idle": _IDLE}
    found = (await connection.execute(_LINES_BEHIND, names)).all()
    lines = [(row.organization_id, row.social_account_id) for row in found]
    return lines, [key for key, row in zip(lines, found, strict=True) if row.is_stranded]


async def wake_stranded(connection: AsyncConnection, accounts: Sequence[Key], *, now: datetime) -> int:
    """Wakes those of the lines that nothing wakes. Returns how many."""
    rows = await connection.execute(_LOCK_GATES, _names(accounts))
    locked = [(row.organization_id, row.social_account_id) for row in rows]
    # A statement of its own: a post that is out ends under this lock, so its state is that of the gate.
    return (await connection.execute(_WAKE, _names(locked) | {"idle": _IDLE, "now": now})).rowcount


async def set_connection(
    connection: AsyncConnection,
    organization_id: str,
    account_id: str,
    *,
    provider: str,
    connected: bool,
    now: datetime,
) -> None:
    """Opens or closes the account's line. What waits in it is shown accordingly by `RelabelLines`, in pages."""
    names: dict[str, Any] = {"organization_id": organization_id, "id": account_id, "provider": provider}
    await connection.execute(_SET_CONNECTION, names | {"connected": connected, "now": now})


async def find_relabeled(connection: AsyncConnection) -> Relabeled | None:
    """An account to relabel; nobody ends that before this transaction does."""
    row = (await connection.execute(_FIND_RELABELED)).one_or_none()
    if row is None:
        return None
    return Relabeled(organization_id=row.organization_id, account_id=row.social_account_id, connected=row.connected)


async def lock_mislabeled(connection: AsyncConnection, account: Relabeled, *, limit: int) -> list[PostJob]:
    """The last posts in the account's line that show what was, but for those that are locked."""
    names = {"organization_id": account.organization_id, "id": account.account_id, "label": account.label}
    return [job_from(row) for row in await connection.execute(_LOCK_MISLABELED, names | {"limit": limit})]


async def end_relabeling(connection: AsyncConnection, account: Relabeled) -> bool:
    """Whether everything in the account's line shows how it is connected."""
    names = {"organization_id": account.organization_id, "id": account.account_id}
    if (await connection.execute(_LOCK_GATE, names)).one_or_none() is None:
        return False
    # A statement of its own: its snapshot is younger than the lock, so it sees what every page has committed.
    more = {"connected": account.connected, "label": account.label}
    return (await connection.execute(_RELABELED, names | more)).rowcount == 1


def _names(accounts: Sequence[Key]) -> dict[str, Any]:
    return {
        "organization_ids": [organization for organization, _ in accounts],
        "account_ids": [account for _, account in accounts],
    }
