"""The lines in which deliveries wait: one for the e-mails of an organization, and one for each webhook.

A line has one turn at a time, in one process. So a receiver that hangs holds up nothing but its own line, and lines
take their turns in the order of their times, no matter how long they are.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

_MAIL = "receiver = ''"
_WEBHOOK = "receiver <> ''"
_WAITS = "next_time is not null and next_time <= :now"
_IS_ONE_DUE = """(
    exists (select from notification_line where {kind} and not slow and {waits})
    or exists (select from notification_line where {kind} and slow and {waits})
)"""
IS_MAIL_DUE: Final = _IS_ONE_DUE.format(kind=_MAIL, waits=_WAITS)
IS_WEBHOOK_DUE: Final = _IS_ONE_DUE.format(kind=_WEBHOOK, waits=_WAITS)

# An absent row cannot be locked.
_ADD = text("""
    insert into notification_line (organization_id, receiver)
    select organization_id, '' from unnest(cast(:organization_ids as text[])) as w (organization_id)
    order by organization_id on conflict do nothing
""")
_LOCK_MAIL = text("""
    select organization_id, hour_time, hour_mails from notification_line
    where organization_id = any(cast(:organization_ids as text[])) and receiver = ''
    order by organization_id for update
""")
_COUNT_MAILS = text("""
    update notification_line as line set hour_time = :hour_time, hour_mails = w.mails
    from unnest(cast(:organization_ids as text[]), cast(:mails as integer[])) as w (organization_id, mails)
    where line.organization_id = w.organization_id and line.receiver = ''
""")
# A line in its turn looks for itself, under the lock of its row, what came meanwhile.
_WAKE = text("""
    insert into notification_line as line (organization_id, receiver, next_time)
    select organization_id, receiver, due_time
    from unnest(cast(:organization_ids as text[]), cast(:receivers as text[]), cast(:due_times as timestamptz[]))
        as w (organization_id, receiver, due_time)
    order by organization_id, receiver
    on conflict (organization_id, receiver) do update set next_time = least(line.next_time, excluded.next_time)
    where line.lease_end is null
""")
_CLAIM = """
    with due as materialized (
        select organization_id, receiver, next_time, slow,
            row_number() over (partition by organization_id order by next_time, receiver) as place
        from (
            (select organization_id, receiver, next_time, slow from notification_line
            where {kind} and not slow and {waits} and organization_id <> all(cast(:busy as text[]))
            order by slow, next_time limit :looked_at)
            union all
            (select organization_id, receiver, next_time, slow from notification_line
            where {kind} and slow and {waits} and organization_id <> all(cast(:busy as text[]))
            order by slow, next_time limit :looked_at)
        ) as both_speeds
    ),
    chosen as materialized (
        (select organization_id, receiver from due where not slow and place <= :most order by next_time limit :room)
        union all
        (select organization_id, receiver from due where slow and place <= :most order by next_time limit :slow_room)
    ),
    locked as materialized (
        select line.organization_id, line.receiver from chosen
        cross join lateral (
            select organization_id, receiver from notification_line
            where organization_id = chosen.organization_id and receiver = chosen.receiver and next_time <= :now
            limit 1 for update skip locked
        ) as line
    )
    update notification_line as line
    set fence = line.fence + 1, lease_end = :lease_end, next_time = :lease_end
    from locked where line.organization_id = locked.organization_id and line.receiver = locked.receiver
    returning line.organization_id, line.receiver, line.fence, line.failures, line.slow
"""
_CLAIM_MAIL = text(_CLAIM.format(kind=_MAIL, waits=_WAITS))
_CLAIM_WEBHOOKS = text(_CLAIM.format(kind=_WEBHOOK, waits=_WAITS))
_IS_LINE = "organization_id = :organization_id and receiver = :receiver"
_LOCK = text(f"select fence, failures from notification_line where {_IS_LINE} for update")
_NOTE = text(f"update notification_line set failures = :failures where {_IS_LINE}")
_FREE = text(f"""
    update notification_line set lease_end = null, slow = :slow,
        next_time = greatest(cast(:not_before as timestamptz), (
            select min(due_time) from delivery
            where organization_id = :organization_id and receiver = :receiver and state = 'WAITING'
        ))
    where {_IS_LINE}
""")
_NOTHING_WAITS = text(f"update notification_line set lease_end = null, next_time = null where {_IS_LINE}")
_DELETE = text(f"delete from notification_line where {_IS_LINE}")
_OLDEST = """
    select min(next_time) from (
        (select next_time from notification_line where {kind} and not slow and {waits} order by slow, next_time limit 1)
        union all
        (select next_time from notification_line where {kind} and slow and {waits} order by slow, next_time limit 1)
    ) as both_speeds
"""
_OLDEST_MAIL = text(_OLDEST.format(kind=_MAIL, waits=_WAITS))
_OLDEST_WEBHOOK = text(_OLDEST.format(kind=_WEBHOOK, waits=_WAITS))
_LOOKED_AT = 200

LineKey = tuple[str, str]
"""An organization and a receiver."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedLine:
    organization_id: str
    receiver: str
    fence: int
    failures: int
    slow: bool

    @property
    def key(self) -> LineKey:
        return self.organization_id, self.receiver


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """The turns that a process can take: of the lines of e-mails, or else of webhooks."""

    mail: bool
    quick: int
    # For receivers that answer slowly; they never take the room of others.
    slow: int
    # Of one organization.
    most: int
    # Organizations that have enough turns already.
    busy: tuple[str, ...] = ()


async def lock_mail_lines(
    connection: AsyncConnection, organization_ids: Iterable[str]
) -> dict[str, tuple[datetime | None, int]]:
    """Locks the lines of e-mails; returns how many mails each organization has had in which hour."""
    names = {"organization_ids": sorted(set(organization_ids))}
    if not names["organization_ids"]:
        return {}
    await connection.execute(_ADD, names)
    rows = await connection.execute(_LOCK_MAIL, names)
    return {row.organization_id: (row.hour_time, row.hour_mails) for row in rows}


async def count_mails(connection: AsyncConnection, mails: Mapping[str, int], *, hour: datetime) -> None:
    if mails:
        names = {"organization_ids": list(mails), "mails": list(mails.values()), "hour_time": hour}
        await connection.execute(_COUNT_MAILS, names)


async def wake_receivers(connection: AsyncConnection, due: Mapping[LineKey, datetime]) -> None:
    """Has lines look at what is due then, in the order of their keys."""
    if due:
        keys = sorted(due)
        names = {
            "organization_ids": [key[0] for key in keys],
            "receivers": [key[1] for key in keys],
            "due_times": [due[key] for key in keys],
        }
        await connection.execute(_WAKE, names)


async def claim_receivers(
    connection: AsyncConnection, room: Room, *, now: datetime, lease_end: datetime
) -> list[ClaimedLine]:
    """Begins the turns of due lines, as far as there is room."""
    names = {
        "room": room.quick,
        "slow_room": room.slow,
        "most": room.most,
        "busy": list(room.busy),
        "now": now,
        "lease_end": lease_end,
        "looked_at": _LOOKED_AT,
    }
    rows = await connection.execute(_CLAIM_MAIL if room.mail else _CLAIM_WEBHOOKS, names)
    return [ClaimedLine(**row._asdict()) for row in rows]


async def lock_receiver(connection: AsyncConnection, key: LineKey) -> tuple[int, int] | None:
    """Returns fence and failures of the line."""
    row = (await connection.execute(_LOCK, _names(key))).one_or_none()
    return None if row is None else (row.fence, row.failures)


async def note_failures(connection: AsyncConnection, key: LineKey, failures: int) -> None:
    await connection.execute(_NOTE, _names(key) | {"failures": failures})


async def free_receiver(connection: AsyncConnection, key: LineKey, *, slow: bool, not_before: datetime | None) -> None:
    """Ends the turn of a line that an earlier statement has locked, so that this one sees all that waits in it."""
    await connection.execute(_FREE, _names(key) | {"slow": slow, "not_before": not_before})


async def rest_receiver(connection: AsyncConnection, key: LineKey) -> None:
    """Ends the turn of a line in which nothing is to be sent."""
    await connection.execute(_NOTHING_WAITS, _names(key))


async def delete_receiver(connection: AsyncConnection, key: LineKey) -> None:
    await connection.execute(_DELETE, _names(key))


async def oldest_due(connection: AsyncConnection, *, mail: bool, now: datetime) -> datetime | None:
    """Returns since when the first of the due lines waits."""
    statement = _OLDEST_MAIL if mail else _OLDEST_WEBHOOK
    oldest: datetime | None = (await connection.execute(statement, {"now": now})).scalar_one()
    return oldest


def _names(key: LineKey) -> dict[str, str]:
    return {"organization_id": key[0], "receiver": key[1]}
