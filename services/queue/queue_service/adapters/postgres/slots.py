"""Statements on `slot` and `slot_target`, except for the hot path, which is in `dispatch` and `settlement`."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from types import SimpleNamespace

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from queue_service.adapters.postgres.rows import by_slot
from queue_service.domain.account import AccountKey
from queue_service.domain.command import REPEAT_DELAYS
from queue_service.domain.job import JobState
from queue_service.domain.listing import Filter, Position, list_states
from queue_service.domain.slot import COUNTED, SPACING, BlockingSlot, QueueSlot, SlotOrigin, SlotState, SlotTarget
from servicekit.pg.database import Transaction
from servicekit.pg.session import Session, Statement

# LIMIT makes each of these an index lookup: without it the planner may join with all live slots of the organization.
_NEAR = Statement("""
    select wanted.organization_id, wanted.social_account_id, wanted.schedule_time, near.id, near.schedule_time
    from unnest(
        cast(:organization_ids as text[]), cast(:social_account_ids as text[]), cast(:schedule_times as timestamptz[])
    ) as wanted (organization_id, social_account_id, schedule_time)
    cross join lateral (
        select s.id, s.schedule_time from slot s
        where s.organization_id = wanted.organization_id and s.social_account_id = wanted.social_account_id
            and s.is_live
            and s.schedule_time > wanted.schedule_time - cast(:spacing as interval)
            and s.schedule_time < wanted.schedule_time + cast(:spacing as interval)
        order by s.schedule_time limit 1
    ) as near
""")
# One state at a time: the planner expects ten look-ups of an array, and may read all slots of the organization instead.
_COUNTED = Statement("""
    select day.organization_id, day.social_account_id, day.local_date, found.slots
    from unnest(cast(:organization_ids as text[]), cast(:social_account_ids as text[]), cast(:dates as date[]),
        cast(:starts as timestamptz[]), cast(:ends as timestamptz[]))
        as day (organization_id, social_account_id, local_date, day_start, day_end)
    cross join lateral (
        select count(*) as slots
        from unnest(cast(:states as text[])) as counted (list_state)
        cross join lateral (
            select from slot s
            where s.organization_id = day.organization_id and s.social_account_id = day.social_account_id
                and s.list_state = counted.list_state
                and s.schedule_time >= day.day_start and s.schedule_time < day.day_end
            offset 0
        ) as each
    ) as found
""")

# The caller holds the locks of the accounts, so no claim overlooks a slot and the sequences of an account grow. A LIMIT
# that is unknown to the planner makes it expect a single row, and so look up each account.
_INSERT_SLOTS = Statement("""
    with queued as (
        update account_queue q set
            next_due_time = least(q.next_due_time, filled.first_time),
            -- Computed with older time zone data than Schedule has announced meanwhile.
            slots_behind = q.slots_behind or (q.time_zone <> '' and q.tzdata_version > filled.oldest_release),
            last_sequence = filled.last_sequence,
            arrangement = q.arrangement + filled.slots
        from (
            select * from unnest(
                cast(:queue_organization_ids as text[]), cast(:queue_account_ids as text[]),
                cast(:first_times as timestamptz[]), cast(:oldest_releases as text[]),
                cast(:last_sequences as bigint[]), cast(:added as integer[])
            ) as f (organization_id, social_account_id, first_time, oldest_release, last_sequence, slots)
            limit :queues
        ) as filled
        where q.organization_id = filled.organization_id and q.social_account_id = filled.social_account_id
    ),
    targeted as (
        insert into slot_target (organization_id, slot_id, channel, destination, post_job_id, job_version, external_url,
            error_message)
        select organization_id, slot_id, channel, destination, '', 0, '', ''
        from unnest(cast(:target_organization_ids as text[]), cast(:slot_ids as text[]), cast(:channels as text[]),
            cast(:destinations as text[])) as t (organization_id, slot_id, channel, destination)
    )
    insert into slot (organization_id, id, draft_id, social_account_id, schedule_time, state, origin, revision,
        emission, not_after, time_zone, local_date, local_time, content_revision, traceparent, create_time,
        update_time, nominal_local_time, tzdata_version, sequence, next_emit_at)
    select s.organization_id, s.id, s.draft_id, s.social_account_id, s.schedule_time, 'SCHEDULED', s.origin, 1, 0,
        s.not_after, s.time_zone, s.local_date, s.local_time, s.content_revision, s.traceparent,
        cast(:now as timestamptz), cast(:now as timestamptz), s.nominal, nullif(s.tzdata_version, ''), s.sequence,
        s.schedule_time + cast(:delay as interval)
    from unnest(
        cast(:organization_ids as text[]), cast(:ids as text[]), cast(:draft_ids as text[]),
        cast(:social_account_ids as text[]), cast(:schedule_times as timestamptz[]), cast(:origins as text[]),
        cast(:not_afters as timestamptz[]), cast(:time_zones as text[]), cast(:local_dates as date[]),
        cast(:local_times as time[]), cast(:content_revisions as bigint[]), cast(:traceparents as text[]),
        cast(:nominals as timestamp[]), cast(:tzdata_versions as text[]), cast(:sequences as bigint[])
    ) as s (organization_id, id, draft_id, social_account_id, schedule_time, origin, not_after, time_zone, local_date,
        local_time, content_revision, traceparent, nominal, tzdata_version, sequence)
""")

_SLOT = """
    s.organization_id, s.id, s.draft_id, s.social_account_id, s.schedule_time, s.state, s.origin, s.revision,
    s.not_after, s.time_zone, s.local_date, s.local_time, s.expected_time, s.publish_time, s.content_revision,
    s.traceparent, s.create_time, s.update_time, s.nominal_local_time, s.tzdata_version, s.sequence, s.state_reason
"""
_OF_TARGETS = """
    t.channel, t.destination, t.post_job_id, t.job_state, t.job_version, t.external_url, t.error_message,
    t.next_action_time, t.publish_time as target_publish_time, t.state_reason as target_state_reason
"""
_FIND_SLOTS = text(f"""
    select {_SLOT}, {_OF_TARGETS}
    from unnest(cast(:organization_ids as text[]), cast(:ids as text[])) as u (organization_id, id)
    join slot s on s.organization_id = u.organization_id and s.id = u.id
    join slot_target t on t.organization_id = s.organization_id and t.slot_id = s.id
    order by s.organization_id, s.id, t.channel, t.destination
""")
# Dispatched slots are found among the live ones: a list of them reads none later than `dispatched_until`.
_PAGE = f"""
    select {_SLOT}, {_OF_TARGETS}
    from (
        select chosen.* from unnest(cast(:list_states as text[])) as wanted (list_state)
        cross join lateral (
            select * from slot s
            where s.organization_id = :organization_id and s.list_state = wanted.list_state %s
                and s.state = any(cast(:states as text[])) and s.schedule_time <= case
                    when wanted.list_state = 'LIVE' then coalesce(cast(:dispatched_until as timestamptz), 'infinity')
                    else 'infinity' end
                and s.schedule_time < coalesce(cast(:end_time as timestamptz), 'infinity')
                and (s.schedule_time, s.id) > (:after_time, :after_id)
            order by s.schedule_time, s.id limit :size
        ) as chosen
        order by chosen.schedule_time, chosen.id limit :size
    ) as s
    join slot_target t on t.organization_id = s.organization_id and t.slot_id = s.id
    order by s.schedule_time, s.id, t.channel, t.destination
"""
_LIST = text(_PAGE % "")
_LIST_OF_ACCOUNT = text(_PAGE % "and s.social_account_id = :social_account_id")
_LIST_OF_DRAFT = text(f"""
    select {_SLOT}, {_OF_TARGETS}
    from (
        select * from slot s
        where s.organization_id = :organization_id and s.draft_id = :draft_id
            and s.state = any(cast(:states as text[]))
            and (:social_account_id = '' or s.social_account_id = :social_account_id)
            and s.schedule_time < coalesce(cast(:end_time as timestamptz), 'infinity')
            and (s.schedule_time, s.id) > (:after_time, :after_id)
        order by s.schedule_time, s.id limit :size
    ) as s
    join slot_target t on t.organization_id = s.organization_id and t.slot_id = s.id
    order by s.schedule_time, s.id, t.channel, t.destination
""")
# The newest slots of each draft, of which there are few.
_OF_DRAFTS = text(f"""
    select {_SLOT}, {_OF_TARGETS}
    from unnest(cast(:draft_ids as text[])) as u (id)
    cross join lateral (
        select * from slot s
        where s.organization_id = :organization_id and s.draft_id = u.id and (s.is_live or not :live_only)
        order by s.sequence desc limit :most
    ) as s
    join slot_target t on t.organization_id = s.organization_id and t.slot_id = s.id
    order by s.schedule_time, s.id, t.channel, t.destination
""")


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """A local day of an account, from its first instant to the first of the next day."""

    account: AccountKey
    local_date: date
    start: datetime
    end: datetime


async def find_near(
    session: Session, times: Sequence[tuple[AccountKey, datetime]]
) -> dict[tuple[AccountKey, datetime], BlockingSlot]:
    """Returns a live slot less than a minute away for each (account, time) that has one."""
    if not times:
        return {}
    result = await session.fetch(
        _NEAR,
        {
            "organization_ids": [organization for (organization, _), _ in times],
            "social_account_ids": [account for (_, account), _ in times],
            "schedule_times": [time for _, time in times],
            "spacing": SPACING,
        },
    )
    return {
        ((organization, account), wanted): BlockingSlot(slot_id=slot, social_account_id=account, schedule_time=time)
        for organization, account, wanted, slot, time in result
    }


async def count_slots(session: Session, days: Sequence[Day]) -> dict[tuple[AccountKey, date], int]:
    """Counts the slots of each day that use up its cap."""
    if not days:
        return {}
    result = await session.fetch(
        _COUNTED,
        {
            "organization_ids": [day.account[0] for day in days],
            "social_account_ids": [day.account[1] for day in days],
            "dates": [day.local_date for day in days],
            "starts": [day.start for day in days],
            "ends": [day.end for day in days],
            "states": list_states(COUNTED),
        },
    )
    return {((organization, account), day): slots for organization, account, day, slots in result}


async def insert_slots(tx: Transaction, slots: Sequence[QueueSlot], *, now: datetime) -> None:
    """Inserts new slots; the accounts are locked, and the slots of each have growing sequences."""
    targets = [(slot, target) for slot in slots for target in slot.targets]
    queues = defaultdict[AccountKey, list[QueueSlot]](list)
    for slot in slots:
        queues[slot.account].append(slot)
    await tx.execute(
        _INSERT_SLOTS,
        {
            "queue_organization_ids": [organization for organization, _ in queues],
            "queue_account_ids": [account for _, account in queues],
            "first_times": [min(slot.schedule_time for slot in new) for new in queues.values()],
            "oldest_releases": [min(slot.tzdata_version for slot in new) for new in queues.values()],
            "last_sequences": [new[-1].sequence for new in queues.values()],
            "added": [len(new) for new in queues.values()],
            "queues": len(queues),
            "now": now,
            "delay": REPEAT_DELAYS[0],
            "organization_ids": [slot.organization_id for slot in slots],
            "ids": [slot.id for slot in slots],
            "draft_ids": [slot.draft_id for slot in slots],
            "origins": [slot.origin for slot in slots],
            "content_revisions": [slot.content_revision for slot in slots],
            "traceparents": [slot.traceparent for slot in slots],
            "sequences": [slot.sequence for slot in slots],
            "social_account_ids": [slot.social_account_id for slot in slots],
            "schedule_times": [slot.schedule_time for slot in slots],
            "not_afters": [slot.not_after for slot in slots],
            "time_zones": [slot.time_zone for slot in slots],
            "local_dates": [slot.local_date for slot in slots],
            "local_times": [slot.local_time for slot in slots],
            "nominals": [slot.nominal for slot in slots],
            "tzdata_versions": [slot.tzdata_version for slot in slots],
            "target_organization_ids": [slot.organization_id for slot, _ in targets],
            "slot_ids": [slot.id for slot, _ in targets],
            "channels": [target.channel for _, target in targets],
            "destinations": [target.destination for _, target in targets],
        },
    )


async def find_slots(connection: AsyncConnection, keys: Sequence[tuple[str, str]]) -> list[QueueSlot]:
    """Reads slots by organization and id."""
    names = {"organization_ids": [organization for organization, _ in keys], "ids": [slot for _, slot in keys]}
    return [_slot(targets) for targets in by_slot(await connection.execute(_FIND_SLOTS, names))]


async def list_slots(
    connection: AsyncConnection, wanted: Filter, *, after: Position, size: int, dispatched_until: datetime | None
) -> list[QueueSlot]:
    """Reads a page of slots in the order of their times; `dispatched_until` is None for lists of SCHEDULED slots."""
    statement = _LIST_OF_DRAFT if wanted.draft_id else _LIST_OF_ACCOUNT if wanted.social_account_id else _LIST
    states, begin = wanted.states or tuple(SlotState), after.within(wanted)
    names: dict[str, object] = {
        "organization_id": wanted.organization_id,
        "states": list(states),
        "after_time": begin.schedule_time,
        "after_id": begin.slot_id,
        "end_time": wanted.end_time,
        "size": size,
    }
    if wanted.draft_id:
        names["draft_id"] = wanted.draft_id
    else:
        names |= {"list_states": list_states(states), "dispatched_until": dispatched_until}
    if wanted.draft_id or wanted.social_account_id:
        names["social_account_id"] = wanted.social_account_id
    return [_slot(targets) for targets in by_slot(await connection.execute(statement, names))]


async def find_draft_slots(
    connection: AsyncConnection, organization_id: str, draft_ids: Sequence[str], *, live_only: bool, most: int
) -> list[QueueSlot]:
    """Reads up to `most` newest slots of each draft, in the order of their times."""
    names = {"organization_id": organization_id, "draft_ids": list(draft_ids), "live_only": live_only, "most": most}
    return [_slot(targets) for targets in by_slot(await connection.execute(_OF_DRAFTS, names))]


def _slot(rows: Sequence[SimpleNamespace]) -> QueueSlot:
    row = rows[0]
    return QueueSlot(
        organization_id=row.organization_id,
        id=row.id,
        draft_id=row.draft_id,
        social_account_id=row.social_account_id,
        schedule_time=row.schedule_time,
        state=SlotState(row.state),
        origin=SlotOrigin(row.origin),
        revision=row.revision,
        sequence=row.sequence,
        targets=tuple(map(_slot_target, rows)),
        not_after=row.not_after,
        time_zone=row.time_zone,
        local_date=row.local_date,
        local_time=row.local_time,
        content_revision=row.content_revision,
        traceparent=row.traceparent,
        create_time=row.create_time,
        update_time=row.update_time,
        expected_time=row.expected_time,
        publish_time=row.publish_time,
        state_reason=row.state_reason,
        nominal=row.nominal_local_time,
        tzdata_version=row.tzdata_version or "",
    )


def _slot_target(row: SimpleNamespace) -> SlotTarget:
    return SlotTarget(
        channel=row.channel,
        destination=row.destination,
        job_id=row.post_job_id,
        job_state=row.job_state and JobState(row.job_state),
        job_version=row.job_version,
        external_url=row.external_url,
        error_message=row.error_message,
        state_reason=row.target_state_reason,
        next_action_time=row.next_action_time,
        publish_time=row.target_publish_time,
    )
