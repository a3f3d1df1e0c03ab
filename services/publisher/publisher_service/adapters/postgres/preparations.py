"""Preparations: what providers that prepare posts have prepared, and what they are still to be asked.

A job has at most one. Whether its handle may be published is decided by the claim, which compares the bytes.
"""

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from publisher_service.adapters.postgres.keys import Key, key_arrays
from publisher_service.adapters.postgres.preparation_tables import LAST_USE
from publisher_service.domain.claim import Judged, Verdict
from publisher_service.domain.preparation import Preparation, PreparationState, Source

_COLUMNS = ", ".join(field.name for field in fields(Preparation))

# A process that has it will look at the job again anyway: its lease is left alone.
_ASK = text("""
    insert into preparation as p (organization_id, post_job_id, social_account_id, provider, state, next_time)
    select j.organization_id, j.id, j.social_account_id, s.provider, 'PENDING', :now
    from unnest(cast(:organization_ids as text[]), cast(:ids as text[])) as wanted (organization_id, id)
    join post_job j on j.organization_id = wanted.organization_id and j.id = wanted.id
    join social_account s on s.organization_id = j.organization_id and s.id = j.social_account_id
    order by 1, 2
    on conflict (organization_id, post_job_id) do update set next_time = :now, provider = excluded.provider
    where p.next_time is null
""")

# What the process that has it finds does not count any more.
_VOID = text("""
    update preparation set state = 'PENDING', handle = '', content_digest = '', next_time = :now, fence = fence + 1
    where organization_id = :organization_id and post_job_id = :id
""")

_IS_ONE_PREPARING = text("""
    select exists (select from social_account where provider = any(cast(:providers as text[])))
""")

# Each job passes the horizon once. One that is approved or moved later is prepared when its command asks for it.
_ASK_AHEAD = text("""
    insert into preparation (organization_id, post_job_id, social_account_id, provider, state, next_time)
    select j.organization_id, j.id, j.social_account_id, s.provider, 'PENDING', :now
    from post_job j
    join social_account s on s.organization_id = j.organization_id and s.id = j.social_account_id
    join content k on k.organization_id = j.organization_id and k.draft_id = j.draft_id
    where j.list_state = 'SCHEDULED' and j.state = 'SCHEDULED' and j.schedule_time > :after
        and j.schedule_time <= :until and s.provider = any(cast(:providers as text[]))
        and k.approved and k.revision >= j.withdrawn_below
    order by 1, 2
    on conflict do nothing
""")

# No provider is named: the index by time alone finds one at once, however many are not due.
IS_ONE_TO_PREPARE: Final = "exists (select from preparation where next_time <= :now)"
# Walks the organizations from `after` on, and takes one of each but the busy ones: none can keep the others waiting.
_TAKE = text(f"""
    with recursive organization as (
        (
            select organization_id, 1 as number from preparation
            where provider = :provider and next_time is not null and organization_id > :after
            order by organization_id limit 1
        )
        union all
        select next.organization_id, o.number + 1 from organization o cross join lateral (
            select organization_id from preparation
            where provider = :provider and next_time is not null and organization_id > o.organization_id
            order by organization_id limit 1
        ) as next
        where o.number < :pool
    ),
    due as materialized (
        select first.organization_id, first.post_job_id from organization o cross join lateral (
            select organization_id, post_job_id from preparation
            where provider = :provider and organization_id = o.organization_id and next_time <= :now
            order by next_time limit 1 for update skip locked
        ) as first
        where o.organization_id <> all (cast(:busy as text[]))
        limit :limit
    )
    update preparation p set next_time = :lease_end, fence = p.fence + 1
    from due where p.organization_id = due.organization_id and p.post_job_id = due.post_job_id
    returning {", ".join(f"p.{field.name}" for field in fields(Preparation))}
""")

_EXTEND = text("""
    update preparation set next_time = :lease_end
    where organization_id = :organization_id and post_job_id = :id and fence = :fence
""")

_SOURCE = text("""
    select j.channel, j.destination, j.part, j.follows, j.run, s.provider, s.external_account_id, s.credentials,
        cast(s.settings as text) as settings,
        s.state = 'CONNECTED' as connected,
        b.content, b.content_digest, b.revision,
        j.state in ('SENDING', 'UNKNOWN') as is_open,
        j.state in ('SCHEDULED', 'READY', 'WAITING', 'BLOCKED') and b.content is not null
            and b.revision >= j.withdrawn_below and (k.approved or b.revision <> k.revision)
            and (j.in_doubt or k.revision >= j.wanted_revision) and j.id = any(k.post_job_ids) as is_wanted
    from post_job j
    join social_account s on s.organization_id = j.organization_id and s.id = j.social_account_id
    left join content k on k.organization_id = j.organization_id and k.draft_id = j.draft_id
    left join kept_content kept on j.in_doubt and kept.organization_id = j.organization_id
        and kept.post_job_id = j.id and kept.revision = j.content_revision
    -- The bytes that the claim would send.
    cross join lateral (
        select
            case when i.newest then k.revision else j.content_revision end as revision,
            case when i.newest then k.content else kept.content end as content,
            case when i.newest then k.content_digest else kept.content_digest end as content_digest
        from (
            select coalesce(
                not j.in_doubt or k.revision = j.content_revision or k.content_digest = kept.content_digest, false
            )
        ) as i (newest)
    ) b
    where j.organization_id = :organization_id and j.id = :id
""")

_SAVE = text("""
    update preparation set state = :state, handle = :handle, content_digest = :content_digest, run = :run,
        begin_time = :begin_time, expire_time = :expire_time, next_time = :next_time, failures = :failures,
        error_reason = :error_reason, error_message = :error_message
    where organization_id = :organization_id and post_job_id = :post_job_id and fence = :fence
""")

_HANDLE = text("""
    select handle from preparation where organization_id = :organization_id and post_job_id = :id
""")

_IS_ONLY_HANDLE = text("""
    select exists (
        select from preparation p
        join post_job j on j.organization_id = p.organization_id and j.id = p.post_job_id
        join content k on k.organization_id = j.organization_id and k.draft_id = j.draft_id
        where p.organization_id = :organization_id and p.post_job_id = :id and p.expire_time > :now
            and (p.content_digest, p.run) = (k.content_digest, j.run)
    )
""")

_ERRORS = text("""
    select p.organization_id, p.post_job_id, p.error_reason, p.error_message
    from unnest(cast(:organization_ids as text[]), cast(:ids as text[])) as wanted (organization_id, id)
    join preparation p on p.organization_id = wanted.organization_id and p.post_job_id = wanted.id
""")

# Nothing of these can be published or looked up any more: a further run is prepared again. A preparation whose post may
# be out stays, for its handle tells whether it is.
_DROP = text(f"""
    with over as materialized (
        select p.organization_id, p.post_job_id
        from preparation p
        join post_job j on j.organization_id = p.organization_id and j.id = p.post_job_id
        where {LAST_USE} < :before and p.next_time is null
            and j.state in ('PUBLISHED', 'FAILED', 'MISSED', 'CANCELED')
        limit :limit for update of p skip locked
    )
    delete from preparation p using over
    where p.organization_id = over.organization_id and p.post_job_id = over.post_job_id
""")

_POOL = 500


async def ask_for(connection: AsyncConnection, jobs: Iterable[Key], *, now: datetime) -> None:
    """Has these jobs prepared, or looked at again if that was done before."""
    keys = key_arrays(jobs, "ids")
    if keys["ids"]:
        await connection.execute(_ASK, keys | {"now": now})


async def void_preparation(connection: AsyncConnection, job: Key, *, now: datetime) -> None:
    """Forgets what was prepared for a job, whose attempts are known not to have published it, and asks for another."""
    await connection.execute(_VOID, {"organization_id": job[0], "id": job[1], "now": now})


async def ask_ahead(
    connection: AsyncConnection, providers: Sequence[str], *, after: datetime, until: datetime, now: datetime
) -> int:
    """Has the approved jobs prepared whose time lies in that span. Returns their number."""
    names = {"providers": list(providers)}
    if not (await connection.execute(_IS_ONE_PREPARING, names)).scalar_one():
        return 0
    return (await connection.execute(_ASK_AHEAD, names | {"after": after, "until": until, "now": now})).rowcount


async def take_preparations(
    connection: AsyncConnection,
    provider: str,
    *,
    after: str,
    now: datetime,
    lease_end: datetime,
    limit: int,
    busy: Sequence[str] = (),
) -> list[Preparation]:
    """Takes preparations that are due, one of each organization behind `after` that is not `busy`."""
    names = {"provider": provider, "after": after, "now": now, "lease_end": lease_end, "limit": limit}
    taken = await connection.execute(_TAKE, {**names, "busy": list(busy), "pool": _POOL})
    return [_preparation(row) for row in taken]


async def extend_lease(connection: AsyncConnection, taken: Preparation, *, lease_end: datetime) -> None:
    names = {"organization_id": taken.organization_id, "id": taken.post_job_id, "fence": taken.fence}
    await connection.execute(_EXTEND, names | {"lease_end": lease_end})


async def source_of(connection: AsyncConnection, taken: Preparation) -> Source:
    """Returns what is to be prepared: the bytes that a claim would send now."""
    names = {"organization_id": taken.organization_id, "id": taken.post_job_id}
    fields = (await connection.execute(_SOURCE, names)).one()._asdict()
    return Source(**fields | {"settings": json.loads(fields["settings"])})


async def save_preparation(connection: AsyncConnection, preparation: Preparation) -> bool:
    """Writes a preparation, unless another process has taken it since. Returns whether it was written."""
    values = {field.name: getattr(preparation, field.name) for field in fields(Preparation)}
    return (await connection.execute(_SAVE, values)).rowcount == 1


async def handle_of(connection: AsyncConnection, job: Key) -> str:
    """Returns what was prepared for a job; empty if nothing was."""
    names = {"organization_id": job[0], "id": job[1]}
    return (await connection.execute(_HANDLE, names)).scalar_one_or_none() or ""


async def is_only_handle(connection: AsyncConnection, job: Key, *, now: datetime) -> bool:
    """Returns whether no other handle can have been made since: this one is fresh, and of the newest content."""
    names = {"organization_id": job[0], "id": job[1], "now": now}
    found: bool = (await connection.execute(_IS_ONLY_HANDLE, names)).scalar_one()
    return found


async def drop_preparations(connection: AsyncConnection, *, before: datetime, limit: int) -> int:
    """Deletes preparations of ended posts that were of no more use then. Returns their number."""
    return (await connection.execute(_DROP, {"before": before, "limit": limit})).rowcount


async def answer_media(
    connection: AsyncConnection, judged: Collection[Judged], *, now: datetime
) -> dict[Key, tuple[str, str]]:
    """Has the jobs prepared that wait for it.

    Returns for the others the reason, and the words, with which the provider refused that.
    """
    await ask_for(connection, [each.key for each in judged if each.verdict is Verdict.MEDIA], now=now)
    refused = key_arrays([each.key for each in judged if each.verdict is Verdict.MEDIA_REFUSED], "ids")
    rows = await connection.execute(_ERRORS, refused) if refused["ids"] else ()
    return {(row.organization_id, row.post_job_id): (row.error_reason, row.error_message) for row in rows}


def _preparation(row: Row[Any]) -> Preparation:
    return Preparation(**row._asdict() | {"state": PreparationState(row.state)})
