"""Due timers that this release cannot read."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import text

from civil.zones import tzdata_version
from jobkit.errors import InvalidJob
from postflow.schedule.v1.timer_pb2 import (
    TIMER_STATE_ACTIVE,
    TIMER_STATE_FAULTY,
    TIMER_STATE_FINISHED,
    TIMER_STATE_PAUSED,
)
from schedule_service.adapters.postgres.timers import list_timers
from schedule_service.domain.timers.timer import TimerState
from servicekit.faults import Refused
from testkit.clocks import START

if TYPE_CHECKING:
    from tests.usecase.schedule_service.timers.conftest import Timers


HOUR = timedelta(hours=1)
NEW_YORK = "America/New_York"
FAULTS = [
    ("cron = '61 * * * *'", "61 is above 59"),
    ("time_zone = 'Atlantis/Poseidonis'", f"tzdata {tzdata_version()} has no time zone 'Atlantis/Poseidonis'"),
]


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


async def listed(timers: "Timers", state: TimerState) -> list[str]:
    async with timers.database.read() as connection:
        found = await list_timers(connection, "acme", topic="", state=state, after="", size=10)
    return [timer.id for timer in found]


@pytest.mark.parametrize(
    ("damage", "reported"),
    [
        ("update timer set cron = '61 * * * *' where id = 'damaged'", [InvalidJob]),
        ("update timer set time_zone = 'Atlantis/Poseidonis' where id = 'damaged'", [InvalidJob]),
        ("update timer set tzdata_version = '2019z' where id = 'damaged'", []),
    ],
)
async def test_an_invalid_row_does_not_keep_others_from_firing(
    timers: "Timers", damage: str, reported: list[type[Exception]]
) -> None:
    await timers.create("damaged", cron="0 * * * *", time_zone=NEW_YORK)
    await timers.create("sound", cron="0 * * * *")
    async with timers.database.statement() as connection:
        await connection.execute(text(damage))
        await connection.execute(text("insert into zone_data values ('2019z', :zone, 'no zone')"), {"zone": NEW_YORK})
    timers.clock.moment = at("2026-03-02T10:00")
    await timers.fire_due()
    assert {event.timer_id for event in timers.fired.events} >= {"sound"}
    assert [type(error) for error in timers.errors] == reported
    # It is faulty, or waits for its next time.
    assert await timers.fire_due() == []


@pytest.mark.parametrize(("damage", "said"), FAULTS)
async def test_a_timer_that_cannot_be_read_shows_its_fault(timers: "Timers", damage: str, said: str) -> None:
    made = await timers.create(cron="0 * * * *", time_zone=NEW_YORK)
    await timers.set_row(damage)
    foreseen = await timers.get()
    assert foreseen.state == TIMER_STATE_ACTIVE
    assert said in foreseen.fault
    timers.clock.moment = at("2026-03-02T10:00")
    assert await timers.fire_due() == []
    faulty = await timers.get()
    assert (faulty.state, faulty.fault) == (TIMER_STATE_FAULTY, foreseen.fault)
    assert (faulty.next_fire_time, faulty.fire_count, faulty.etag) == (made.next_fire_time, 0, made.etag)
    assert await listed(timers, TimerState.FAULTY) == ["t"]
    assert await listed(timers, TimerState.ACTIVE) == []
    assert (await timers.fire(request_id="r")).timer.state == TIMER_STATE_FAULTY


@pytest.mark.parametrize(("damage", "said"), FAULTS)
async def test_a_faulty_timer_can_be_paused_and_deleted_but_not_resumed(
    timers: "Timers", damage: str, said: str
) -> None:
    await timers.create(cron="0 * * * *", time_zone=NEW_YORK)
    await timers.set_row(damage)
    timers.clock.moment = at("2026-03-02T10:00")
    await timers.fire_due()
    for state in (TIMER_STATE_FAULTY, TIMER_STATE_PAUSED):
        with pytest.raises(Refused) as refused:
            await timers.resume()
        assert (refused.value.reason, refused.value.metadata) == ("TIMER_FAULTY", {"timer_id": "t"})
        assert said in refused.value.message
        assert (await timers.get()).state == state
        resting = await timers.pause()
        assert (resting.state, said in resting.fault) == (TIMER_STATE_PAUSED, True)
    await timers.delete()
    assert (await timers.create(cron="0 * * * *", time_zone=NEW_YORK)).fault == ""


@pytest.mark.parametrize(("damage", "said"), FAULTS)
async def test_a_faulty_timer_that_can_be_read_again_can_be_resumed(timers: "Timers", damage: str, said: str) -> None:
    made = await timers.create(cron="0 * * * *", time_zone=NEW_YORK)
    await timers.set_row(damage)
    timers.clock.moment = at("2026-03-02T10:00")
    await timers.fire_due()
    # Another release can read it.
    await timers.set_row(f"cron = '0 * * * *', time_zone = '{NEW_YORK}'")
    assert await timers.fire_due() == []
    resting = await timers.get()
    assert resting.state == TIMER_STATE_FAULTY
    assert resting.fault
    assert said not in resting.fault
    going = await timers.resume()
    assert (going.state, going.fault, going.etag == made.etag) == (TIMER_STATE_ACTIVE, "", False)
    assert await timers.fire_due() == ["2026-03-02T05:00"]


async def test_a_finished_timer_has_no_fault(timers: "Timers") -> None:
    await timers.create(cron="0 * * * *", time_zone=NEW_YORK, repeat_until=START + HOUR)
    timers.clock.moment = at("2026-03-02T10:00")
    await timers.fire_due()
    await timers.set_row("time_zone = 'Atlantis/Poseidonis'")
    finished = await timers.get()
    assert (finished.state, finished.fault) == (TIMER_STATE_FINISHED, "")
