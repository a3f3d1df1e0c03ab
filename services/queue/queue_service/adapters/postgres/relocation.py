"""Statements that move slots after new time zone data. Accounts are locked before their slots, here as everywhere."""

from collections.abc import Sequence
from datetime import datetime
from types import SimpleNamespace

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from queue_service.adapters.postgres.first_scheduled import FIRST_SCHEDULED
from queue_service.adapters.postgres.plans import pin_plans_of
from queue_service.adapters.postgres.rows import by_slot, plain
from queue_service.domain.frontier import EPOCH
from queue_service.domain.job import KEPT
from queue_service.domain.relocation import MovedSlot, OutdatedAccount, OutdatedSlot, Relocated
from queue_service.domain.slot import MoveReason
from servicekit.pg.session import Session, Statement

# A thousand rows block the event loop for about ten milliseconds, in which no post is dispatched.
_PLACED_AT_ONCE = 500

_IS_ONE_BEHIND = Statement("""
    select exists (select from account_queue where slots_behind and tzdata_version <= :release)
""")
# Accounts that another process or an RPC has locked are skipped: the next step finds them. An account whose announced
# tzdata release is newer than this process's waits for a process that has it.
_LOCK_BEHIND = text("""
    select organization_id, social_account_id, tzdata_version from account_queue
    where slots_behind and tzdata_version <= :release
    order by tzdata_version limit :limit for update skip locked
""")
# A slot from before migration 0002 has neither nominal time nor tzdata release: its local time stands for both.
_LOCK_OUTDATED = text("""
    select s.organization_id, s.social_account_id, s.id, s.schedule_time, s.not_after, s.time_zone,
        case when s.origin = 'QUEUE' then coalesce(s.nominal_local_time, s.local_date + s.local_time) end as nominal
    from unnest(cast(:organization_ids as text[]), cast(:social_account_ids as text[]), cast(:releases as text[]))
        as u (organization_id, social_account_id, release)
    join slot s on s.organization_id = u.organization_id and s.social_account_id = u.social_account_id
        and s.is_live and s.state = 'SCHEDULED'
    where s.time_zone <> '' and coalesce(s.tzdata_version, '') < u.release
    order by s.organization_id, s.id for update of s
""")
_OTHERS = text("""
    select s.organization_id, s.social_account_id, s.schedule_time
    from unnest(cast(:organization_ids as text[]), cast(:social_account_ids as text[]), cast(:releases as text[]))
        as u (organization_id, social_account_id, release)
    join slot s on s.organization_id = u.organization_id and s.social_account_id = u.social_account_id
        and s.is_live
    where s.state <> 'SCHEDULED' or s.time_zone = '' or coalesce(s.tzdata_version, '') >= u.release
""")
# The unique index on live times checks each row as it is written, and the slots of an account mostly move to each
# other's times. So they are first shifted out of the way, all by the same length of time.
_LIFT = text("""
    update slot s set
        schedule_time = s.schedule_time + interval '1000000 days', not_after = s.not_after + interval '1000000 days'
    from unnest(cast(:organization_ids as text[]), cast(:ids as text[])) as u (organization_id, id)
    where s.organization_id = u.organization_id and s.id = u.id
""")
_PLACE = text("""
    with placed as (
        update slot s set
            schedule_time = r.schedule_time, not_after = r.not_after,
            local_date = coalesce(r.local_date, s.local_date), local_time = coalesce(r.local_time, s.local_time),
            nominal_local_time = r.nominal, tzdata_version = :release,
            revision = s.revision + r.is_moved::integer,
            next_emit_at = null, expected_time = case when not r.is_moved then s.expected_time end,
            move_reason = case when r.is_moved then 'ZONE_DATA' else s.move_reason end,
            update_time = case when r.is_moved then :now else s.update_time end
        from unnest(
            cast(:organization_ids as text[]), cast(:ids as text[]), cast(:schedule_times as timestamptz[]),
            cast(:not_afters as timestamptz[]), cast(:local_dates as date[]), cast(:local_times as time[]),
            cast(:nominals as timestamp[]), cast(:are_moved as boolean[]), cast(:previous_times as timestamptz[])
        ) as r (organization_id, id, schedule_time, not_after, local_date, local_time, nominal, is_moved, previous_time)
        where s.organization_id = r.organization_id and s.id = r.id
        returning s.*, r.is_moved, r.previous_time
    )
    select p.organization_id, p.id, p.revision, p.draft_id, p.social_account_id, p.sequence, p.schedule_time,
        p.previous_time, p.not_after, p.time_zone, p.nominal_local_time, p.traceparent, t.channel, t.destination
    from placed p join slot_target t on t.organization_id = p.organization_id and t.slot_id = p.id
        and (t.job_state is null or t.job_state <> all(cast(:kept as text[])))
    where p.is_moved
    order by p.organization_id, p.id, t.channel, t.destination
""")
# Slots that have moved may have left free times anywhere, so the search starts from the beginning again.
_CAUGHT_UP = text(f"""
    update account_queue q set
        slots_behind = false,
        next_due_time = ({FIRST_SCHEDULED}),
        search_from = case when u.is_changed then :epoch else q.search_from end,
        full_from = case when u.is_changed then :epoch else q.full_from end,
        full_until = case when u.is_changed then :epoch else q.full_until end,
        category_frontiers = case when u.is_changed then '{{}}' else q.category_frontiers end
    from unnest(cast(:organization_ids as text[]), cast(:social_account_ids as text[]), cast(:are_changed as boolean[]))
        as u (organization_id, social_account_id, is_changed)
    where q.organization_id = u.organization_id and q.social_account_id = u.social_account_id
""")


async def is_one_behind(session: Session, *, release: str) -> bool:
    found: bool = await session.fetch_value(_IS_ONE_BEHIND, {"release": release})
    return found


async def lock_behind(connection: AsyncConnection, *, release: str, limit: int) -> list[OutdatedAccount]:
    """Locks accounts with outdated slots that a process with this tzdata release can move."""
    return [
        OutdatedAccount(
            organization_id=row.organization_id,
            social_account_id=row.social_account_id,
            tzdata_version=row.tzdata_version,
        )
        for row in await connection.execute(_LOCK_BEHIND, {"release": release, "limit": limit})
    ]


async def lock_outdated(connection: AsyncConnection, accounts: Sequence[OutdatedAccount]) -> list[OutdatedSlot]:
    """Locks slots that were computed with older time zone data than Schedule has announced. The accounts are locked."""
    await pin_plans_of(connection)
    return [
        OutdatedSlot(
            organization_id=row.organization_id,
            social_account_id=row.social_account_id,
            slot_id=row.id,
            schedule_time=row.schedule_time,
            not_after=row.not_after,
            time_zone=row.time_zone,
            nominal=row.nominal,
        )
        for row in plain(await connection.execute(_LOCK_OUTDATED, _names(accounts)))
    ]


async def find_others(
    connection: AsyncConnection, accounts: Sequence[OutdatedAccount]
) -> list[tuple[tuple[str, str], datetime]]:
    """Returns account and instant of each live slot of the accounts that is not outdated."""
    found = await connection.execute(_OTHERS, _names(accounts))
    return [((row.organization_id, row.social_account_id), row.schedule_time) for row in plain(found)]


async def place(
    connection: AsyncConnection, relocated: Sequence[Relocated], *, release: str, now: datetime
) -> list[MovedSlot]:
    """Saves locked slots as computed with this tzdata release. Returns those that have moved."""
    await lift(connection, [(each.slot.organization_id, each.slot.slot_id) for each in relocated if each.is_moved])
    placed: list[MovedSlot] = []
    for first in range(0, len(relocated), _PLACED_AT_ONCE):
        piece = relocated[first : first + _PLACED_AT_ONCE]
        result = await connection.execute(
            _PLACE, _places(piece) | {"release": release, "kept": sorted(KEPT), "now": now}
        )
        placed += map(_moved, by_slot(result))
    return placed


async def lift(connection: AsyncConnection, slots: Sequence[tuple[str, str]]) -> None:
    """Shifts locked slots out of the way of those that get their times; they are placed next."""
    if slots:
        names = {"organization_ids": [organization for organization, _ in slots], "ids": [slot for _, slot in slots]}
        await connection.execute(_LIFT, names)


async def mark_caught_up(
    connection: AsyncConnection, accounts: Sequence[OutdatedAccount], *, changed: set[tuple[str, str]]
) -> None:
    """Records that the slots of locked accounts are up to date. Those of the accounts in `changed` have moved."""
    names = _names(accounts)
    del names["releases"]
    are_changed = [(each.organization_id, each.social_account_id) in changed for each in accounts]
    await connection.execute(_CAUGHT_UP, names | {"are_changed": are_changed, "epoch": EPOCH})


def _names(accounts: Sequence[OutdatedAccount]) -> dict[str, object]:
    return {
        "organization_ids": [each.organization_id for each in accounts],
        "social_account_ids": [each.social_account_id for each in accounts],
        "releases": [each.tzdata_version for each in accounts],
    }


def _places(relocated: Sequence[Relocated]) -> dict[str, object]:
    return {
        "organization_ids": [each.slot.organization_id for each in relocated],
        "ids": [each.slot.slot_id for each in relocated],
        "schedule_times": [each.schedule_time for each in relocated],
        "not_afters": [each.not_after for each in relocated],
        "local_dates": [each.local_date for each in relocated],
        "local_times": [each.local_time for each in relocated],
        "nominals": [each.slot.nominal for each in relocated],
        "are_moved": [each.is_moved for each in relocated],
        "previous_times": [each.slot.schedule_time for each in relocated],
    }


def _moved(rows: Sequence[SimpleNamespace]) -> MovedSlot:
    row = rows[0]
    return MovedSlot(
        organization_id=row.organization_id,
        id=row.id,
        revision=row.revision,
        draft_id=row.draft_id,
        social_account_id=row.social_account_id,
        sequence=row.sequence,
        schedule_time=row.schedule_time,
        previous_schedule_time=row.previous_time,
        not_after=row.not_after,
        time_zone=row.time_zone,
        nominal=row.nominal_local_time,
        traceparent=row.traceparent,
        reason=MoveReason.ZONE_DATA,
        targets=tuple((each.channel, each.destination) for each in rows),
    )
