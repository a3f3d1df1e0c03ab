"""The statements of dispatch: claim slots, claim repeats. Every post goes through them, and all of them take batches.

They follow three rules, each of them backed by measurements. Instants are parameters, never clock functions, because an
index bound must not be volatile. Rows are found by key from one materialized list, and two such lists are never joined,
because that is quadratic in the batch. Plans are pinned.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from queue_service.adapters.postgres.plans import pin_plans
from queue_service.domain.command import (
    ANSWERED_DELAY,
    HELD_DELAY,
    LONGEST_DELAY,
    OVERDUE_GRACE,
    REPEAT_DELAYS,
    Command,
    DueSlot,
    PlaceInLine,
    still_wanted,
)
from queue_service.domain.job import ANSWERED
from queue_service.domain.policy import Policy
from queue_service.domain.slot import LIVE, SlotState
from queue_service.domain.stream import Room
from servicekit.pg.database import Transaction
from servicekit.pg.session import Row, Session, Statement

# More slots than this are never due for a repeat at a time, unless an operator allows as many outstanding commands.
_MOST_DUE = 100_000

_NEXT_DUE = Statement("""
    select clock_timestamp(), (select min(due_time) from account_queue where due_time is not null)
""")
_NEXT_REPEAT = Statement("""
    select clock_timestamp(), (select min(next_emit_at) from slot where next_emit_at is not null),
        coalesce((select losses from publish_stream where name = :stream), 0)
""")

# Takes the oldest due accounts, in turns of their organizations. Accounts that another dispatcher or an RPC has locked
# are skipped: the next batch finds them. With statistics from a calm the index of due accounts looks empty, and each
# account would be looked for among all that are due: hence the sum, which that index cannot answer. Accounts with slots
# that their late policy moves first are passed over, because these slots are not to be claimed; see `reslot_late`.
_LOCK_DUE = Statement("""
    select q.organization_id, q.social_account_id,
        case when q.late_action = 'RESLOT' then cast(:now as timestamptz) - q.late_grace else 'epoch' end
    from (
        select organization_id, social_account_id, due_time,
            row_number() over (partition by organization_id order by due_time, social_account_id) as turn
        from (
            select organization_id, social_account_id, due_time from account_queue
            where due_time <= :horizon and organization_id <> all(cast(:filled as text[]))
                and (late_action <> 'RESLOT' or due_time + late_grace >= :now)
            order by due_time limit :pool
        ) as due
        order by turn, due_time, organization_id
    ) as ranked
    join account_queue q
        on q.organization_id = ranked.organization_id and q.social_account_id = ranked.social_account_id
    where q.due_time + interval '0' <= :horizon
    order by ranked.turn, ranked.due_time, ranked.organization_id
    limit :limit
    for update of q skip locked
""")

# In the order of the fields of Command, then the state of the job.
COMMAND = """
    c.organization_id, c.id, c.revision, c.emission, c.draft_id, c.social_account_id, t.channel, t.destination,
    c.schedule_time, c.not_after, c.content_revision, c.traceparent, c.sequence, c.time_zone, t.job_version,
    coalesce(t.job_state, ''), t.job_state
"""

# This is a separate statement, because its snapshot must be newer than the locks: otherwise it would overlook a slot
# added in between when it sets the account's next due time. It reads one due row more per account than may be claimed,
# and of its future slots only the first, however many there are: the first row left over gives the account's next due
# time. An account that has reached its limit of unanswered slots is checked again at `retry_at`, once for all its
# waiting slots. Slots from before `late_before` get other times first. A slot past its latest time does not count as
# unanswered: Publisher ends it, and if that report is lost, the account must not be stuck. With statistics from before
# a backlog all indexes look empty: so all lists are read in the order of `slot_live_time`, and their bounds are pairs,
# which no index without the account has. The update changes no column of an index, so it writes none: a slot has
# `next_emit_at` from the start, unless it was moved or the previous release has touched it. That one clears it, keeps
# it in a move, and makes it due after a loss of the stream.
_CLAIM = Statement(f"""
    with waiting as materialized (
        select a.organization_id, a.social_account_id, s.id, s.schedule_time,
            s.schedule_time < a.late_before as is_late,
            s.schedule_time <= :horizon and s.turn > :open_slots - o.slots as is_held,
            s.schedule_time <= :horizon and s.schedule_time >= a.late_before
                and s.turn <= least(:per_account, :open_slots - o.slots) and row_number() over (
                    order by s.schedule_time > :horizon, s.turn, s.schedule_time
                ) <= :limit as is_claimed
        from unnest(
            cast(:organization_ids as text[]), cast(:social_account_ids as text[]), cast(:late_befores as timestamptz[])
        ) as a (organization_id, social_account_id, late_before)
        cross join lateral (
            select count(*) as slots from (
                select from slot s
                where s.organization_id = a.organization_id and s.social_account_id = a.social_account_id
                    and s.is_live and (s.social_account_id, s.schedule_time) <= (a.social_account_id, :horizon)
                    and s.state = 'DISPATCHED' and not s.is_answered and s.not_after > :now
                order by s.schedule_time limit :open_slots
            ) as each
        ) as o
        left join lateral (
            select first.*, row_number() over (order by first.schedule_time) as turn
            from (
                (
                    select s.id, s.schedule_time from slot s
                    where s.organization_id = a.organization_id and s.social_account_id = a.social_account_id
                        and s.is_live and (s.social_account_id, s.schedule_time) <= (a.social_account_id, :horizon)
                        and s.state = 'SCHEDULED'
                    order by s.schedule_time limit cast(:per_account as bigint) + 1
                )
                union all
                (
                    select s.id, s.schedule_time from slot s
                    where s.organization_id = a.organization_id and s.social_account_id = a.social_account_id
                        and s.is_live and (s.social_account_id, s.schedule_time) > (a.social_account_id, :horizon)
                        and s.state = 'SCHEDULED'
                    order by s.schedule_time limit 1
                )
            ) as first
        ) as s on true
    ),
    advanced as (
        update account_queue q set next_due_time = remaining.next_due_time
        from (
            select organization_id, social_account_id,
                case when bool_or(is_held) and not bool_or(is_late)
                    then greatest(min(schedule_time) filter (where not is_claimed), :retry_at)
                    else min(schedule_time) filter (where not is_claimed) end as next_due_time
            from waiting group by organization_id, social_account_id
        ) as remaining
        where q.organization_id = remaining.organization_id and q.social_account_id = remaining.social_account_id
    ),
    claimed as (
        update slot s set
            state = 'DISPATCHED', emission = s.emission + 1, update_time = :now,
            next_emit_at = case when s.next_emit_at = s.schedule_time + cast(:delay as interval) then s.next_emit_at
                else greatest(s.schedule_time, :now) + cast(:delay as interval) end
        from waiting w
        where w.is_claimed and s.organization_id = w.organization_id and s.id = w.id and s.state = 'SCHEDULED'
        returning s.*
    )
    select {COMMAND}
    from claimed c join slot_target t on t.organization_id = c.organization_id and t.slot_id = c.id
""")

# Reads the slots whose commands wait for Publisher again and again, instead of writing to each when to look next. They
# are not more than the outstanding commands, but slots that are late and not dispatched are read, too: 0.2 s for a
# million. A first copy that was sent late is due from then on: the dispatch leaves the instant that the slot was given
# with its time, or it would write an index entry.
_DUE_REPEATS = Statement("""
    select organization_id, id, emission, due.next_emit_at, not_after, is_answered
    from slot cross join lateral (
        select case when emission = 1 and slot.next_emit_at = schedule_time + cast(:delay as interval)
            then greatest(slot.next_emit_at, update_time + cast(:delay as interval))
            else slot.next_emit_at end as next_emit_at
    ) as due
    where slot.next_emit_at <= :until and state = 'DISPATCHED' and due.next_emit_at <= :until
    order by slot.next_emit_at limit :limit
""")

_CLAIM_REPEATS = Statement(f"""
    with due as materialized (
        select s.organization_id, s.id
        from unnest(cast(:organization_ids as text[]), cast(:ids as text[]), cast(:emissions as integer[]))
            with ordinality as u (organization_id, id, emission, ordinal)
        join slot s on s.organization_id = u.organization_id and s.id = u.id
        where s.emission = u.emission and s.next_emit_at <= :now
        order by u.ordinal
        for update of s skip locked
    ),
    claimed as (
        update slot s set
            emission = s.emission + 1,
            next_emit_at = greatest(s.schedule_time, :now) + case
                when s.is_answered then cast(:answered_delay as interval)
                when s.not_after <= :now
                    then least(greatest(:now - s.not_after, cast(:answered_delay as interval)), :longest_delay)
                else (cast(:delays as interval[]))[least(s.emission + 1, cardinality(cast(:delays as interval[])))]
            end,
            overdue_time = case
                when s.not_after + cast(:grace as interval) <= :now then coalesce(s.overdue_time, :now)
            end
        from due o
        where s.organization_id = o.organization_id and s.id = o.id and s.state = 'DISPATCHED'
            and s.next_emit_at <= :now
        returning s.*
    )
    select {COMMAND}, c.overdue_time = :now as is_new_overdue
    from claimed c join slot_target t on t.organization_id = c.organization_id and t.slot_id = c.id
""")

# The targets of slots that have not been answered.
_UNANSWERED_TARGETS = text("""
    select t.organization_id, t.slot_id, t.channel, t.destination
    from unnest(cast(:organization_ids as text[]), cast(:ids as text[])) as u (organization_id, id)
    join slot_target t on t.organization_id = u.organization_id and t.slot_id = u.id
    where t.job_state is null or t.job_state <> all(cast(:answered as text[]))
""")

# When the slots next to these in the lines of their accounts have ended: the last one before, the first one after.
# LIMIT makes each an index lookup.
_PLACES = text("""
    select u.ordinal, s.social_account_id, s.schedule_time, s.update_time, before.update_time as moved_time,
        after.update_time as overtaken_time
    from unnest(cast(:organization_ids as text[]), cast(:ids as text[]))
        with ordinality as u (organization_id, id, ordinal)
    join slot s on s.organization_id = u.organization_id and s.id = u.id
    cross join lateral (
        select max(neighbor.update_time) as update_time
        from unnest(cast(:ended as text[])) as e (state)
        cross join lateral (
            select p.update_time from slot p
            where p.organization_id = s.organization_id and p.social_account_id = s.social_account_id
                and p.list_state = e.state and p.schedule_time < s.schedule_time
            order by p.schedule_time desc, p.id desc limit 1
        ) as neighbor
    ) as before
    cross join lateral (
        select max(neighbor.update_time) as update_time
        from unnest(cast(:ended as text[])) as e (state)
        cross join lateral (
            select p.update_time from slot p
            where p.organization_id = s.organization_id and p.social_account_id = s.social_account_id
                and p.list_state = e.state and p.schedule_time > s.schedule_time
            order by p.schedule_time, p.id limit 1
        ) as neighbor
    ) as after
    order by u.ordinal
""")

# The longer a post has waited, the longer the next pause, up to a bound. Publisher ends it at its latest time, wherever
# its line is, so Queue asks soon after that.
_PUT_OFF = text("""
    update slot s set next_emit_at = least(
        :now + least(greatest(:now - s.update_time, cast(:answered_delay as interval)), :longest_delay),
        s.not_after + cast(:answered_delay as interval)
    )
    from unnest(cast(:organization_ids as text[]), cast(:ids as text[]), cast(:emissions as integer[]))
        as u (organization_id, id, emission)
    where s.organization_id = u.organization_id and s.id = u.id and s.emission = u.emission
        and s.state = 'DISPATCHED' and s.is_answered and s.next_emit_at <= :now
""")

# A line that stands still may be lost as a whole: then its other posts need not wait for the ends of their pauses.
_ADVANCE_LINES = text("""
    update slot s set next_emit_at = :now
    from unnest(cast(:organization_ids as text[]), cast(:social_account_ids as text[]))
        as u (organization_id, social_account_id)
    where s.organization_id = u.organization_id and s.social_account_id = u.social_account_id
        and s.is_live and s.state = 'DISPATCHED' and s.is_answered
        and s.next_emit_at > cast(:now as timestamptz) + cast(:answered_delay as interval)
""")

# Makes repeats due in their old order: what was due sooner gets an earlier instant, and all instants lie before now.
# What is due after `until` is not dispatched yet.
_ADVANCE_UNANSWERED = Statement("""
    with page as materialized (
        select organization_id, id from slot
        where next_emit_at > :now and next_emit_at <= :until and state = 'DISPATCHED' and not is_answered
        order by next_emit_at limit :limit
        for update
    )
    update slot s set
        next_emit_at = :now - interval '1 minute' + least((s.next_emit_at - :now) / 1000, interval '59 seconds')
    from page
    where s.organization_id = page.organization_id and s.id = page.id and s.next_emit_at > :now
""")

_OVERDUE = text("""
    select count(*) as slots, min(not_after) as oldest from slot
    where overdue_time is not null and next_emit_at is not null
""")

_REPEAT_SOON = Statement("""
    update slot s set next_emit_at = :at
    from unnest(cast(:organization_ids as text[]), cast(:ids as text[]), cast(:emissions as integer[]))
        as u (organization_id, id, emission)
    where s.organization_id = u.organization_id and s.id = u.id and s.state = 'DISPATCHED'
        and s.emission = u.emission
""")


_JOB_STATE = len(Command._fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class Overdue:
    """The number of slots that should have ended, and the latest time of the oldest of them."""

    slots: int
    oldest: datetime | None


async def next_due_time(session: Session) -> tuple[datetime, datetime | None]:
    """Returns the database's time, and when the next account is due."""
    [(now, due)] = await session.fetch(_NEXT_DUE)
    return now, due


async def claim(tx: Transaction, *, now: datetime, horizon: datetime, room: Room, policy: Policy) -> list[Command]:
    """Marks slots that are due until `horizon` as DISPATCHED. Returns their commands, to be sent after the commit."""
    await pin_plans(tx)
    limit = min(room.size, policy.batch)
    names = {"now": now, "horizon": horizon, "pool": policy.pool, "limit": limit, "filled": list(room.filled)}
    accounts = await tx.fetch(_LOCK_DUE, names)
    if not accounts:
        return []
    rows = await tx.fetch(
        _CLAIM,
        {
            "organization_ids": [organization for organization, _, _ in accounts],
            "social_account_ids": [account for _, account, _ in accounts],
            "late_befores": [late_before for _, _, late_before in accounts],
            "now": now,
            "horizon": horizon,
            "limit": limit,
            "per_account": policy.per_account,
            "open_slots": policy.open_slots,
            "retry_at": horizon + HELD_DELAY,
            "delay": REPEAT_DELAYS[0],
        },
    )
    return commands_of(rows)


async def next_repeat_time(session: Session, stream: str) -> tuple[datetime, datetime | None, int]:
    """Returns the database's time, when the next slot is due for a repeat, and how often the stream has lost commands.

    All three are of one moment.
    """
    [(now, due, losses)] = await session.fetch(_NEXT_REPEAT, {"stream": stream})
    return now, due, losses


async def find_due_repeats(session: Session, *, until: datetime) -> list[DueSlot]:
    """Returns the slots whose commands are due for a repeat until then, the longest due first."""
    return list(
        map(
            DueSlot._make,
            await session.fetch(_DUE_REPEATS, {"until": until, "limit": _MOST_DUE, "delay": REPEAT_DELAYS[0]}),
        )
    )


async def find_unanswered_targets(
    connection: AsyncConnection, slots: Sequence[DueSlot]
) -> set[tuple[str, str, str, str]]:
    """Returns organization, slot, channel and destination of each target without an answer."""
    names = _keys(slots) | {"answered": sorted(ANSWERED)}
    del names["emissions"]
    return {tuple(row) for row in await connection.execute(_UNANSWERED_TARGETS, names)}


async def find_places(connection: AsyncConnection, slots: Sequence[DueSlot]) -> list[PlaceInLine]:
    """Returns how the lines of the slots' accounts have moved around each slot."""
    names = _keys(slots) | {"ended": sorted(frozenset(SlotState) - LIVE)}
    del names["emissions"]
    return [
        PlaceInLine(
            slot=slots[row.ordinal - 1],
            social_account_id=row.social_account_id,
            schedule_time=row.schedule_time,
            update_time=row.update_time,
            moved_time=row.moved_time,
            overtaken_time=row.overtaken_time,
        )
        for row in await connection.execute(_PLACES, names)
    ]


async def put_off(connection: AsyncConnection, slots: Sequence[DueSlot], *, now: datetime, longest: timedelta) -> None:
    """Puts off the repeats of slots that wait as they should, by `longest` at most."""
    names = {"now": now, "answered_delay": ANSWERED_DELAY, "longest_delay": longest}
    await connection.execute(_PUT_OFF, _keys(slots) | names)


async def advance_lines(connection: AsyncConnection, accounts: Collection[tuple[str, str]], *, now: datetime) -> None:
    """Makes the answered slots of the accounts due that were put off for long."""
    ordered = sorted(accounts)
    await connection.execute(
        _ADVANCE_LINES,
        {
            "organization_ids": [organization for organization, _ in ordered],
            "social_account_ids": [account for _, account in ordered],
            "now": now,
            "answered_delay": ANSWERED_DELAY,
        },
    )


async def claim_repeats(
    tx: Transaction, slots: Sequence[DueSlot], *, now: datetime
) -> tuple[list[Command], set[tuple[str, str]]]:
    """Returns the next copies of the slots' commands, and the slots that have just become overdue.

    Slots of which another process has sent that copy meanwhile get none.
    """
    await pin_plans(tx)
    names = {
        "now": now,
        "delays": list(REPEAT_DELAYS),
        "answered_delay": ANSWERED_DELAY,
        "longest_delay": LONGEST_DELAY,
        "grace": OVERDUE_GRACE,
    }
    rows = await tx.fetch(_CLAIM_REPEATS, _keys(slots) | names)
    return commands_of(rows), {row[:2] for row in rows if row.is_new_overdue}


async def repeat_soon(tx: Transaction, commands: Iterable[Command], *, at: datetime) -> None:
    """Makes the commands, which the stream did not store, due for a repeat at `at`."""
    slots = sorted({(each.organization_id, each.slot_id, each.emission) for each in commands})
    await pin_plans(tx)
    await tx.execute(
        _REPEAT_SOON,
        {
            "organization_ids": [organization for organization, _, _ in slots],
            "ids": [slot_id for _, slot_id, _ in slots],
            "emissions": [emission for _, _, emission in slots],
            "at": at,
        },
    )


async def advance_unanswered(tx: Transaction, *, now: datetime, lead: timedelta, limit: int) -> int:
    """Makes slots with unanswered commands due for a repeat now. Returns how many, at most `limit`."""
    await pin_plans(tx)
    return await tx.execute(_ADVANCE_UNANSWERED, {"now": now, "until": now + lead + LONGEST_DELAY, "limit": limit})


async def find_overdue(connection: AsyncConnection) -> Overdue:
    row = (await connection.execute(_OVERDUE)).one()
    return Overdue(slots=row.slots, oldest=row.oldest)


def _keys(slots: Sequence[DueSlot]) -> dict[str, Any]:
    return {
        "organization_ids": [slot.organization_id for slot in slots],
        "ids": [slot.slot_id for slot in slots],
        "emissions": [slot.emission for slot in slots],
    }


def commands_of(rows: Sequence[Row]) -> list[Command]:
    """Reads rows of `COMMAND`."""
    if all(row[_JOB_STATE] is None for row in rows):
        return [Command._make(row[:_JOB_STATE]) for row in rows]
    slots = defaultdict[tuple[Any, ...], list[Row]](list)
    for row in rows:
        slots[row[:2]].append(row)
    return [Command._make(row[:_JOB_STATE]) for targets in slots.values() for row in still_wanted(targets)]
