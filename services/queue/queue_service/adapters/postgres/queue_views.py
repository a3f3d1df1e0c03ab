"""Reading the queue of an account as callers see it, in one statement and without locks."""

from datetime import datetime
from typing import Any

from queue_service.domain.account import AccountKey
from queue_service.domain.late_policy import LateAction, LatePolicy
from queue_service.domain.policy import MOST_LEAD
from queue_service.domain.queue_view import LiveSlots, QueueView
from servicekit.pg.session import Row, Session, Statement

# The live slots are counted in `slot_live_time` alone; no other index has the pair of account and time. It lacks the
# state, so the rows of slots are read up to the latest time that a dispatched one can have: a day's worth of them, and
# those that are late.
_VIEW = Statement("""
    select q.arrangement, q.pause_time, q.pauser, q.pause_reason,
        q.hold_revision <> q.hold_stored_revision as is_pending, q.enabled and q.time_zone <> '' as is_enabled,
        q.time_zone, q.skip_next, q.skipped_times, q.late_action, q.late_grace, q.pace, a.is_connected,
        live.slots, near.dispatched, near.overdue, first.schedule_time as next_time,
        last.schedule_time as last_time
    from (select cast(:organization_id as text), cast(:social_account_id as text)) as u (organization_id, id)
    left join account_queue q on q.organization_id = u.organization_id and q.social_account_id = u.id
    left join social_account a on a.organization_id = u.organization_id and a.id = u.id
    cross join lateral (
        select count(*) as slots from slot s
        where s.organization_id = u.organization_id and s.social_account_id = u.id and s.is_live
            and (s.social_account_id, s.schedule_time) <= (u.id, 'infinity')
    ) as live
    cross join lateral (
        select count(*) filter (where s.state = 'DISPATCHED') as dispatched,
            count(*) filter (where s.state = 'SCHEDULED' and s.schedule_time <= :now) as overdue
        from slot s
        where s.organization_id = u.organization_id and s.social_account_id = u.id and s.is_live
            and (s.social_account_id, s.schedule_time) <= (u.id, cast(:dispatched_until as timestamptz))
    ) as near
    left join lateral (
        select s.schedule_time from slot s
        where s.organization_id = u.organization_id and s.social_account_id = u.id and s.is_live
        order by s.schedule_time limit 1
    ) as first on true
    left join lateral (
        select s.schedule_time from slot s
        where s.organization_id = u.organization_id and s.social_account_id = u.id and s.is_live
        order by s.schedule_time desc limit 1
    ) as last on true
""")


async def find_queue_view(session: Session, account: AccountKey, *, now: datetime) -> QueueView:
    """Returns the account's queue without its next free time."""
    organization_id, social_account_id = account
    names = {
        "organization_id": organization_id,
        "social_account_id": social_account_id,
        "now": now,
        "dispatched_until": now + MOST_LEAD,
    }
    [row] = await session.fetch(_VIEW, names)
    slots = LiveSlots(
        scheduled=row.slots - row.dispatched,
        dispatched=row.dispatched,
        overdue=row.overdue,
        next_time=row.next_time,
        last_time=row.last_time,
    )
    known = _of_queue(row, now) if row.arrangement is not None else {}
    return QueueView(social_account_id=social_account_id, is_connected=row.is_connected, slots=slots, **known)


def _of_queue(row: Row, now: datetime) -> dict[str, Any]:
    return {
        "etag": str(row.arrangement),
        "pause_time": row.pause_time,
        "pauser": row.pauser,
        "pause_reason": row.pause_reason,
        "is_hold_pending": row.is_pending,
        "schedule_enabled": row.is_enabled,
        "time_zone": row.time_zone,
        "skip_next": row.skip_next,
        "skipped_times": tuple(time for time in row.skipped_times if time > now),
        "late_policy": LatePolicy(grace=row.late_grace, action=LateAction(row.late_action)),
        "pace": row.pace,
    }
