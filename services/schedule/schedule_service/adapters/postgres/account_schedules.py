"""The SQL of account schedules."""

from datetime import time
from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from civil.windows import SendWindow
from civil.zones import stored_zone
from schedule_service.adapters.postgres.weekly_slots import minutes, slots
from schedule_service.domain.calendars.account_schedule import AccountSchedule, Timetable
from servicekit.pg.session import Row as HotRow
from servicekit.pg.session import Session, Statement

_MINUTES_OF_DAY = 24 * 60

_SELECT = """
    select organization_id, social_account_id, name, time_zone, weekly_slots, max_posts_per_day, enabled,
        window_days, window_start, window_end, min_spacing, tzdata_version, version, create_time, update_time,
        delete_time, slots_elsewhere, kept_slots, kept_for
    from account_schedule
"""
_LAST = text(f"{_SELECT} where organization_id = :organization_id and social_account_id = :social_account_id")
_FIND = Statement(f"{_LAST.text} and delete_time is null")
_PAGE = text(f"""
    {_SELECT} where organization_id = :organization_id and social_account_id > :after and delete_time is null
    order by social_account_id limit :size
""")
# Locks the account's name, not its row, because the row may not exist yet.
_LOCK = text("""
    select pg_advisory_xact_lock(hashtextextended(:organization_id || '/' || :social_account_id, 0))
""")
_SAVE = text("""
    insert into account_schedule (organization_id, social_account_id, name, time_zone, weekly_slots, max_posts_per_day,
        enabled, window_days, window_start, window_end, min_spacing, tzdata_version, version, create_time, update_time,
        delete_time, slots_elsewhere, kept_slots, kept_for)
    values (:organization_id, :social_account_id, :name, :time_zone, cast(:weekly_slots as smallint[]),
        :max_posts_per_day, :enabled, cast(:window_days as smallint[]), :window_start, :window_end, :min_spacing,
        :tzdata_version, :version, :create_time, :update_time, :delete_time,
        :slots_elsewhere, cast(:kept_slots as smallint[]), cast(:kept_for as text[]))
    on conflict (organization_id, social_account_id) do update set name = excluded.name,
        time_zone = excluded.time_zone, weekly_slots = excluded.weekly_slots,
        max_posts_per_day = excluded.max_posts_per_day, enabled = excluded.enabled,
        window_days = excluded.window_days, window_start = excluded.window_start, window_end = excluded.window_end,
        min_spacing = excluded.min_spacing, tzdata_version = excluded.tzdata_version, version = excluded.version,
        create_time = excluded.create_time, update_time = excluded.update_time, delete_time = excluded.delete_time,
        slots_elsewhere = excluded.slots_elsewhere, kept_slots = excluded.kept_slots, kept_for = excluded.kept_for
""")


async def find_schedule(session: Session, organization_id: str, social_account_id: str) -> AccountSchedule | None:
    """Returns the live schedule of the account, which Queue asks for with each call that adds to a queue."""
    names = {"organization_id": organization_id, "social_account_id": social_account_id}
    row = await session.fetch_row(_FIND, names)
    return _schedule(row) if row else None


async def find_last_schedule(
    connection: AsyncConnection, organization_id: str, social_account_id: str
) -> AccountSchedule | None:
    """Returns the last schedule of the account, live or deleted."""
    names = {"organization_id": organization_id, "social_account_id": social_account_id}
    row = (await connection.execute(_LAST, names)).one_or_none()
    return _schedule(row) if row else None


async def list_schedules(
    connection: AsyncConnection, organization_id: str, *, after: str, size: int
) -> list[AccountSchedule]:
    """Lists live schedules in the order of their account ids, beginning after `after`."""
    names = {"organization_id": organization_id, "after": after, "size": size}
    return [_schedule(row) for row in await connection.execute(_PAGE, names)]


async def lock_schedule(
    connection: AsyncConnection, organization_id: str, social_account_id: str
) -> AccountSchedule | None:
    """Locks the account's schedule until the end of the transaction, even if there is none yet.

    Returns the last one, live or deleted.
    """
    names = {"organization_id": organization_id, "social_account_id": social_account_id}
    await connection.execute(_LOCK, names)
    return await find_last_schedule(connection, organization_id, social_account_id)


async def save_schedule(connection: AsyncConnection, schedule: AccountSchedule) -> None:
    await connection.execute(_SAVE, _columns(schedule))


def _columns(schedule: AccountSchedule) -> dict[str, object]:
    timetable = schedule.timetable
    return {
        "organization_id": schedule.organization_id,
        "social_account_id": schedule.social_account_id,
        "name": timetable.name,
        "time_zone": timetable.zone.name,
        "weekly_slots": minutes(timetable.weekly_slots),
        "max_posts_per_day": timetable.max_posts_per_day,
        "enabled": timetable.enabled,
        **_window_columns(timetable.send_window),
        "min_spacing": timetable.min_spacing,
        "tzdata_version": schedule.tzdata_version,
        "version": schedule.version,
        "create_time": schedule.create_time,
        "update_time": schedule.update_time,
        "delete_time": schedule.delete_time,
        "slots_elsewhere": schedule.slots_elsewhere,
        "kept_slots": minutes(timetable.categories),
        "kept_for": list(timetable.categories.values()),
    }


def _schedule(row: Row[Any] | HotRow) -> AccountSchedule:
    weekly_slots = slots(row.weekly_slots)
    kept = dict(zip(slots(row.kept_slots), row.kept_for, strict=True))
    return AccountSchedule(
        organization_id=row.organization_id,
        social_account_id=row.social_account_id,
        timetable=Timetable(
            name=row.name,
            zone=stored_zone(row.time_zone),
            weekly_slots=weekly_slots,
            categories={slot: kept[slot] for slot in weekly_slots if slot in kept} if kept else {},
            max_posts_per_day=row.max_posts_per_day,
            enabled=row.enabled,
            send_window=_window(row),
            min_spacing=row.min_spacing,
        ),
        version=row.version,
        tzdata_version=row.tzdata_version,
        create_time=row.create_time,
        update_time=row.update_time,
        delete_time=row.delete_time,
        slots_elsewhere=row.slots_elsewhere,
    )


def _window_columns(window: SendWindow | None) -> dict[str, object]:
    if window is None:
        return {"window_days": [], "window_start": 0, "window_end": _MINUTES_OF_DAY}
    end = window.end
    return {
        "window_days": sorted(window.days),
        "window_start": window.start.hour * 60 + window.start.minute,
        "window_end": _MINUTES_OF_DAY if end is None else end.hour * 60 + end.minute,
    }


def _window(row: Row[Any] | HotRow) -> SendWindow | None:
    if not row.window_days:
        return None
    end = None if row.window_end == _MINUTES_OF_DAY else time(row.window_end // 60, row.window_end % 60)
    start = time(row.window_start // 60, row.window_start % 60)
    return SendWindow(days=frozenset(row.window_days), start=start, end=end)
