"""Statements that read the queue of an account, and rearrange it.

The account is locked before its slots, here as everywhere. SCHEDULED slots are locked, too, in the order of their keys,
because reports settle slots without the account's lock. Dispatched ones are not: settling must not wait for a long
rearrangement.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from queue_service.adapters.postgres.first_scheduled import FIRST_SCHEDULED
from queue_service.adapters.postgres.relocation import lift
from queue_service.domain.account import AccountKey, AccountQueue
from queue_service.domain.arrangement import CanceledSlot, Cancellation, Move, SeatedSlot
from queue_service.domain.command import REPEAT_DELAYS
from queue_service.domain.job import KEPT
from queue_service.domain.relocation import MovedSlot
from queue_service.domain.reordering import Order
from queue_service.domain.seat import Seat
from queue_service.domain.slot import COUNTED, LIVE, CancelReason, MoveReason, SlotOrigin, SlotState, TakingBack
from servicekit.pg.database import Transaction
from servicekit.pg.session import Row, Session, Statement

# A thousand rows block the event loop for about ten milliseconds, in which no post is dispatched.
AT_ONCE = 500
_STATES = {state.value: state for state in SlotState}
_ORIGINS = {origin.value: origin for origin in SlotOrigin}

_SEAT = """
    select s.id, s.draft_id, s.state, s.schedule_time, s.origin, s.time_zone, s.local_date, s.local_time,
        s.nominal_local_time, coalesce(s.tzdata_version, ''), coalesce(d.category_id, ''), (
            select coalesce(min(t.post_job_id), '') from slot_target t
            where t.organization_id = s.organization_id and t.slot_id = s.id and t.sent_now
        )"""
_OF_DRAFT = "left join draft d on d.organization_id = s.organization_id and d.id = s.draft_id"
# The pair is a bound of `slot_live_time` only: other partial indexes of live slots would read the whole organization.
_SEATED = f"""
    {_SEAT}
    from slot s {_OF_DRAFT}
    where s.organization_id = :organization_id and s.social_account_id = :social_account_id and s.is_live
        and (s.social_account_id, s.schedule_time) >= (:social_account_id, '-infinity')
"""
_FIND_LIVE = Statement(f"{_SEATED} order by s.schedule_time")
_LOCK_SCHEDULED = Statement(f"{_SEATED} and s.state = 'SCHEDULED' order by s.id for update of s")
_FIND_DISPATCHED = Statement(f"{_SEATED} and s.state <> 'SCHEDULED'")
_FIND_ONE = Statement(f"""
    {_SEAT}, s.taking_back
    from slot s {_OF_DRAFT}
    where s.organization_id = :organization_id and s.id = :id
""")
_FIND_ACCOUNT = Statement("select social_account_id from slot where organization_id = :organization_id and id = :id")
_FIND_COUNTED = Statement("""
    select s.schedule_time from unnest(cast(:states as text[])) as counted (list_state)
    cross join lateral (
        select s.schedule_time from slot s
        where s.organization_id = :organization_id and s.social_account_id = :social_account_id
            and s.list_state = counted.list_state and s.schedule_time >= :since
        offset 0
    ) as s
""")
_COUNT_CLEARED = Statement("""
    select count(*) from slot
    where organization_id = :organization_id and social_account_id = :social_account_id and list_state = 'CANCELED'
        and state_reason = :reason and update_time >= :since
""")
# One of the two lists is empty. A draft may have had several slots on the account: the newest one counts.
_FIND_NAMED = Statement("""
    select s.id, s.draft_id, s.state from unnest(cast(:ids as text[])) as u (id)
    join slot s on s.organization_id = :organization_id and s.id = u.id
    where (s.social_account_id = :social_account_id) is true
    union all
    select found.id, found.draft_id, found.state from unnest(cast(:draft_ids as text[])) as u (id)
    cross join lateral (
        select s.id, s.draft_id, s.state from slot s
        where s.organization_id = :organization_id and s.draft_id = u.id
            and (s.social_account_id = :social_account_id) is true
        order by s.sequence desc limit 1
    ) as found
""")

_ANNOUNCED = """
    c.organization_id, c.id, c.revision, c.draft_id, c.social_account_id, c.sequence, c.schedule_time, c.traceparent,
    t.channel, t.destination
"""
# The state is checked again although the slots are locked: an arrangement never overwrites a report. In the list
# LIMIT, which is unknown to the planner, makes it look up each slot.
_PLACE = Statement(f"""
    with changed as (
        update slot s set
            schedule_time = r.schedule_time, not_after = r.not_after, origin = r.origin, time_zone = r.time_zone,
            local_date = r.local_date, local_time = r.local_time, nominal_local_time = r.nominal,
            tzdata_version = nullif(r.tzdata_version, ''), revision = s.revision + 1, move_reason = r.reason,
            next_emit_at = r.schedule_time + cast(:delay as interval), expected_time = null, update_time = :now
        from (
            select * from unnest(
                cast(:ids as text[]), cast(:schedule_times as timestamptz[]), cast(:not_afters as timestamptz[]),
                cast(:origins as text[]), cast(:time_zones as text[]), cast(:local_dates as date[]),
                cast(:local_times as time[]), cast(:nominals as timestamp[]), cast(:tzdata_versions as text[]),
                cast(:reasons as text[])
            ) as r (id, schedule_time, not_after, origin, time_zone, local_date, local_time, nominal, tzdata_version,
                reason)
            limit :slots
        ) as r
        where s.organization_id = :organization_id and s.id = r.id and s.state = 'SCHEDULED'
        returning s.*
    )
    select {_ANNOUNCED}, c.not_after, c.time_zone, c.nominal_local_time
    from changed c join slot_target t on t.organization_id = c.organization_id and t.slot_id = c.id
        and (t.job_state is null or t.job_state <> all(cast(:kept as text[])))
    order by c.schedule_time, c.id, t.channel, t.destination
""")
_CANCEL = Statement(f"""
    with changed as (
        update slot s set
            state = 'CANCELED', state_reason = r.reason, revision = s.revision + 1, next_emit_at = null,
            expected_time = null, update_time = :now
        from (
            select * from unnest(cast(:ids as text[]), cast(:reasons as text[])) as r (id, reason) limit :slots
        ) as r
        where s.organization_id = :organization_id and s.id = r.id and s.state = 'SCHEDULED'
        returning s.*
    )
    select {_ANNOUNCED}, c.state_reason
    from changed c join slot_target t on t.organization_id = c.organization_id and t.slot_id = c.id
    order by c.schedule_time, c.id, t.channel, t.destination
""")
_SAVE = Statement(f"""
    update account_queue q set
        arrangement = q.arrangement + cast(:changes as integer),
        next_due_time = ({FIRST_SCHEDULED}),
        -- Computed with older time zone data than Schedule has announced meanwhile.
        slots_behind = q.slots_behind
            or (q.time_zone <> '' and coalesce(q.tzdata_version > cast(:oldest_release as text), false))
    where q.organization_id = :organization_id and q.social_account_id = :social_account_id
""")


async def find_seated(session: Session, account: AccountKey) -> tuple[SeatedSlot, ...]:
    """Reads the account's live slots, earliest first, without locks."""
    return tuple(map(_seated, await session.fetch(_FIND_LIVE, _key(account))))


async def lock_seated(tx: Transaction, account: AccountKey) -> tuple[SeatedSlot, ...]:
    """Returns the live slots of a locked account, earliest first. Locks those that are SCHEDULED."""
    scheduled = map(_seated, await tx.fetch(_LOCK_SCHEDULED, _key(account)))
    dispatched = map(_seated, await tx.fetch(_FIND_DISPATCHED, _key(account)))
    return tuple(sorted([*scheduled, *dispatched], key=lambda slot: slot.time))


async def find_account(session: Session, organization_id: str, slot_id: str) -> str | None:
    """Returns the account of a slot, which it has forever."""
    found = await session.fetch(_FIND_ACCOUNT, {"organization_id": organization_id, "id": slot_id})
    return found[0][0] if found else None


async def find_one(session: Session, organization_id: str, slot_id: str) -> tuple[SeatedSlot, TakingBack]:
    """Returns a slot that exists, live or not, with the seat that it has or had, and whether it is taken back."""
    [row] = await session.fetch(_FIND_ONE, {"organization_id": organization_id, "id": slot_id})
    *seat, taking_back = row
    return _seated(seat), TakingBack(taking_back)


async def find_counted(session: Session, account: AccountKey, *, since: datetime) -> tuple[datetime, ...]:
    """Returns the times of ended slots that use up the daily cap."""
    names = _key(account) | {"states": sorted(COUNTED - LIVE), "since": since}
    return tuple(time for (time,) in await session.fetch(_FIND_COUNTED, names))


async def count_cleared(session: Session, account: AccountKey, *, since: datetime) -> int:
    """Counts the slots that ClearQueue has canceled since then."""
    names = _key(account) | {"reason": CancelReason.CLEARED, "since": since}
    return int(await session.fetch_value(_COUNT_CLEARED, names))


async def find_states(
    session: Session, account: AccountKey, names: Sequence[str], *, are_drafts: bool
) -> dict[str, SlotState]:
    """Returns the states of the account's slots with these ids, or of the newest slots of these drafts."""
    if not names:
        return {}
    given = {"ids": [] if are_drafts else list(names), "draft_ids": list(names) if are_drafts else []}
    rows = await session.fetch(_FIND_NAMED, _key(account) | given)
    return {draft_id if are_drafts else slot_id: _STATES[state] for slot_id, draft_id, state in rows}


async def find_ended(
    session: Session, account: AccountKey, order: Order, live: Iterable[SeatedSlot]
) -> dict[str, SlotState]:
    """Returns the states of the ended slots that an order names."""
    known = {order.name_of(slot) for slot in live}
    unknown = [name for name in order.names if name not in known]
    return await find_states(session, account, unknown, are_drafts=order.is_by_draft)


async def lift_moving(tx: Transaction, account: AccountKey, moves: Sequence[Move]) -> None:
    """Gets those slots out of the way whose times other ones get.

    The unique index on live times checks each row as it is written.
    """
    wanted = {move.seat.time for move in moves}
    organization_id, _ = account
    await lift(tx.connection, [(organization_id, move.slot.slot_id) for move in moves if move.slot.time in wanted])


async def place_slots(
    tx: Transaction,
    queue: AccountQueue,
    account: AccountKey,
    moves: Sequence[Move],
    *,
    late_limit: timedelta,
    now: datetime,
) -> list[MovedSlot]:
    """Gives locked slots, which have been lifted, their seats."""
    names = _seats([move.seat for move in moves]) | {
        "organization_id": account[0],
        "ids": [move.slot.slot_id for move in moves],
        "not_afters": [queue.latest(move.seat.time, late_limit) for move in moves],
        "reasons": [move.reason for move in moves],
        "delay": REPEAT_DELAYS[0],
        "slots": len(moves),
        "kept": sorted(KEPT),
        "now": now,
    }
    before = {move.slot.slot_id: move for move in moves}
    return [_moved(rows, before[rows[0].id]) for rows in _grouped(await tx.fetch(_PLACE, names))]


async def cancel_slots(
    tx: Transaction, account: AccountKey, cancellations: Sequence[Cancellation], *, now: datetime
) -> list[CanceledSlot]:
    names = {
        "organization_id": account[0],
        "ids": [each.slot.slot_id for each in cancellations],
        "reasons": [each.reason for each in cancellations],
        "slots": len(cancellations),
        "now": now,
    }
    return [_canceled(rows) for rows in _grouped(await tx.fetch(_CANCEL, names))]


async def save_arrangement(tx: Transaction, account: AccountKey, *, oldest_release: str | None, changes: int) -> None:
    """Records on the locked account that its slots have changed. `oldest_release` is that of their seats."""
    await tx.execute(_SAVE, _key(account) | {"oldest_release": oldest_release, "changes": changes})


def _key(account: AccountKey) -> dict[str, Any]:
    return {"organization_id": account[0], "social_account_id": account[1]}


def _seats(seats: Sequence[Seat]) -> dict[str, Any]:
    return {
        "schedule_times": [seat.time for seat in seats],
        "origins": [seat.origin for seat in seats],
        "time_zones": [seat.time_zone for seat in seats],
        "local_dates": [seat.local_date for seat in seats],
        "local_times": [seat.local_time for seat in seats],
        "nominals": [seat.nominal for seat in seats],
        "tzdata_versions": [seat.tzdata_version for seat in seats],
    }


def _seated(row: Iterable[Any]) -> SeatedSlot:
    slot_id, draft_id, state, time, origin, zone, local_date, local_time, nominal, release, *more = row
    seat = Seat(time, _ORIGINS[origin], zone, local_date, local_time, nominal, release)
    return SeatedSlot(slot_id, draft_id, _STATES[state], seat, *more)


def _grouped(rows: Sequence[Row]) -> list[list[Row]]:
    """Groups rows of slots joined with their targets by slot."""
    slots: dict[str, list[Row]] = {}
    for row in rows:
        slots.setdefault(row.id, []).append(row)
    return list(slots.values())


def _moved(rows: Sequence[Row], move: Move) -> MovedSlot:
    row = rows[0]
    return MovedSlot(
        organization_id=row.organization_id,
        id=row.id,
        revision=row.revision,
        draft_id=row.draft_id,
        social_account_id=row.social_account_id,
        sequence=row.sequence,
        schedule_time=row.schedule_time,
        previous_schedule_time=move.slot.time,
        not_after=row.not_after,
        time_zone=row.time_zone,
        nominal=row.nominal_local_time,
        traceparent=row.traceparent,
        reason=MoveReason(move.reason),
        targets=tuple((each.channel, each.destination) for each in rows),
    )


def _canceled(rows: Sequence[Row]) -> CanceledSlot:
    row = rows[0]
    return CanceledSlot(
        organization_id=row.organization_id,
        id=row.id,
        revision=row.revision,
        draft_id=row.draft_id,
        social_account_id=row.social_account_id,
        sequence=row.sequence,
        schedule_time=row.schedule_time,
        traceparent=row.traceparent,
        reason=CancelReason(row.state_reason),
        targets=tuple((each.channel, each.destination) for each in rows),
    )
