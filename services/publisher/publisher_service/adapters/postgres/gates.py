"""The gates of accounts: one narrow row each, which every post locks.

A gate says whether the account is connected, whether a hold covers it, which of its posts is out, and when its line is
to be looked at.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from publisher_service.adapters.postgres.keys import Key, key_arrays
from publisher_service.domain.settlement import Settlement

_ADD_GATES = text("""
    insert into account_gate (organization_id, social_account_id, connected)
    select distinct organization_id, social_account_id, false
    from unnest(cast(:organization_ids as text[]), cast(:social_account_ids as text[]))
        as new (organization_id, social_account_id)
    order by 1, 2
    on conflict do nothing
""")

_RELEASE_GATES = text("""
    update account_gate g set
        open_job_id = null,
        resume_time = greatest(g.resume_time, done.pause_until),
        wake_time = case when g.lined and g.connected and not g.held and g.enabled
            then greatest(cast(:now as timestamptz), g.resume_time, done.pause_until) end
    from unnest(
        cast(:organization_ids as text[]), cast(:social_account_ids as text[]), cast(:ids as text[]),
        cast(:pauses_until as timestamptz[])
    ) as done (organization_id, social_account_id, id, pause_until)
    where g.organization_id = done.organization_id and g.social_account_id = done.social_account_id
        and g.open_job_id = done.id
""")

# Whether anything waits is not known here. The line is relabeled and looked at in any case.
_SET_CONNECTION = text("""
    insert into account_gate as g (organization_id, social_account_id, provider, connected)
    values (:organization_id, :id, :provider, :connected)
    on conflict (organization_id, social_account_id) do update set
        provider = excluded.provider, connected = excluded.connected, lined = true, relabel = true,
        resume_time = null, failures = 0,
        wake_time = case
            when excluded.connected and not g.held and g.enabled and g.open_job_id is null
                then cast(:now as timestamptz)
        end
""")


# For posts that come into the line although their claim has found no reason for it.
_LINE_UP = text("""
    update account_gate g set lined = true, relabel = true,
        wake_time = case
            when g.connected and not g.held and g.enabled and g.open_job_id is null
                then greatest(cast(:now as timestamptz), g.resume_time)
        end
    from unnest(cast(:organization_ids as text[]), cast(:social_account_ids as text[])) as a (organization_id, id)
    where g.organization_id = a.organization_id and g.social_account_id = a.id
""")


async def set_connection(
    connection: AsyncConnection,
    organization_id: str,
    account_id: str,
    *,
    provider: str,
    connected: bool,
    now: datetime,
) -> None:
    """Opens or closes the account's line. `RelabelLines` then changes what its posts show, a page at a time."""
    names: dict[str, Any] = {"organization_id": organization_id, "id": account_id, "provider": provider}
    await connection.execute(_SET_CONNECTION, names | {"connected": connected, "now": now})


async def add_gates(connection: AsyncConnection, accounts: Iterable[Key]) -> None:
    """Inserts closed gates for accounts that have none."""
    await connection.execute(_ADD_GATES, key_arrays(accounts, "social_account_ids"))


async def line_up(connection: AsyncConnection, settled: Iterable[Settlement], *, now: datetime) -> None:
    """Puts settled posts in the lines of their accounts, and has the first one looked at."""
    accounts = [each.job.account_key for each in settled]
    if accounts:
        await look_at_lines(connection, accounts, now=now)


async def look_at_lines(connection: AsyncConnection, accounts: Iterable[Key], *, now: datetime) -> None:
    """Has the lines of accounts looked at, because posts have come into them."""
    await connection.execute(_LINE_UP, key_arrays(accounts, "social_account_ids") | {"now": now})


async def release_gates(connection: AsyncConnection, closed: Sequence[Settlement], *, now: datetime) -> None:
    """Lets the next in line go where a closed attempt held the account, unless the provider asked for a pause."""
    names = {
        "organization_ids": [each.job.organization_id for each in closed],
        "social_account_ids": [each.job.target.social_account_id for each in closed],
        "ids": [each.job.id for each in closed],
        "pauses_until": [each.pause_until for each in closed],
        "now": now,
    }
    await connection.execute(_RELEASE_GATES, names)
