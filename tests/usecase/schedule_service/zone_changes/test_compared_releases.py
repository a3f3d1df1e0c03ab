"""Older, newer and unrecorded tzdata releases compared to the current one."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import text

from civil.zones import find_zone, tzdata_version, zone_data, zone_names
from schedule_service.application.zone_changes.compared_releases import current_zones
from schedule_service.application.zone_changes.watch_tzdata import WatchTzdata
from schedule_service.domain.zone_changes.zone_change import Kind, ZoneChange
from schedule_service.domain.zone_release import ZoneRelease

if TYPE_CHECKING:
    from tests.usecase.schedule_service.conftest import Bystander
    from tests.usecase.schedule_service.zone_changes.conftest import Drift


OLD = "2024a"
NEW = tzdata_version()
VANCOUVER = "America/Vancouver"
BERLIN = "Europe/Berlin"


def ids(changes: Sequence[ZoneChange]) -> list[tuple[str, str, str]]:
    return [(change.kind, *change.place) for change in changes]


async def test_each_older_release_is_compared_with_its_own_data(drift: "Drift") -> None:
    await drift.record(VANCOUVER, zone_data(VANCOUVER), "2026a")
    await drift.schedule("old")
    await drift.schedule("newer", release="2026a")
    assert ids(await drift.listed()) == [("ACCOUNT_SCHEDULE", "acme", "old")]
    await drift.apply()
    assert (await drift.stored_schedule("newer")).version == 1
    assert (await drift.stored_schedule("newer")).tzdata_version == NEW


async def test_rows_announced_by_a_newer_release_are_left_alone(drift: "Drift") -> None:
    """Checks that old processes, while they are replaced, do not revert what new ones have announced."""
    await drift.record(VANCOUVER, drift.vancouver_before, "2031a")
    schedule, rule = await drift.schedule(release="2031a"), await drift.rule(release="2031a")
    timer = await drift.timer(release="2031a")
    assert await drift.listed() == []
    applied = await drift.apply()
    assert (applied.done, applied.moved.total()) == (True, 0)
    assert (await drift.stored_schedule(), await drift.stored_rule()) == (schedule, rule)
    assert await drift.stored_timer() == timer


@pytest.mark.parametrize("data", [None, b"not a zone"])
async def test_without_a_record_of_the_old_zone_anything_may_have_moved(drift: "Drift", data: bytes | None) -> None:
    if data:
        await drift.record(BERLIN, data, "2020a")
    await drift.schedule("lost", BERLIN, release="2020a")
    await drift.rule("lost", BERLIN, release="2020a")
    timer = await drift.timer(release="2020a", data=zone_data(VANCOUVER))
    changes = await drift.listed()
    assert ids(changes) == [("ACCOUNT_SCHEDULE", "acme", "lost"), ("SCHEDULE_RULE", "acme", "lost")]
    assert {change.moved_times for change in changes} == {()}
    applied = await drift.apply()
    assert applied.moved == {Kind.ACCOUNT_SCHEDULE: 1, Kind.SCHEDULE_RULE: 1, Kind.TIMER: 0}
    assert (await drift.stored_schedule("lost")).version == 2
    assert await drift.stored_timer() == replace(timer, tzdata_version=NEW)
    assert await drift.listed() == []


@pytest.mark.parametrize("release", [OLD, ""])
async def test_a_dropped_zone_does_not_block_the_others(
    drift: "Drift", release: str, caplog: pytest.LogCaptureFixture
) -> None:
    await drift.schedule("gone", release=release)
    await drift.schedule("page")
    statement = text("update account_schedule set time_zone = 'US/Pacific-New' where social_account_id = 'gone'")
    async with drift.database.transaction() as tx:
        await tx.connection.execute(statement)
    with caplog.at_level(logging.ERROR):
        assert ids(await drift.listed()) == [("ACCOUNT_SCHEDULE", "acme", "page")]
    assert "US/Pacific-New" in caplog.text
    assert (await drift.apply()).moved[Kind.ACCOUNT_SCHEDULE] == 1
    watch = WatchTzdata(database=drift.database)
    assert not await watch()


ZONES = sorted(zone_names())[:60]


async def test_zones_are_read_one_at_a_time(bystander: "Bystander") -> None:
    async with bystander(lambda: sum(find_zone.cache_info()[:2])) as seen:
        found = await current_zones(ZoneRelease("2024a", name) for name in ZONES)
    assert [zone.name for zone in found] == ZONES
    assert max(after - before for before, after in pairwise(seen)) == 1
