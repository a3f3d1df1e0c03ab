"""Providers and channels to which nothing is sent for a while, and accounts that pause for lack of an answer."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from publisher_service.domain.settlement import Settlement

_CLOSE = text("""
    insert into provider_quota as q (provider, closed_until)
    select provider, closed_until
    from unnest(cast(:providers as text[]), cast(:times as timestamptz[])) as c (provider, closed_until)
    order by provider
    on conflict (provider) do update set closed_until = greatest(q.closed_until, excluded.closed_until)
""")

# Channels that are open again are dropped.
_CLOSE_CHANNELS = text("""
    update account_gate g set
        closed_channels = coalesce((
            select jsonb_object_agg(known.channel, known.until)
            from jsonb_each_text(g.closed_channels) as known (channel, until)
            where cast(known.until as timestamptz) > :now
        ), '{}') || jsonb_build_object(
            c.channel, greatest(c.closed_until, cast(g.closed_channels ->> c.channel as timestamptz))
        )
    from unnest(
        cast(:organization_ids as text[]), cast(:account_ids as text[]), cast(:channels as text[]),
        cast(:times as timestamptz[])
    ) as c (organization_id, account_id, channel, closed_until)
    where g.organization_id = c.organization_id and g.social_account_id = c.account_id
""")

IS_ONE_CLOSED: Final = "exists (select from provider_quota where closed_until > :now)"
_CLOSED = text("select provider, closed_until from provider_quota where closed_until > :now")

# Spread, so that they do not all ask at once. A post that is out holds its account itself.
_RESUME = text("""
    with paused as (
        select organization_id, social_account_id from account_gate
        where provider = :provider and failures >= 3
            and resume_time > cast(:now as timestamptz) + cast(:within as interval)
        limit :limit for no key update skip locked
    )
    update account_gate g set
        resume_time = cast(:now as timestamptz) + random() * cast(:within as interval),
        wake_time = case when g.wake_time is not null then cast(:now as timestamptz) + cast(:within as interval) end
    from paused p where g.organization_id = p.organization_id and g.social_account_id = p.social_account_id
""")


async def close_providers(connection: AsyncConnection, until: Mapping[str, datetime]) -> None:
    """Closes providers until these instants; one that is closed for longer stays so."""
    names = {"providers": sorted(until), "times": [until[provider] for provider in sorted(until)]}
    await connection.execute(_CLOSE, names)


async def close_channels(connection: AsyncConnection, settled: Iterable[Settlement], *, now: datetime) -> None:
    """Closes channels of accounts, of which each has one post here at most, and whose gates are locked."""
    closing = [each for each in settled if each.channel_closed_until is not None]
    if closing:
        names = {
            "organization_ids": [each.job.organization_id for each in closing],
            "account_ids": [each.job.target.social_account_id for each in closing],
            "channels": [each.job.target.channel for each in closing],
            "times": [each.channel_closed_until for each in closing],
            "now": now,
        }
        await connection.execute(_CLOSE_CHANNELS, names)


async def closed_providers(connection: AsyncConnection, *, now: datetime) -> dict[str, datetime]:
    """Returns until when providers are closed."""
    return {row.provider: row.closed_until for row in await connection.execute(_CLOSED, {"now": now})}


async def resume_accounts(
    connection: AsyncConnection, provider: str, *, now: datetime, within: timedelta, limit: int
) -> int:
    """Ends the pauses of accounts whose provider answers again. Returns their number."""
    names = {"provider": provider, "now": now, "within": within, "limit": limit}
    return (await connection.execute(_RESUME, names)).rowcount
