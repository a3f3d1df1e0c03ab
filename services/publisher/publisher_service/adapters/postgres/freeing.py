"""Freeing: what a wide hold has kept back starts again after its release, in pages and no faster than a rate.

A row of `hold_release` stands for a hold that has ended, until all that it kept back is freed; so nothing is lost if a
process dies meanwhile. Lines of accounts that it has frozen get their turn one after the other, and posts of a brand or
campaign, which wait outside of the lines, come back into the lines of their accounts.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from publisher_service.adapters.postgres.gates import line_up
from publisher_service.adapters.postgres.jobs import JOB_COLUMNS, STANDS_IN_LINE, job_from
from publisher_service.adapters.postgres.keys import Key, key_arrays
from publisher_service.adapters.postgres.relabeling import Relabeled
from publisher_service.domain.hold import Scope
from publisher_service.domain.post_job import STOPPED, PostJob, Reason
from publisher_service.domain.settlement import Settlement
from servicekit.pg.session import Session, Statement

_ASK = text("""
    insert into hold_release (organization_id, scope, scope_id, next_time)
    select organization_id, scope, scope_id, cast(:now as timestamptz)
    from unnest(cast(:organization_ids as text[]), cast(:scopes as text[]), cast(:scope_ids as text[]))
        as ended (organization_id, scope, scope_id)
    order by 1, 2, 3
    -- Waits for the page that is about to delete the row, which may not have seen these posts.
    on conflict (organization_id, scope, scope_id) do update set next_time = hold_release.next_time
""")

# As their drafts are now: the brand may have changed while they were being sent.
_IDS_OF_DRAFTS = text("""
    select j.organization_id, j.state_reason, j.brand_id, j.campaign_id
    from unnest(cast(:organization_ids as text[]), cast(:ids as text[])) as wanted (organization_id, id)
    join post_job j on j.organization_id = wanted.organization_id and j.id = wanted.id
""")

IS_ONE_TO_FREE: Final = "exists (select from hold_release where next_time <= :now)"
_IS_ONE_TO_FREE = Statement(f"select {IS_ONE_TO_FREE}")
_NEXT = text("""
    select organization_id, scope, scope_id, next_time from hold_release
    where next_time <= :now order by next_time limit 1 for update skip locked
""")
_IS_IN_FORCE = text("""
    select exists (
        select from hold
        where organization_id = :organization_id and scope = :scope and scope_id = :scope_id and in_force
    )
""")
_PUT_OFF = text("""
    update hold_release set next_time = :next_time
    where organization_id = :organization_id and scope = :scope and scope_id = :scope_id
""")
_END = text("""
    delete from hold_release where organization_id = :organization_id and scope = :scope and scope_id = :scope_id
""")

# The second condition on `frozen` is that of the index.
_IS_FROZEN = "organization_id = :organization_id and frozen = :frozen and frozen <> ''"
_FROZEN = {Scope.ORGANIZATION: _IS_FROZEN, Scope.PROVIDER: f"{_IS_FROZEN} and provider = :provider"}
# Each line counts as many posts as wait in it, up to the rate. It wakes after those that are freed before it, unless
# another hold covers its account.
_FREE_LINES = """
    with candidate as materialized (
        select g.social_account_id, g.provider, n.posts
        from (
            select social_account_id, provider from account_gate
            where {frozen} order by organization_id, frozen, provider, social_account_id limit :most
        ) as g
        cross join lateral (
            select count(*) as posts from (
                select from post_job
                where organization_id = :organization_id and social_account_id = g.social_account_id
                    and {in_line}
                limit :rate
            ) as waiting
        ) as n
    ),
    placed as (
        select *, sum(posts) over (order by provider, social_account_id) - posts as before from candidate
    ),
    locked as (
        select p.*, coalesce(
            (
                select 'ORGANIZATION_ON_HOLD' from hold h
                where h.organization_id = :organization_id and h.scope = 'ORGANIZATION' and h.scope_id = ''
                    and h.in_force
                limit 1
            ),
            (
                select 'PROVIDER_ON_HOLD' from hold h
                where h.organization_id = :organization_id and h.scope = 'PROVIDER' and h.scope_id = p.provider
                    and h.in_force
                limit 1
            ),
            ''
        ) as still
        from placed p
        -- Lateral, so that both columns are index conditions.
        cross join lateral (
            select from account_gate g
            where g.organization_id = :organization_id and g.social_account_id = p.social_account_id
                and g.frozen = :frozen
            for no key update skip locked
        ) as gate
        where p.before < :rate
    )
    update account_gate g set
        frozen = l.still,
        relabel = g.relabel or g.lined,
        wake_time = case
            when l.still = '' and g.connected and not g.held and g.enabled and g.open_job_id is null and g.lined
                then greatest(
                    cast(:now as timestamptz) + cast(l.before as float8) / :rate * interval '1 second', g.resume_time
                )
        end
    from locked l
    where g.organization_id = :organization_id and g.social_account_id = l.social_account_id
    returning l.posts
"""
_FREE_LINES_OF = {
    scope: text(_FREE_LINES.format(frozen=frozen, in_line=STANDS_IN_LINE)) for scope, frozen in _FROZEN.items()
}
_IS_ONE_FROZEN = {
    scope: text(f"select exists (select from account_gate where {frozen})") for scope, frozen in _FROZEN.items()
}

# The label is part of the text: it makes the condition of an index.
_HELD_BACK = {
    scope: f"""
        organization_id = :organization_id and {scope.lower()}_id = :scope_id and state_reason = '{scope}_ON_HOLD'
        and state = 'BLOCKED' and schedule_time is not null and not_after is not null
    """
    for scope in (Scope.BRAND, Scope.CAMPAIGN)
}
_LOCK_HELD_BACK = {
    scope: text(f"""
        select {JOB_COLUMNS} from post_job
        where {condition} order by schedule_time, id limit :most for update skip locked
    """)
    for scope, condition in _HELD_BACK.items()
}
_IS_ONE_HELD_BACK = {
    scope: text(f"select exists (select from post_job where {condition})") for scope, condition in _HELD_BACK.items()
}
_COVERED = text("""
    select wanted.scope_id from unnest(cast(:scope_ids as text[])) as wanted (scope_id)
    cross join lateral (
        select from hold h
        where h.organization_id = :organization_id and h.scope = :scope and h.scope_id = wanted.scope_id and h.in_force
        limit 1
    ) as hold
""")
# Waits for nobody: a post whose gate is locked is freed with a later page.
_LOCK_GATES = text("""
    select gate.* from unnest(cast(:account_ids as text[])) as a (id)
    cross join lateral (
        select organization_id, social_account_id, connected, frozen, held, enabled from account_gate g
        where g.organization_id = :organization_id and g.social_account_id = a.id
        for no key update skip locked
    ) as gate
""")
_WAKE_LINES = text("""
    update account_gate g set lined = true,
        wake_time = case
            when g.connected and g.frozen = '' and not g.held and g.enabled and g.open_job_id is null
                then coalesce(case when g.lined then g.wake_time end, greatest(woken.time, g.resume_time))
        end
    from unnest(cast(:account_ids as text[]), cast(:times as timestamptz[])) as woken (id, time)
    where g.organization_id = :organization_id and g.social_account_id = woken.id
""")


class Ended(NamedTuple):
    """A hold that has ended, by what it covered."""

    organization_id: str
    scope: Scope
    scope_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """An ended hold whose posts are still to be freed, and when the next of them may start."""

    ended: Ended
    next_time: datetime


# All other held posts wait in the lines of their accounts.
_OUTSIDE = frozenset({Reason.BRAND_ON_HOLD, Reason.CAMPAIGN_ON_HOLD})


async def ask_to_free(connection: AsyncConnection, ended: Iterable[Ended], *, now: datetime) -> None:
    """Has the posts freed that no hold covers any more."""
    unique = sorted(set(ended))
    if unique:
        names = {
            "organization_ids": [each.organization_id for each in unique],
            "scopes": [each.scope.value for each in unique],
            "scope_ids": [each.scope_id for each in unique],
        }
        await connection.execute(_ASK, names | {"now": now})


async def put_back(connection: AsyncConnection, settled: Sequence[Settlement], *, now: datetime) -> None:
    """Puts posts that were not sent because of a hold, or a disconnection, where they are found when it is over.

    It may be over by now, and nothing else would look at them.
    """
    held = [each for each in settled if each.job.state_reason in STOPPED]
    await line_up(connection, [each for each in held if each.job.state_reason not in _OUTSIDE], now=now)
    if outside := [each.job.key for each in held if each.job.state_reason in _OUTSIDE]:
        found = await connection.execute(_IDS_OF_DRAFTS, key_arrays(outside, "ids"))
        await ask_to_free(connection, (_ended_for(*row) for row in found), now=now)


def _ended_for(organization_id: str, reason: str, brand_id: str, campaign_id: str) -> Ended:
    if reason == Reason.BRAND_ON_HOLD:
        return Ended(organization_id, Scope.BRAND, brand_id)
    return Ended(organization_id, Scope.CAMPAIGN, campaign_id)


async def is_one_to_free(session: Session, *, now: datetime) -> bool:
    found: bool = await session.fetch_value(_IS_ONE_TO_FREE, {"now": now})
    return found


async def lock_release(connection: AsyncConnection, *, now: datetime) -> Release | None:
    """Locks the release that has its turn, unless other processes have locked all of them."""
    row = (await connection.execute(_NEXT, {"now": now})).one_or_none()
    if row is None:
        return None
    return Release(ended=Ended(row.organization_id, Scope(row.scope), row.scope_id), next_time=row.next_time)


async def is_in_force(connection: AsyncConnection, ended: Ended) -> bool:
    """Returns whether another hold covers the same, or the hold was put again."""
    found: bool = (await connection.execute(_IS_IN_FORCE, ended._asdict())).scalar_one()
    return found


async def put_off_release(connection: AsyncConnection, ended: Ended, *, until: datetime) -> None:
    await connection.execute(_PUT_OFF, ended._asdict() | {"next_time": until})


async def end_release(connection: AsyncConnection, ended: Ended) -> None:
    await connection.execute(_END, ended._asdict())


async def free_lines(connection: AsyncConnection, ended: Ended, *, rate: int, most: int, now: datetime) -> list[int]:
    """Frees up to `most` lines, about as many as hold a second's posts; returns how many posts wait in each."""
    names = _frozen(ended) | {"rate": rate, "most": most, "now": now}
    return [row.posts for row in await connection.execute(_FREE_LINES_OF[ended.scope], names)]


async def lock_held_back(connection: AsyncConnection, ended: Ended, *, most: int) -> list[PostJob]:
    """Locks the first posts of a brand or campaign that wait outside of lines, skipping those that are locked."""
    rows = await connection.execute(_LOCK_HELD_BACK[ended.scope], _thing(ended) | {"most": most})
    return [job_from(row) for row in rows]


async def is_one_left(connection: AsyncConnection, ended: Ended) -> bool:
    """Returns whether anything is left to free, locked or not."""
    if ended.scope in _IS_ONE_HELD_BACK:
        found: bool = (await connection.execute(_IS_ONE_HELD_BACK[ended.scope], _thing(ended))).scalar_one()
    else:
        found = (await connection.execute(_IS_ONE_FROZEN[ended.scope], _frozen(ended))).scalar_one()
    return found


async def covered(connection: AsyncConnection, organization_id: str, scope: Scope, ids: Iterable[str]) -> set[str]:
    """Returns those of the brands or campaigns that a hold covers."""
    names = {"organization_id": organization_id, "scope": scope.value, "scope_ids": sorted(set(ids) - {""})}
    return set((await connection.execute(_COVERED, names)).scalars())


async def lock_lines(connection: AsyncConnection, accounts: Iterable[Key]) -> dict[Key, Relabeled]:
    """Locks the gates of accounts of one organization that are free, and returns what their lines are to show."""
    keys = key_arrays(accounts, "account_ids")
    if not keys["account_ids"]:
        return {}
    names = {"organization_id": keys["organization_ids"][0], "account_ids": keys["account_ids"]}
    found = [
        Relabeled(
            organization_id=row.organization_id,
            account_id=row.social_account_id,
            connected=row.connected,
            frozen=row.frozen,
            held=row.held,
            enabled=row.enabled,
        )
        for row in await connection.execute(_LOCK_GATES, names)
    ]
    return {(each.organization_id, each.account_id): each for each in found}


async def wake_lines(connection: AsyncConnection, organization_id: str, times: Mapping[str, datetime]) -> None:
    """Gives lines, whose gates this transaction has locked, their turns at these times, unless they have them."""
    if times:
        names: dict[str, Any] = {"account_ids": list(times), "times": list(times.values())}
        await connection.execute(_WAKE_LINES, names | {"organization_id": organization_id})


def next_page_time(release: Release, posts: int, *, rate: int, now: datetime) -> datetime:
    """Returns when the next page may be freed. What was not freed within the last second is not made up for."""
    return max(release.next_time, now - timedelta(seconds=1)) + timedelta(seconds=posts / rate)


def _thing(ended: Ended) -> dict[str, Any]:
    return {"organization_id": ended.organization_id, "scope_id": ended.scope_id}


def _frozen(ended: Ended) -> dict[str, Any]:
    names = {"organization_id": ended.organization_id, "frozen": f"{ended.scope}_ON_HOLD"}
    return names | ({"provider": ended.scope_id} if ended.scope is Scope.PROVIDER else {})
