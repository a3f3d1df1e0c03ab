"""Due timers whose times were computed with older time zone data."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from sqlalchemy import text

from civil.zones import find_zone, tzdata_version, zone_data, zone_from_data
from schedule_service.adapters.postgres.timers import lock_timer, save_timer
from schedule_service.domain.timers.timer import rescheduled
from testkit.clocks import START

if TYPE_CHECKING:
    from tests.usecase.schedule_service.timers.conftest import Timers


HOUR = timedelta(hours=1)
NEW_YORK = "America/New_York"


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


async def test_a_firing_records_the_current_zone(timers: "Timers") -> None:
    await timers.create(cron="0 9 * * *", time_zone=NEW_YORK)
    async with timers.database.statement() as connection:
        await connection.execute(text("delete from zone_data"))
    await timers.use_older_zone(NEW_YORK, zone_data("America/Halifax"), at("2026-03-03T13:00"))
    timers.clock.moment = at("2026-03-03T13:00")
    await timers.fire_due()
    async with timers.database.read() as connection:
        releases = await connection.execute(text("select tzdata_version from zone_data order by 1"))
        assert [release for (release,) in releases] == ["2020a", tzdata_version()]


async def test_a_rescheduled_timer_fires_at_its_local_time(timers: "Timers") -> None:
    await timers.create(cron="0 9 * * *", time_zone=NEW_YORK)
    phoenix = zone_from_data(NEW_YORK, zone_data("America/Phoenix"))
    await timers.use_older_zone(NEW_YORK, phoenix.data, at("2026-03-03T16:00"))
    timers.clock.moment = at("2026-03-03T14:00")
    replica = timers.jobs()
    async with timers.database.transaction() as tx:
        before = await lock_timer(tx.connection, "acme", "t")
        assert before is not None
        moved = rescheduled(before, phoenix, find_zone(NEW_YORK), now=timers.clock.moment)
        assert await save_timer(tx.connection, moved, before=before)
        assert not await save_timer(tx.connection, replace(moved, due_time=None, finish_time=START), before=before)
    assert await timers.fire_due(replica) == ["2026-03-03T09:00"]
    assert (await timers.get()).next_fire_time.ToDatetime(UTC) == at("2026-03-04T14:00")
