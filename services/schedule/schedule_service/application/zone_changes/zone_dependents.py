"""What the two use cases about zone changes do with a schedule, a rule and a timer."""

from collections.abc import Mapping
from contextlib import aclosing
from datetime import datetime
from typing import NamedTuple, Protocol, TypeGuard, TypeVar

from sqlalchemy.ext.asyncio import AsyncConnection

from civil.zones import Zone
from schedule_service.adapters.postgres import account_schedules, rules, timers, upcoming_slots
from schedule_service.domain.calendars.account_schedule import AccountSchedule, live
from schedule_service.domain.calendars.schedule_rule import ScheduleRule
from schedule_service.domain.timers.timer import Timer
from schedule_service.domain.zone_changes.moved_times import differences
from schedule_service.domain.zone_changes.zone_change import (
    Kind,
    Law,
    Moved,
    Place,
    announced_anew,
    follow,
    is_in_hand,
    moved_rule,
    moved_schedule,
    moved_timer,
    stamped,
    zone_of,
)
from schedule_service.wire.account_schedules import account_schedule_changed
from schedule_service.wire.rules import schedule_rule_changed
from servicekit.pg.outbox import Announcement


class Announced(NamedTuple):
    """What was announced with a law, and the zone as it then was; None: nobody knows."""

    place: Place
    law: Law
    zone: Zone | None


class Followed(NamedTuple):
    """It follows the law in force now."""

    has_moved: bool
    announcement: Announcement | None = None


UNMOVED = Followed(has_moved=False)


class Followers(Protocol):
    """All of one kind. About what does not stand any more as it was announced the answer is None."""

    async def moved(self, connection: AsyncConnection, announced: Announced, now: datetime) -> Moved: ...

    async def follow(self, connection: AsyncConnection, announced: Announced, now: datetime) -> Followed | None:
        """In a transaction: it is locked until its end."""
        ...


class _AccountSchedules:
    async def moved(self, connection: AsyncConnection, announced: Announced, now: datetime) -> Moved:
        schedule = await account_schedules.find_last(connection, *announced.place)
        if not _stands(schedule, announced) or _waits(schedule):
            return None
        return await _moved_schedule(connection, schedule, announced, now)

    async def follow(self, connection: AsyncConnection, announced: Announced, now: datetime) -> Followed | None:
        schedule = await account_schedules.lock(connection, *announced.place)
        if not _stands(schedule, announced) or _waits(schedule):
            return None
        if await _moved_schedule(connection, schedule, announced, now) is None:
            await account_schedules.save(connection, stamped(schedule))
            return UNMOVED
        anew = announced_anew(schedule, now=now)
        await account_schedules.save(connection, anew)
        return Followed(has_moved=True, announcement=account_schedule_changed(anew))


class _ScheduleRules:
    async def moved(self, connection: AsyncConnection, announced: Announced, now: datetime) -> Moved:
        rule = await rules.find(connection, *announced.place)
        return moved_rule(rule, announced.zone, now=now) if _stands(rule, announced) else None

    async def follow(self, connection: AsyncConnection, announced: Announced, now: datetime) -> Followed | None:
        rule = await rules.lock(connection, *announced.place)
        if not _stands(rule, announced):
            return None
        if moved_rule(rule, announced.zone, now=now) is None:
            await rules.save(connection, stamped(rule))
            return UNMOVED
        anew = announced_anew(rule, now=now)
        await rules.save(connection, anew)
        return Followed(has_moved=True, announcement=schedule_rule_changed(anew))


class _Timers:
    async def moved(self, connection: AsyncConnection, announced: Announced, now: datetime) -> Moved:
        timer = await timers.find(connection, *announced.place)
        if not _stands(timer, announced) or is_in_hand(timer, now=now):
            return None
        return moved_timer(timer, announced.zone, now=now)

    async def follow(self, connection: AsyncConnection, announced: Announced, now: datetime) -> Followed | None:
        timer = await timers.lock(connection, *announced.place)
        if not _stands(timer, announced) or is_in_hand(timer, now=now):
            return None
        following = follow(timer, announced.zone, now=now)
        await timers.save(connection, following, before=timer)
        return Followed(has_moved=following.due_time != timer.due_time)


FOLLOWERS: Mapping[Kind, Followers] = {
    Kind.ACCOUNT_SCHEDULE: _AccountSchedules(),
    Kind.SCHEDULE_RULE: _ScheduleRules(),
    Kind.TIMER: _Timers(),
}

_Row = TypeVar("_Row", AccountSchedule, ScheduleRule, Timer)


def _stands(row: _Row | None, announced: Announced) -> TypeGuard[_Row]:
    return row is not None and announced.law == Law(row.tzdata_version, zone_of(row).name)


def _waits(schedule: AccountSchedule) -> bool:
    """For somebody who gives it another zone: by its own, which is no more, Queue could not follow it."""
    return schedule.delete_time is None and not schedule.timetable.zone.is_known


async def _moved_schedule(
    connection: AsyncConnection, schedule: AccountSchedule, announced: Announced, now: datetime
) -> Moved:
    law = announced.zone
    moved = moved_schedule(schedule, law, now=now) if live(schedule) else None
    if moved is not None:
        return moved
    # Posts may stand at times of weekly slots, and in zones, that the account had before.
    spans = differences(law, schedule.timetable.zone, now=now) if law else []
    if spans and await upcoming_slots.any_within(connection, *announced.place, spans):
        return ()
    async with aclosing(upcoming_slots.meant(connection, *announced.place, after=now)) as found:
        async for slots in found:
            if any(slot.has_moved for slot in slots):
                return ()
    return None
