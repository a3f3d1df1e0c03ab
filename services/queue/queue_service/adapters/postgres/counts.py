"""Counts for operators. Live slots are counted in an index; ended ones, of which there are too many, are estimated."""

from dataclasses import dataclass
from datetime import datetime

from queue_service.domain.command import LONGEST_DELAY
from servicekit.pg.session import Session, Statement

MOST_ORGANIZATIONS = 20

_LIVE = Statement("""
    select organization_id, count(*) as slots, cast(sum(count(*)) over () as bigint) as total
    from slot where is_live
    group by organization_id order by slots desc, organization_id limit :most
""")
# Every dispatched slot is due for a look within the longest pause, and so are those that will be dispatched by then.
_DISPATCHED = Statement("""
    select count(*) from slot where next_emit_at <= :until and state = 'DISPATCHED'
""")
_HELD_UP = Statement("""
    select count(*) filter (where pause_time is not null) as paused,
        count(*) filter (where not is_connected) as disconnected,
        count(*) filter (where schedule_version > 0 and time_zone <> '' and not enabled) as disabled
    from account_queue where is_held_up and next_due_time is not null
""")
_PENDING = Statement("""
    select (select count(*) from account_queue where hold_revision <> hold_stored_revision) as holds,
        (select count(*) from slot where taking_back <> '') as take_backs
""")
_ESTIMATES = Statement("""
    select ended.state, cast(greatest(c.reltuples, 0) * ended.share as bigint) as slots
    from pg_class c
    join pg_stats s on s.schemaname = c.relnamespace::regnamespace::text and s.tablename = c.relname
    cross join lateral unnest(s.most_common_vals::text::text[], s.most_common_freqs) as ended (state, share)
    where c.oid = 'slot'::regclass and s.attname = 'state'
""")


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    slots: int
    by_organization: dict[str, int]
    """Those with the most slots, first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """Holds that Publisher has not stored or released yet, and slots that it has not given back."""

    holds: int
    take_backs: int


async def count_live(session: Session, *, most: int = MOST_ORGANIZATIONS) -> Live:
    rows = await session.fetch(_LIVE, {"most": most})
    return Live(
        slots=rows[0].total if rows else 0, by_organization={organization: slots for organization, slots, _ in rows}
    )


async def count_dispatched(session: Session, *, horizon: datetime) -> int:
    """Counts the DISPATCHED slots, none of which is due after `horizon`."""
    counted: int = await session.fetch_value(_DISPATCHED, {"until": horizon + LONGEST_DELAY})
    return counted


async def count_held_up(session: Session) -> dict[str, int]:
    """Counts the accounts with SCHEDULED slots that dispatch passes over, by reason; one may have several."""
    row = await session.fetch_row(_HELD_UP)
    assert row is not None
    return {"paused": row.paused, "disconnected": row.disconnected, "disabled": row.disabled}


async def count_pending(session: Session) -> Pending:
    row = await session.fetch_row(_PENDING)
    assert row is not None
    return Pending(holds=row.holds, take_backs=row.take_backs)


async def estimate_by_state(session: Session) -> dict[str, int]:
    """Returns about how many slots are in each state, by PostgreSQL's statistics; none before their first analysis."""
    return {row.state: row.slots for row in await session.fetch(_ESTIMATES)}
