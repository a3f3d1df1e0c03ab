"""The SQL of account schedules: one method per question."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from civil.weekly import WeeklySlot
from civil.zones import find_zone
from schedule_service.domain.account_schedule import AccountSchedule, Timetable

_MINUTES_OF_DAY = 24 * 60

_FIND = text("""
    select organization_id, social_account_id, name, time_zone, weekly_slots, max_posts_per_day, enabled,
        version, create_time, update_time
    from account_schedule where organization_id = :organization_id and social_account_id = :social_account_id
""")
# On the name and not the row, because the row may not be there yet.
_LOCK = text("""
    select pg_advisory_xact_lock(hashtextextended(:organization_id || '/' || :social_account_id, 0))
""")
_SAVE = text("""
    insert into account_schedule (organization_id, social_account_id, name, time_zone, weekly_slots, max_posts_per_day,
        enabled, version, create_time, update_time)
    values (:organization_id, :social_account_id, :name, :time_zone, cast(:weekly_slots as smallint[]),
        :max_posts_per_day, :enabled, :version, :create_time, :update_time)
    on conflict (organization_id, social_account_id) do update set name = excluded.name,
        time_zone = excluded.time_zone, weekly_slots = excluded.weekly_slots,
        max_posts_per_day = excluded.max_posts_per_day, enabled = excluded.enabled,
        version = excluded.version, update_time = excluded.update_time
""")


async def find(connection: AsyncConnection, organization_id: str, social_account_id: str) -> AccountSchedule | None:
    names = {"organization_id": organization_id, "social_account_id": social_account_id}
    row = (await connection.execute(_FIND, names)).one_or_none()
    return _schedule(row) if row else None


async def lock(connection: AsyncConnection, organization_id: str, social_account_id: str) -> AccountSchedule | None:
    """The schedule, or that there is none: it stays so until the end of the transaction."""
    names = {"organization_id": organization_id, "social_account_id": social_account_id}
    await connection.execute(_LOCK, names)
    return await find(connection, organization_id, social_account_id)


async def save(connection: AsyncConnection, schedule: AccountSchedule) -> None:
    timetable = schedule.timetable
    await connection.execute(
        _SAVE,
        {
            "organization_id": schedule.organization_id,
            "social_account_id": schedule.social_account_id,
            "name": timetable.name,
            "time_zone": timetable.zone.name,
            "weekly_slots": _minutes(timetable.weekly_slots),
            "max_posts_per_day": timetable.max_posts_per_day,
            "enabled": timetable.enabled,
            "version": schedule.version,
            "create_time": schedule.create_time,
            "update_time": schedule.update_time,
        },
    )


def _schedule(row: Row[Any]) -> AccountSchedule:
    return AccountSchedule(
        organization_id=row.organization_id,
        social_account_id=row.social_account_id,
        timetable=Timetable(
            name=row.name,
            zone=find_zone(row.time_zone),
            weekly_slots=_slots(row.weekly_slots),
            max_posts_per_day=row.max_posts_per_day,
            enabled=row.enabled,
        ),
        version=row.version,
        create_time=row.create_time,
        update_time=row.update_time,
    )


def _minutes(slots: Sequence[WeeklySlot]) -> list[int]:
    return [slot.day * _MINUTES_OF_DAY + slot.hour * 60 + slot.minute for slot in slots]


def _slots(minutes: Sequence[int]) -> tuple[WeeklySlot, ...]:
    return tuple(
        WeeklySlot(day=minute // _MINUTES_OF_DAY, hour=minute // 60 % 24, minute=minute % 60) for minute in minutes
    )
