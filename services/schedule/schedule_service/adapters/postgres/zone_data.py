"""The law of each zone in use, release by release: what later tells whether a new release moves what was announced."""

from collections.abc import Iterable

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from civil.zones import Zone, tzdata_version, zone_data

_RECORD = text("""
    insert into zone_data (tzdata_version, time_zone, data)
    select :tzdata_version, time_zone, data
    from unnest(cast(:time_zones as text[]), cast(:laws as bytea[])) as zone (time_zone, data)
    on conflict do nothing
""")


async def record_zones(connection: AsyncConnection, zones: Iterable[Zone]) -> None:
    """Part of every transaction that saves something with the release in use: its law is then known for good."""
    # In one order, so that two transactions that record the same zones do not wait for each other crosswise.
    names = sorted({zone.name for zone in zones})
    if names:
        laws = [zone_data(name) for name in names]
        await connection.execute(_RECORD, {"tzdata_version": tzdata_version(), "time_zones": names, "laws": laws})
