"""Reading what explains a slot: its account and its draft, and the slots around the slot times before it."""

from collections.abc import Sequence
from datetime import datetime

from queue_service.domain.circumstances import Circumstances
from queue_service.domain.late_policy import DEFAULT_POLICY, LateAction, LatePolicy
from queue_service.domain.passed_times import Filling
from queue_service.domain.slot import SPACING, QueueSlot, TakingBack
from servicekit.pg.session import Session, Statement

# A draft of version 0 has slots, but has not been announced.
_FIND = Statement("""
    select s.move_reason, s.taking_back, q.pause_time, coalesce(q.pauser, '') as pauser,
        coalesce(q.pause_reason, '') as pause_reason,
        coalesce(q.schedule_version > 0 and q.time_zone <> '' and not q.enabled, false) as is_disabled,
        a.is_connected, q.next_due_time, q.late_action, q.late_grace,
        coalesce(q.max_posts_per_day, 0) as max_posts_per_day,
        coalesce(q.time_zone, '') as time_zone, q.skipped_times, coalesce(d.category_id, '') as category_id,
        d.approved and d.version > 0 as is_approved
    from slot s
    left join lateral (
        select * from account_queue o
        where o.organization_id = s.organization_id and o.social_account_id = s.social_account_id offset 0
    ) as q on true
    left join lateral (
        select * from social_account o
        where o.organization_id = s.organization_id and o.id = s.social_account_id offset 0
    ) as a on true
    left join lateral (
        select * from draft o where o.organization_id = s.organization_id and o.id = s.draft_id offset 0
    ) as d on true
    where s.organization_id = :organization_id and s.id = :slot_id
""")
# LIMIT makes each of these an index lookup, as in `slots`.
_FILLING = Statement("""
    select wanted.schedule_time, near.id, near.draft_id
    from unnest(cast(:schedule_times as timestamptz[])) as wanted (schedule_time)
    cross join lateral (
        select s.id, s.draft_id from slot s
        where s.organization_id = :organization_id and s.social_account_id = :social_account_id
            and s.is_live and s.id <> :slot_id
            and s.schedule_time > wanted.schedule_time - cast(:spacing as interval)
            and s.schedule_time < wanted.schedule_time + cast(:spacing as interval)
        order by s.schedule_time limit 1
    ) as near
""")


async def find_circumstances(session: Session, organization_id: str, slot_id: str) -> Circumstances | None:
    """Returns what is known about a slot; None if there is no such slot."""
    row = await session.fetch_row(_FIND, {"organization_id": organization_id, "slot_id": slot_id})
    if row is None:
        return None
    return Circumstances(
        move_reason=row.move_reason,
        taking_back=TakingBack(row.taking_back),
        pause_time=row.pause_time,
        pauser=row.pauser,
        pause_reason=row.pause_reason,
        is_disabled=row.is_disabled,
        is_connected=row.is_connected,
        next_due_time=row.next_due_time,
        late_policy=LatePolicy(grace=row.late_grace, action=LateAction(row.late_action))
        if row.late_action
        else DEFAULT_POLICY,
        max_posts_per_day=row.max_posts_per_day,
        time_zone=row.time_zone,
        skipped_times=tuple(row.skipped_times or ()),
        category_id=row.category_id,
        is_approved=row.is_approved,
    )


async def find_filling(session: Session, slot: QueueSlot, times: Sequence[datetime]) -> dict[datetime, Filling]:
    """Returns another live slot of the account, less than a minute away, for each of the times that has one."""
    if not times:
        return {}
    names = {
        "organization_id": slot.organization_id,
        "social_account_id": slot.social_account_id,
        "slot_id": slot.id,
        "schedule_times": list(times),
        "spacing": SPACING,
    }
    return {time: Filling(slot_id, draft_id) for time, slot_id, draft_id in await session.fetch(_FILLING, names)}
