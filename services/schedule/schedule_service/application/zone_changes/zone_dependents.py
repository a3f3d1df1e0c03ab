"""Moves schedules, rules and timers whose zone has new data."""

from collections.abc import Mapping
from contextlib import aclosing
from datetime import datetime
from typing import NamedTuple, Protocol, TypeGuard, TypeVar

from sqlalchemy.ext.asyncio import AsyncConnection

from civil.zones import Zone
from schedule_service.adapters.postgres.account_schedules import find_last_schedule, lock_schedule, save_schedule
from schedule_service.adapters.postgres.schedule_rules import find_rule, lock_rule, save_rule
from schedule_service.adapters.postgres.timers import find_timer, lock_timer, save_timer
from schedule_service.adapters.postgres.upcoming_slots import has_slots_within, list_nominal_slots
from schedule_service.domain.calendars.account_schedule import AccountSchedule, live
from schedule_service.domain.calendars.schedule_rule import ScheduleRule
from schedule_service.domain.timers.timer import Timer
from schedule_service.domain.zone_changes.moved_times import differences
from schedule_service.domain.zone_changes.zone_change import (
    Kind,
    Moved,
    Place,
    is_due,
    moved_rule,
    moved_schedule,
    moved_timer,
    reannounced,
    with_current_release,
    with_current_zone,
    zone_of,
)
from schedule_service.domain.zone_release import ZoneRelease
from schedule_service.wire.account_schedules import account_schedule_changed
from schedule_service.wire.schedule_rules import schedule_rule_changed
from servicekit.pg.outbox import Announcement


class Announced(NamedTuple):
    """A row announced with an older release, and its zone as it was then; None: no record of it exists."""

    place: Place
    zone_release: ZoneRelease
    zone: Zone | None


class Updated(NamedTuple):
    """A row that now has the times of the current release."""

    has_moved: bool
    announcement: Announcement | None = None


UNMOVED = Updated(has_moved=False)


class Dependents(Protocol):
    """All rows of one kind. Both methods return None for a row that has changed since it was announced."""

    async def moved(self, connection: AsyncConnection, announced: Announced, now: datetime) -> Moved: ...

    async def update(self, connection: AsyncConnection, announced: Announced, now: datetime) -> Updated | None:
        """Moves the row to the current release, in a transaction that keeps it locked."""
        ...


class _AccountSchedules:
    async def moved(self, connection: AsyncConnection, announced: Announced, now: datetime) -> Moved:
        schedule = await find_last_schedule(connection, *announced.place)
        if not _is_unchanged(schedule, announced) or _needs_zone(schedule):
            return None
        return await _moved_schedule(connection, schedule, announced, now)

    async def update(self, connection: AsyncConnection, announced: Announced, now: datetime) -> Updated | None:
        schedule = await lock_schedule(connection, *announced.place)
        if not _is_unchanged(schedule, announced) or _needs_zone(schedule):
            return None
        if await _moved_schedule(connection, schedule, announced, now) is None:
            await save_schedule(connection, with_current_release(schedule))
            return UNMOVED
        moved = reannounced(schedule, now=now)
        await save_schedule(connection, moved)
        return Updated(has_moved=True, announcement=account_schedule_changed(moved))


class _ScheduleRules:
    async def moved(self, connection: AsyncConnection, announced: Announced, now: datetime) -> Moved:
        rule = await find_rule(connection, *announced.place)
        return moved_rule(rule, announced.zone, now=now) if _is_unchanged(rule, announced) else None

    async def update(self, connection: AsyncConnection, announced: Announced, now: datetime) -> Updated | None:
        rule = await lock_rule(connection, *announced.place)
        if not _is_unchanged(rule, announced):
            return None
        if moved_rule(rule, announced.zone, now=now) is None:
            await save_rule(connection, with_current_release(rule))
            return UNMOVED
        moved = reannounced(rule, now=now)
        await save_rule(connection, moved)
        return Updated(has_moved=True, announcement=schedule_rule_changed(moved))


class _Timers:
    async def moved(self, connection: AsyncConnection, announced: Announced, now: datetime) -> Moved:
        timer = await find_timer(connection, *announced.place)
        if not _is_unchanged(timer, announced) or is_due(timer, now=now):
            return None
        return moved_timer(timer, announced.zone, now=now)

    async def update(self, connection: AsyncConnection, announced: Announced, now: datetime) -> Updated | None:
        timer = await lock_timer(connection, *announced.place)
        if not _is_unchanged(timer, announced) or is_due(timer, now=now):
            return None
        moved = with_current_zone(timer, announced.zone, now=now)
        await save_timer(connection, moved, before=timer)
        return Updated(has_moved=moved.due_time != timer.due_time)


DEPENDENTS: Mapping[Kind, Dependents] = {
    Kind.ACCOUNT_SCHEDULE: _AccountSchedules(),
    Kind.SCHEDULE_RULE: _ScheduleRules(),
    Kind.TIMER: _Timers(),
}

_Row = TypeVar("_Row", AccountSchedule, ScheduleRule, Timer)


def _is_unchanged(row: _Row | None, announced: Announced) -> TypeGuard[_Row]:
    return row is not None and announced.zone_release == ZoneRelease(row.tzdata_version, zone_of(row).name)


def _needs_zone(schedule: AccountSchedule) -> bool:
    """Returns whether tzdata has dropped the zone. A person must choose another: Queue could not use the schedule."""
    return schedule.delete_time is None and not schedule.timetable.zone.is_known


async def _moved_schedule(
    connection: AsyncConnection, schedule: AccountSchedule, announced: Announced, now: datetime
) -> Moved:
    old_zone = announced.zone
    moved = moved_schedule(schedule, old_zone, now=now) if live(schedule) else None
    if moved is not None:
        return moved
    # Posts may still be scheduled at weekly slots, or in zones, that the account had before.
    spans = differences(old_zone, schedule.timetable.zone, now=now) if old_zone else []
    if spans and await has_slots_within(connection, *announced.place, spans):
        return ()
    async with aclosing(list_nominal_slots(connection, *announced.place, after=now)) as found:
        async for slots in found:
            if any(slot.has_moved for slot in slots):
                return ()
    return None
