"""WatchTzdata marks and records rows, and warns about older releases."""

import logging
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import text

from civil.zones import tzdata_version, zone_data
from schedule_service.application.zone_changes.watch_tzdata import WatchTzdata

if TYPE_CHECKING:
    from tests.usecase.schedule_service.zone_changes.conftest import Drift


NEW = tzdata_version()
NOW = datetime(2026, 10, 20, 12, 0, tzinfo=UTC)
VANCOUVER = "America/Vancouver"
BERLIN = "Europe/Berlin"


async def test_rows_without_a_release_are_marked_with_the_current_one(drift: "Drift") -> None:
    before = await drift.schedule(release="")
    assert await drift.listed() == []
    watch = WatchTzdata(database=drift.database)
    assert not await watch()
    assert await drift.stored_schedule() == replace(before, tzdata_version=NEW)
    assert (await drift.apply()).moved.total() == 0


async def test_any_number_of_rows_is_marked_in_batches(drift: "Drift") -> None:
    async with drift.database.transaction() as tx:
        await tx.connection.execute(
            text("""
                insert into account_schedule (organization_id, social_account_id, name, time_zone, weekly_slots,
                    max_posts_per_day, enabled, version, create_time, update_time)
                select 'acme', 'page-' || n, '', 'America/Vancouver', '{}', 0, true, 1, :now, :now
                from generate_series(1, 1500) n
            """),
            {"now": NOW},
        )
    watch = WatchTzdata(database=drift.database)
    assert await watch()
    assert not await watch()
    async with drift.database.read() as connection:
        left = await connection.execute(text("select count(*) from account_schedule where tzdata_version = ''"))
        assert left.scalar_one() == 0


async def test_the_zones_of_existing_rows_are_recorded(drift: "Drift") -> None:
    await drift.schedule(release=NEW)
    await drift.schedule("berlin", BERLIN, release="")
    watch = WatchTzdata(database=drift.database)
    await watch()
    await watch()
    async with drift.database.read() as connection:
        recorded = await connection.execute(
            text("select time_zone, data from zone_data where tzdata_version = :new"), {"new": NEW}
        )
        assert {row.time_zone: row.data for row in recorded} == {zone: zone_data(zone) for zone in (VANCOUVER, BERLIN)}


async def test_rows_of_an_older_release_are_warned_about_once(drift: "Drift", caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    watch = WatchTzdata(database=drift.database)
    await watch()
    assert not caplog.records
    await drift.schedule()
    await drift.schedule("older", release="2020a")
    await drift.schedule("ahead", release="2031a")
    await drift.rule()
    await watch()
    await watch()
    (warning,) = caplog.records
    assert "2 account_schedule, 1 schedule_rule, 0 timer" in warning.getMessage()
    assert "ListZoneChanges" in warning.getMessage()
