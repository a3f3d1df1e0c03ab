"""The occurrences of locked timers, by the time zone data of their due times."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import text

from civil.zones import tzdata_version, zone_data
from testkit.clocks import START

if TYPE_CHECKING:
    from tests.usecase.schedule_service.timers.conftest import Timers

HOUR = timedelta(hours=1)
NEW_YORK = "America/New_York"


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize("by_hand", [False, True])
async def test_an_occurrence_that_moves_to_a_later_time_fires_once(timers: "Timers", by_hand: bool) -> None:
    # The older data puts New York on the time of Halifax, one hour ahead.
    await timers.create(cron="0 9 * * *", time_zone=NEW_YORK)
    await timers.use_older_zone(NEW_YORK, zone_data("America/Halifax"), at("2026-03-03T13:00"))
    timers.clock.moment = at("2026-03-03T13:00")
    assert await timers.fire_due() == ["2026-03-03T09:00"]
    after = await timers.get()
    assert (after.tzdata_version, after.next_fire_time.ToDatetime(UTC)) == (tzdata_version(), at("2026-03-03T14:00"))
    if by_hand:
        await timers.fire()
    timers.clock.moment = at("2026-03-03T14:00")
    assert await timers.fire_due() == []
    after = await timers.get()
    assert (after.fire_count, after.next_fire_time.ToDatetime(UTC)) == (1 + by_hand, at("2026-03-04T14:00"))
    timers.clock.moment = at("2026-03-04T14:00")
    assert await timers.fire_due() == ["2026-03-04T09:00"]


async def test_a_one_time_timer_does_not_need_its_zone(timers: "Timers") -> None:
    await timers.create(fire_time=START + HOUR)
    async with timers.database.statement() as connection:
        await connection.execute(text("update timer set time_zone = 'Atlantis/Poseidonis', tzdata_version = '2019z'"))
    timers.clock.moment = at("2026-03-02T10:00:01")
    assert await timers.fire_due() == ["2026-03-02T10:00:00Z"]
