"""The recorded data of zones."""

from itertools import pairwise
from typing import TYPE_CHECKING

from sqlalchemy import text

from civil.zones import find_zone, tzdata_version, zone_data, zone_from_data, zone_names
from schedule_service.adapters.postgres.zone_data import record_zones, recorded_zones
from schedule_service.domain.zone_release import ZoneRelease
from servicekit.pg.database import Database

if TYPE_CHECKING:
    from tests.usecase.schedule_service.conftest import Bystander
    from tests.usecase.schedule_service.zone_changes.conftest import Drift


NEW = tzdata_version()
VANCOUVER = "America/Vancouver"
BERLIN = "Europe/Berlin"


async def test_a_zone_is_recorded_once_and_never_overwritten(drift: "Drift") -> None:
    await drift.record(BERLIN, b"first", NEW)
    async with drift.database.transaction() as tx:
        await record_zones(tx.connection, [find_zone(BERLIN), find_zone(VANCOUVER), find_zone(BERLIN)])
        await record_zones(tx.connection, [])
    async with drift.database.read() as connection:
        rows = await connection.execute(text("select * from zone_data where tzdata_version = :new"), {"new": NEW})
        assert {(row.time_zone, row.data) for row in rows} == {(BERLIN, b"first"), (VANCOUVER, zone_data(VANCOUVER))}


ZONES = sorted(zone_names())[:60]


async def test_recorded_zones_are_read_one_at_a_time(database: Database, bystander: "Bystander") -> None:
    zone_releases = [ZoneRelease("2024a", name) for name in ZONES]
    statement = text("insert into zone_data values ('2024a', :zone, :data)")
    async with database.transaction() as tx:
        for name in ZONES:
            data = zone_data(name).replace(b"LMT", b"XYZ")
            await tx.connection.execute(statement, {"zone": name, "data": data})
    async with database.read() as connection, bystander(lambda: sum(zone_from_data.cache_info()[:2])) as seen:
        found = await recorded_zones(connection, zone_releases)
    assert found.keys() == set(zone_releases)
    assert max(after - before for before, after in pairwise(seen)) == 1
