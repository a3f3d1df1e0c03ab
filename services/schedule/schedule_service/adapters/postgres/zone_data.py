"""The law of each zone in use, release by release: what later tells whether a new release moves what was announced."""

import asyncio
import logging
from collections.abc import Iterable, Sequence

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from civil.zones import Zone, find_zone, tzdata_version, zone_data, zone_from_data
from schedule_service.domain.zone_changes.zone_change import Law

_RECORD = text("""
    insert into zone_data (tzdata_version, time_zone, data)
    select :tzdata_version, time_zone, data
    from unnest(cast(:time_zones as text[]), cast(:laws as bytea[])) as zone (time_zone, data)
    on conflict do nothing
""")
_FIND_SOME = text("""
    select law.tzdata_version, law.time_zone, zone.data
    from unnest(cast(:tzdata_versions as text[]), cast(:time_zones as text[])) as law (tzdata_version, time_zone)
    cross join lateral (
        select data from zone_data where tzdata_version = law.tzdata_version and time_zone = law.time_zone limit 1
    ) as zone
""")

_log = logging.getLogger(__name__)


async def record_zones(connection: AsyncConnection, zones: Iterable[Zone]) -> None:
    """Part of every transaction that saves something with the release in use: its law is then known for good."""
    # In one order, so that two transactions that record the same zones do not wait for each other crosswise.
    names = sorted({zone.name for zone in zones})
    if names:
        laws = [zone_data(name) for name in names]
        await connection.execute(_RECORD, {"tzdata_version": tzdata_version(), "time_zones": names, "laws": laws})


async def recorded_zone(connection: AsyncConnection, release: str, name: str) -> Zone:
    """The zone as it was in a release of the database; where none was recorded, or nothing sensible, as it is."""
    law = Law(release, name)
    return (await recorded_zones(connection, [law])).get(law) or find_zone(name)


async def recorded_zones(connection: AsyncConnection, laws: Sequence[Law]) -> dict[Law, Zone]:
    """Each as it was recorded; one that is not, or makes no sense, is missing."""
    rows = await connection.execute(
        _FIND_SOME,
        {"tzdata_versions": [law.tzdata_version for law in laws], "time_zones": [law.time_zone for law in laws]},
    )
    found: dict[Law, Zone] = {}
    for row in rows:
        await asyncio.sleep(0)  # to read a zone takes a part of a millisecond, and there may be hundreds
        try:
            found[Law(row.tzdata_version, row.time_zone)] = zone_from_data(row.time_zone, row.data)
        except ValueError as error:
            _log.error("the recorded zone %s of %s: %s", row.time_zone, row.tzdata_version, error)
    return found
