"""The daily caps that accounts have of their own, beside what is used of them."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from channels import Action
from publisher_service.adapters.postgres.keys import Key

CAPS: Final = """
    coalesce((
        select array_agg(array[a.action, cast(a.cap as text)]) from account_action a
        where a.organization_id = social_account.organization_id and a.social_account_id = social_account.id
            and a.cap is not null
    ), '{}') as daily_caps
"""
"""A column of an account that is read, for `caps_from`."""

_GET = text("""
    select action, cap from account_action
    where organization_id = :organization_id and social_account_id = :id and cap is not null
""")
_USED = text("""
    select action, used from account_action
    where organization_id = :organization_id and social_account_id = :id and day_start <= :now and day_end > :now
""")
_UNCOUNTED = text("""
    select action from account_action
    where organization_id = :organization_id and social_account_id = :id and day_start is null
        and action = any(cast(:actions as text[]))
""")
_RESET = text("""
    update account_action set cap = null
    where organization_id = :organization_id and social_account_id = :id and action <> all (cast(:actions as text[]))
        and cap is not null
""")
_SET = text("""
    insert into account_action (organization_id, social_account_id, action, cap)
    select :organization_id, :id, action, cap
    from unnest(cast(:actions as text[]), cast(:caps as integer[])) as own (action, cap)
    on conflict (organization_id, social_account_id, action) do update set cap = excluded.cap
""")
# A plain post looks its cap up only if there may be one.
_SET_LIMITED = text("""
    update account_gate g set limited = exists (
        select from account_action a
        where a.organization_id = g.organization_id and a.social_account_id = g.social_account_id
            and a.action = 'POST' and a.cap is not null
    )
    where g.organization_id = :organization_id and g.social_account_id = :id
""")
# Without a cap, posts reserve nothing: what is out by then, or may be, counts as if the cap had been there before.
_RESERVE_EARLIER = text("""
    insert into reservation (organization_id, post_job_id, fence, run, social_account_id, action, reserve_time)
    select a.organization_id, a.post_job_id, a.fence, a.run, :id, 'POST', a.start_time
    from (
        select l.post_job_id from activity l
        where l.organization_id = :organization_id and l.social_account_id = :id and l.create_time >= :since
            and l.action = 'POST' and l.outcome in ('SUCCESS', 'UNKNOWN')
        union
        select g.open_job_id from account_gate g
        where g.organization_id = :organization_id and g.social_account_id = :id and g.open_job_id is not null
    ) as sent
    -- Lateral with an offset, so that each is found by key.
    cross join lateral (
        select organization_id, post_job_id, fence, run, start_time from attempt
        where organization_id = :organization_id and post_job_id = sent.post_job_id and start_time >= :since
            and state in ('SENDING', 'UNKNOWN', 'ACCEPTED')
        offset 0
    ) as a
    -- A run counts once; and what is being sent may be no post, but something that always has its place.
    where not exists (
        select from reservation r
        where r.organization_id = a.organization_id and r.post_job_id = a.post_job_id and r.run = a.run
    )
    -- Comments below a post count for nothing.
    and (
        select j.part from post_job j where j.organization_id = a.organization_id and j.id = a.post_job_id
    ) = 0
    on conflict do nothing
""")
_WAKE = text("""
    update parked_line set wake_time = least(wake_time, :now)
    where organization_id = :organization_id and social_account_id = :id
        and parked_on in (select 'action:' || action from unnest(cast(:actions as text[])) as changed (action))
""")


def caps_from(pairs: Iterable[tuple[str, str]]) -> Mapping[Action, int]:
    """Returns the caps, in the order of the actions; leaves out an action that only a newer release knows."""
    found = dict(pairs)
    return {action: int(found[action]) for action in Action if action in found}


async def caps_of(connection: AsyncConnection, account: Key) -> Mapping[Action, int]:
    return caps_from((row.action, row.cap) for row in await connection.execute(_GET, _names(account)))


async def used_today(connection: AsyncConnection, account: Key, *, now: datetime) -> Mapping[str, int]:
    """Returns how much of each cap is used; the gate of the account is locked, so that nothing is being reserved."""
    rows = await connection.execute(_USED, _names(account) | {"now": now})
    return {row.action: row.used for row in rows}


async def uncounted(connection: AsyncConnection, account: Key, actions: Iterable[Action]) -> set[Action]:
    """Returns those of the actions whose day is not known: a change of the schedule has it computed again."""
    names = _names(account) | {"actions": sorted(actions)}
    return {Action(action) for action in (await connection.execute(_UNCOUNTED, names)).scalars()}


async def save_caps(
    connection: AsyncConnection, account: Key, caps: Mapping[Action, int], *, changed: Iterable[Action], now: datetime
) -> None:
    """Writes the caps of an account whose gate this transaction has locked, and wakes what waits for a changed one."""
    actions = sorted(action.value for action in caps)
    await connection.execute(_RESET, _names(account) | {"actions": actions})
    if actions:
        numbers = [caps[Action(action)] for action in actions]
        await connection.execute(_SET, _names(account) | {"actions": actions, "caps": numbers})
    await connection.execute(_SET_LIMITED, _names(account))
    await connection.execute(_WAKE, _names(account) | {"actions": sorted(changed), "now": now})


async def reserve_earlier_posts(connection: AsyncConnection, account: Key, *, since: datetime) -> None:
    """Has the posts since then count for the cap that the account gets; its gate is locked."""
    await connection.execute(_RESERVE_EARLIER, _names(account) | {"since": since})


def _names(account: Key) -> dict[str, Any]:
    return {"organization_id": account[0], "id": account[1]}
