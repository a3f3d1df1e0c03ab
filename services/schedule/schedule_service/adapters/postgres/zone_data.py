"""The SQL of `zone_data`: each zone in use, by tzdata release.

A later release is compared with it to find which announced times have moved.
"""

import asyncio
import logging
from collections.abc import Iterable, Sequence

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from civil.zones import Zone, find_zone, tzdata_version, zone_data, zone_from_data
from schedule_service.domain.zone_release import ZoneRelease

_RECORD = text("""
    insert into zone_data (tzdata_version, time_zone, data)
    select :tzdata_version, time_zone, data
    from unnest(cast(:time_zones as text[]), cast(:data as bytea[])) as zone (time_zone, data)
    on conflict do nothing
""")
_FIND_SOME = text("""
    select wanted.tzdata_version, wanted.time_zone, zone.data
    from unnest(cast(:tzdata_versions as text[]), cast(:time_zones as text[])) as wanted (tzdata_version, time_zone)
    cross join lateral (
        select data from zone_data where tzdata_version = wanted.tzdata_version and time_zone = wanted.time_zone limit 1
    ) as zone
""")

_log = logging.getLogger(__name__)


async def record_zones(connection: AsyncConnection, zones: Iterable[Zone]) -> None:
    """Records the zones as the current tzdata release defines them.

    Every transaction that saves times computed with this release calls it, so the data can always be found later.
    """
    # In one order, so that two transactions that record the same zones do not deadlock.
    names = sorted({zone.name for zone in zones})
    if names:
        data = [zone_data(name) for name in names]
        await connection.execute(_RECORD, {"tzdata_version": tzdata_version(), "time_zones": names, "data": data})


async def recorded_zone(connection: AsyncConnection, release: str, name: str) -> Zone:
    """Returns the zone as that tzdata release had it; the current zone if no readable record exists."""
    zone_release = ZoneRelease(release, name)
    return (await recorded_zones(connection, [zone_release])).get(zone_release) or find_zone(name)


async def recorded_zones(connection: AsyncConnection, zone_releases: Sequence[ZoneRelease]) -> dict[ZoneRelease, Zone]:
    """Returns the recorded zones, without those that have no readable record."""
    rows = await connection.execute(
        _FIND_SOME,
        {
            "tzdata_versions": [each.tzdata_version for each in zone_releases],
            "time_zones": [each.time_zone for each in zone_releases],
        },
    )
    found: dict[ZoneRelease, Zone] = {}
    for row in rows:
        await asyncio.sleep(0)  # Parsing a zone takes a fraction of a millisecond, and there may be hundreds.
        try:
            found[ZoneRelease(row.tzdata_version, row.time_zone)] = zone_from_data(row.time_zone, row.data)
        except ValueError as error:
            _log.error("recorded data of zone %s in tzdata %s: %s", row.time_zone, row.tzdata_version, error)
    return found
