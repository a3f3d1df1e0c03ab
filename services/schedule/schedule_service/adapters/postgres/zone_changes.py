"""The SQL of schedules, rules and timers announced with an older tzdata release than the current one."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from civil.zones import tzdata_version
from schedule_service.domain.zone_changes.zone_change import Kind, Place
from schedule_service.domain.zone_release import ZoneRelease


class _Rows(NamedTuple):
    table: str
    id: str
    live: str
    """The condition of the partial index on release and zone, word for word."""


_ROWS = {
    Kind.ACCOUNT_SCHEDULE: _Rows("account_schedule", "social_account_id", "delete_time is null"),
    Kind.SCHEDULE_RULE: _Rows("schedule_rule", "id", "delete_time is null"),
    Kind.TIMER: _Rows("timer", "id", "cron <> '' and due_time is not null"),
}
# Reads one index entry per zone and release, no matter how many rows each has.
_ZONE_RELEASES = {
    kind: text(f"""
        with recursive zone_release as (
            (
                select tzdata_version, time_zone from {rows.table} where {rows.live}
                order by tzdata_version, time_zone limit 1
            )
            union all
            select following.tzdata_version, following.time_zone from zone_release cross join lateral (
                select tzdata_version, time_zone from {rows.table}
                where {rows.live}
                    and (tzdata_version, time_zone) > (zone_release.tzdata_version, zone_release.time_zone)
                order by tzdata_version, time_zone limit 1
            ) as following
        )
        select tzdata_version, time_zone from zone_release
    """)
    for kind, rows in _ROWS.items()
}
_OF_ORGANIZATION = "and organization_id = :organization_id"
# Selects schedules with an upcoming slot in another zone than the schedule's. Compares whole rows, because a time alone
# would be searched among the slots of all accounts.
_ELSEWHERE = """
    (
        select schedule.organization_id, schedule.social_account_id, schedule.tzdata_version, schedule.time_zone
        from account_schedule schedule
        cross join lateral (
            select from upcoming_slot slot
            where (slot.organization_id, slot.social_account_id, slot.schedule_time)
                    > (schedule.organization_id, schedule.social_account_id, :now)
                and (slot.organization_id, slot.social_account_id, slot.schedule_time)
                    < (schedule.organization_id, schedule.social_account_id, 'infinity')
                and slot.nominal_local_time is not null
                and (schedule.delete_time is not null or slot.time_zone <> schedule.time_zone)
            limit 1
        ) as stranger
        where schedule.slots_elsewhere and schedule.tzdata_version < :current %s
            and (schedule.organization_id, schedule.social_account_id) > (:after_organization_id, :after_id)
        order by schedule.organization_id, schedule.social_account_id limit :size
    )
"""
_PAGE = {
    (kind, of_one): text(f"""
        select following.organization_id, following.id, following.tzdata_version, following.time_zone
        from (
            (
                select found.organization_id, found.id, found.tzdata_version, found.time_zone
                from unnest(cast(:tzdata_versions as text[]), cast(:time_zones as text[]))
                    as zone_release (tzdata_version, time_zone)
                cross join lateral (
                    select organization_id, {rows.id} as id, tzdata_version, time_zone from {rows.table}
                    where {rows.live} and tzdata_version = zone_release.tzdata_version
                        and time_zone = zone_release.time_zone
                        {_OF_ORGANIZATION if of_one else ""}
                        and (organization_id, {rows.id}) > (:after_organization_id, :after_id)
                    order by organization_id, {rows.id} limit :size
                ) as found
                order by found.organization_id, found.id limit :size
            )
            {f"union {_ELSEWHERE % (_OF_ORGANIZATION if of_one else '')}" if kind is Kind.ACCOUNT_SCHEDULE else ""}
        ) as following
        order by following.organization_id, following.id limit :size
    """)
    for kind, rows in _ROWS.items()
    for of_one in (False, True)
}
_MARK = {
    (kind, of_one): text(f"""
        update {rows.table} set tzdata_version = :current where ctid = any(array(
            select ctid from {rows.table}
            where {rows.live} and tzdata_version = :tzdata_version and time_zone = :time_zone
                {_OF_ORGANIZATION if of_one else ""}
            order by organization_id, {rows.id} limit :limit for update
        ))
    """)
    for kind, rows in _ROWS.items()
    for of_one in (False, True)
}
_COUNT = {
    kind: text(f"""
        select count(*) from (
            select from {rows.table} where {rows.live} and tzdata_version < :current limit :most
        ) as outdated
    """)
    for kind, rows in _ROWS.items()
}


async def list_zone_releases(connection: AsyncConnection, kind: Kind) -> list[ZoneRelease]:
    rows = await connection.execute(_ZONE_RELEASES[kind])
    return [ZoneRelease(row.tzdata_version, row.time_zone) for row in rows]


async def list_announced(
    connection: AsyncConnection,
    kind: Kind,
    zone_releases: Sequence[ZoneRelease],
    *,
    organization_id: str,
    after: Place | None,
    size: int,
    now: datetime,
) -> list[tuple[Place, ZoneRelease]]:
    """Lists the first `size` rows after `after` announced with these releases; an empty organization means all.

    Includes schedules of any older release, even deleted ones, that have upcoming slots in another zone than their own.
    """
    since = after or Place("", "")
    elsewhere = {"now": now, "current": tzdata_version()} if kind is Kind.ACCOUNT_SCHEDULE else {}
    rows = await connection.execute(
        _PAGE[kind, bool(organization_id)],
        {
            "tzdata_versions": [each.tzdata_version for each in zone_releases],
            "time_zones": [each.time_zone for each in zone_releases],
            "after_organization_id": since.organization_id,
            "after_id": since.id,
            "size": size,
        }
        | elsewhere
        | _of(organization_id),
    )
    return [(Place(row.organization_id, row.id), ZoneRelease(row.tzdata_version, row.time_zone)) for row in rows]


async def mark_current(
    connection: AsyncConnection, kind: Kind, zone_release: ZoneRelease, *, organization_id: str, limit: int
) -> int:
    """Marks up to `limit` rows of this zone and release as using the current release; returns how many."""
    marked = await connection.execute(
        _MARK[kind, bool(organization_id)],
        {"current": tzdata_version(), "limit": limit, **zone_release._asdict()} | _of(organization_id),
    )
    return marked.rowcount


async def count_outdated(connection: AsyncConnection, kind: Kind, *, most: int) -> int:
    counted = await connection.execute(_COUNT[kind], {"current": tzdata_version(), "most": most})
    return int(counted.scalar_one())


def _of(organization_id: str) -> dict[str, str]:
    return {"organization_id": organization_id} if organization_id else {}
