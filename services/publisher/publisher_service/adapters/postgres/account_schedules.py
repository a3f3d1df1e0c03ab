"""Schedules of accounts: a copy of what Schedule has announced, and its instants on the gates."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from civil.windows import Opening, SendWindow
from publisher_service.adapters.postgres.keys import Key, key_arrays
from publisher_service.domain.account_schedule import AccountSchedule

_COLUMNS = (
    "organization_id",
    "social_account_id",
    "version",
    "deleted",
    "time_zone",
    "enabled",
    "window_days",
    "window_start",
    "window_end",
    "min_spacing",
)
_SCHEDULE = ", ".join(_COLUMNS)

# In the order of their keys, as everywhere. The gate of an account that is not known yet is made: it stays closed.
_LOCK_GATES = text("""
    insert into account_gate (organization_id, social_account_id, connected)
    select organization_id, social_account_id, false
    from unnest(cast(:organization_ids as text[]), cast(:account_ids as text[]))
        as a (organization_id, social_account_id)
    order by 1, 2
    on conflict (organization_id, social_account_id) do update set connected = account_gate.connected
""")

# Days are not an array of arrays: all inner ones would need the same length.
_SAVE = text(f"""
    insert into account_schedule as s ({_SCHEDULE})
    values ({", ".join(f":{name}" for name in _COLUMNS)})
    on conflict (organization_id, social_account_id) do update set
        {", ".join(f"{name} = excluded.{name}" for name in _COLUMNS[2:])}
    where s.version <= excluded.version
""")

# Whether anything waits is not known here: the line is looked at once in any case. Spacing that begins now counts from
# the last post, which only the log knows so far.
_SET_GATE = text("""
    update account_gate g set
        enabled = :enabled, open_from = :open_from, open_until = :open_until, post_spacing = :min_spacing,
        last_post_time = case
            when g.post_spacing is null and cast(:min_spacing as interval) is not null
                then greatest(g.last_post_time, (
                    select a.create_time from activity a
                    where a.organization_id = g.organization_id and a.social_account_id = g.social_account_id
                        and a.action = 'POST' and a.outcome in ('SUCCESS', 'UNKNOWN')
                    order by a.create_time desc limit 1
                ))
            else g.last_post_time
        end,
        lined = true, relabel = g.relabel or g.enabled <> :enabled,
        wake_time = case
            when g.connected and g.frozen = '' and not g.held and :enabled and g.open_job_id is null
                then greatest(cast(:now as timestamptz), g.resume_time)
        end
    where g.organization_id = :organization_id and g.social_account_id = :social_account_id
""")

# Another zone has other days; and what is parked is judged by the limits as they are now.
_FORGET_DAYS = text("""
    update account_action set local_date = null, day_start = null, day_end = null
    where organization_id = :organization_id and social_account_id = :social_account_id
""")
_WAKE_PARKED = text("""
    update parked_line set wake_time = :now
    where organization_id = :organization_id and social_account_id = :social_account_id and wake_time > :now
""")

_SET_OPENINGS = text("""
    update account_gate g set open_from = new.open_from, open_until = new.open_until
    from unnest(
        cast(:organization_ids as text[]), cast(:account_ids as text[]), cast(:open_froms as timestamptz[]),
        cast(:open_untils as timestamptz[])
    ) as new (organization_id, account_id, open_from, open_until)
    where g.organization_id = new.organization_id and g.social_account_id = new.account_id
""")

_FIND = text(f"""
    select {", ".join(f"s.{name}" for name in _COLUMNS)}
    from unnest(cast(:organization_ids as text[]), cast(:account_ids as text[])) as a (organization_id, account_id)
    cross join lateral (
        select * from account_schedule
        where organization_id = a.organization_id and social_account_id = a.account_id
        limit 1
    ) as s
""")


async def lock_gates(connection: AsyncConnection, accounts: Iterable[Key]) -> None:
    """Locks the gates of these accounts, in order: waits for the claims and settlements that hold them."""
    await connection.execute(_LOCK_GATES, key_arrays(accounts, "account_ids"))


async def save_schedule(
    connection: AsyncConnection, schedule: AccountSchedule, opening: Opening | None, *, now: datetime
) -> bool:
    """Stores the schedule, with its instants on the gate, which this transaction has locked.

    `opening` is that of the send window. Returns False for a schedule that is older than the one known.
    """
    names = _names(schedule)
    if not (await connection.execute(_SAVE, names)).rowcount:
        return False
    opens = (
        {"open_from": opening.start, "open_until": opening.end} if opening else {"open_from": None, "open_until": None}
    )
    used = ("organization_id", "social_account_id")
    account = {name: names[name] for name in used}
    facts = {"enabled": schedule.enabled, "min_spacing": schedule.min_spacing, "now": now}
    await connection.execute(_SET_GATE, account | facts | opens)
    await connection.execute(_FORGET_DAYS, account)
    await connection.execute(_WAKE_PARKED, account | {"now": now})
    return True


async def schedules_of(connection: AsyncConnection, accounts: Iterable[Key]) -> dict[Key, AccountSchedule]:
    """Returns the schedules of these accounts; an account that never had one is missing."""
    rows = await connection.execute(_FIND, key_arrays(accounts, "account_ids"))
    return {(row.organization_id, row.social_account_id): _schedule(row) for row in rows}


async def set_openings(connection: AsyncConnection, opens: Mapping[Key, Opening]) -> None:
    """Writes the openings of send windows on gates that this transaction has locked."""
    if opens:
        accounts: Sequence[Key] = sorted(opens)
        names = {
            "organization_ids": [key[0] for key in accounts],
            "account_ids": [key[1] for key in accounts],
            "open_froms": [opens[key].start for key in accounts],
            "open_untils": [opens[key].end for key in accounts],
        }
        await connection.execute(_SET_OPENINGS, names)


def _names(schedule: AccountSchedule) -> dict[str, Any]:
    window = schedule.window
    return {
        "organization_id": schedule.organization_id,
        "social_account_id": schedule.social_account_id,
        "version": schedule.version,
        "deleted": schedule.deleted,
        "time_zone": schedule.time_zone,
        "enabled": schedule.enabled,
        "window_days": sorted(window.days) if window else None,
        "window_start": window.start if window else None,
        "window_end": window.end if window else None,
        "min_spacing": schedule.min_spacing,
    }


def _schedule(row: Row[Any]) -> AccountSchedule:
    window = None
    if row.window_days is not None:
        window = SendWindow(days=frozenset(row.window_days), start=row.window_start, end=row.window_end)
    return AccountSchedule(
        organization_id=row.organization_id,
        social_account_id=row.social_account_id,
        version=row.version,
        deleted=row.deleted,
        time_zone=row.time_zone,
        enabled=row.enabled,
        window=window,
        min_spacing=row.min_spacing,
    )
