"""Stranded lines: posts wait in them, and nothing would ever wake them."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from publisher_service.adapters.postgres.jobs import STANDS_IN_LINE
from publisher_service.adapters.postgres.keys import Key, key_arrays
from publisher_service.domain.post_job import JobState

# No event will wake the account: nothing is out, or the post that holds it has ended, and no look is due. `idle` names
# the states that hold no account; a state that only a newer release knows may hold one.
_IS_STRANDED = """(
    (
        g.open_job_id is null and g.connected and not g.held and g.enabled and (g.wake_time is null or not g.lined)
        -- A frozen line waits for a hold in force, or for a release that is under way.
        and (
            g.frozen = ''
            or not exists (
                select from hold h where h.organization_id = g.organization_id and h.in_force
                    and (h.scope, h.scope_id) in (('ORGANIZATION', ''), ('PROVIDER', g.provider))
            ) and not exists (
                select from hold_release r where r.organization_id = g.organization_id
            )
        )
    )
    or (g.open_job_id is not null and not g.lined)
    or exists (
        select from post_job o
        where o.organization_id = g.organization_id and o.id = g.open_job_id and o.state = any(cast(:idle as text[]))
    )
)"""

# Steps from one line to the next; the posts behind the first of a line are not read.
_LINES_BEHIND = text(f"""
    with recursive line as (
        (
            select organization_id, social_account_id, 1 as number from post_job
            where {STANDS_IN_LINE}
                and (organization_id, social_account_id) > (:organization_id, :id)
            order by organization_id, social_account_id, state_reason, schedule_time, id limit 1
        )
        union all
        select next.organization_id, next.social_account_id, line.number + 1
        from line cross join lateral (
            select organization_id, social_account_id from post_job
            where {STANDS_IN_LINE}
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
        -- If a hold covers it after all, the look freezes it again.
        frozen = '',
        relabel = g.relabel or g.frozen <> '',
        open_job_id = case when w.is_open then g.open_job_id end,
        wake_time = case
            when g.connected and not g.held and g.enabled and not w.is_open
                then greatest(cast(:now as timestamptz), g.resume_time)
        end
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


async def list_lines(connection: AsyncConnection, account: Key, *, limit: int) -> tuple[list[Key], list[Key]]:
    """Lists the accounts behind this one that have a line, and those of them that seem stranded."""
    names = {"organization_id": account[0], "id": account[1], "limit": limit, "idle": _IDLE}
    found = (await connection.execute(_LINES_BEHIND, names)).all()
    lines = [(row.organization_id, row.social_account_id) for row in found]
    return lines, [key for key, row in zip(lines, found, strict=True) if row.is_stranded]


async def wake_stranded_lines(connection: AsyncConnection, accounts: Sequence[Key], *, now: datetime) -> int:
    """Wakes those of the lines that are stranded. Returns their number."""
    rows = await connection.execute(_LOCK_GATES, key_arrays(accounts, "account_ids"))
    locked = [(row.organization_id, row.social_account_id) for row in rows]
    # A separate statement: a post ends under the lock of its gate, so this one sees both in the same state.
    return (await connection.execute(_WAKE, key_arrays(locked, "account_ids") | {"idle": _IDLE, "now": now})).rowcount
