"""Due timers: what fires, when, and in which order."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import text

from civil.cron import Dst
from postflow.schedule.v1.timer_pb2 import (
    TIMER_STATE_ACTIVE,
    TIMER_STATE_FINISHED,
)
from schedule_service.domain.timers.timer import MisfirePolicy
from servicekit.faults import NotFound
from testkit.clocks import START
from testkit.readers import all_readers_held

if TYPE_CHECKING:
    from tests.usecase.schedule_service.timers.conftest import Timers


HOUR = timedelta(hours=1)
NEW_YORK = "America/New_York"


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


async def test_a_due_timer_fires_once_and_is_finished(timers: "Timers") -> None:
    await timers.create(fire_time=START + HOUR, payload=b"p")
    assert await timers.fire_due() == []
    timers.clock.moment += HOUR
    assert await timers.fire_due() == ["2026-03-02T10:00:00Z"]
    (event,) = timers.fired.events
    assert (event.organization_id, event.timer_id, event.topic) == ("acme", "t", "drafts.generate")
    assert (event.payload, event.manual) == (b"p", False)
    assert event.due_time.ToDatetime(UTC) == START + HOUR
    assert START + HOUR < event.fire_time.ToDatetime(UTC) < START + HOUR + timedelta(seconds=1)
    finished = await timers.get()
    assert (finished.state, finished.fire_count) == (TIMER_STATE_FINISHED, 1)
    assert finished.last_occurrence_key == event.occurrence_key
    assert finished.last_fire_time == event.fire_time
    assert not finished.HasField("next_fire_time")
    assert finished.fire_time == event.due_time
    assert await timers.fire_due() == []


async def test_a_timer_with_a_past_time_fires_at_once(timers: "Timers") -> None:
    await timers.create(fire_time=at("2020-01-01T00:00"))
    assert await timers.fire_due() == ["2020-01-01T00:00:00Z"]


async def test_a_recurring_timer_fires_at_each_of_its_local_times(timers: "Timers") -> None:
    made = await timers.create(cron="0 9 * * *", time_zone=NEW_YORK)
    timers.clock.moment = at("2026-03-07T14:00")
    assert await timers.fire_due() == ["2026-03-02T09:00"]
    assert (await timers.get()).next_fire_time.ToDatetime(UTC) == at("2026-03-08T13:00")
    timers.clock.moment = at("2026-03-08T13:00")
    assert await timers.fire_due() == ["2026-03-08T09:00"]
    after = await timers.get()
    assert (after.state, after.fire_count, after.etag) == (TIMER_STATE_ACTIVE, 2, made.etag)


async def test_both_passes_of_an_overlap_fire_with_different_keys(timers: "Timers") -> None:
    timers.clock.moment = at("2026-11-01T00:00")
    await timers.create("cron", cron="30 1 * * *", time_zone=NEW_YORK)
    await timers.create("once", cron="30 1 * * *", time_zone=NEW_YORK, dst_policy=Dst.ONCE)
    timers.clock.moment = at("2026-11-01T05:30")
    assert await timers.fire_due() == ["2026-11-01T01:30", "2026-11-01T01:30"]
    timers.clock.moment = at("2026-11-01T06:30")
    assert await timers.fire_due() == ["2026-11-01T01:30/2"]


async def test_an_interval_keeps_its_step(timers: "Timers") -> None:
    await timers.create(cron="@every 90s")
    timers.clock.moment = START + timedelta(seconds=200)
    assert await timers.fire_due() == ["2026-03-02T09:01:30Z"]
    assert (await timers.get()).next_fire_time.ToDatetime(UTC) == START + timedelta(seconds=270)


async def test_the_oldest_fires_first(timers: "Timers") -> None:
    for minutes in (3, 1, 2):
        await timers.create(f"t{minutes}", fire_time=START + timedelta(minutes=minutes))
    timers.clock.moment += HOUR
    assert await timers.fire_due(batch=2) == [f"2026-03-02T09:0{minutes}:00Z" for minutes in (1, 2, 3)]


async def test_a_rush_of_one_organization_does_not_delay_another(timers: "Timers") -> None:
    for number in range(30):
        await timers.create(f"t{number:02}", fire_time=START + timedelta(seconds=number))
    await timers.create("single", organization_id="umbrella", fire_time=START + timedelta(minutes=1))
    timers.clock.moment += HOUR
    await timers.fire_due(batch=5)
    fired = [event.timer_id for event in timers.fired.events]
    assert fired.index("single") < 10
    # No timer is lost, and those of one organization keep their order.
    assert [each for each in fired if each != "single"] == [f"t{number:02}" for number in range(30)]


async def test_a_rush_is_shared_while_lists_hold_all_readers(timers: "Timers") -> None:
    for number in range(12):
        await timers.create(f"t{number:02}", fire_time=START + timedelta(seconds=number))
    timers.clock.moment += HOUR
    async with all_readers_held(timers.database):
        await timers.fire_due(batch=3)
    assert len(timers.fired.events) == 12


async def test_each_organization_gets_its_share_of_a_rush(timers: "Timers") -> None:
    organizations = ("acme", "umbrella", "initech")
    for place, organization_id in enumerate(organizations):
        for number in range(20):
            due = START + timedelta(minutes=place, seconds=number)
            await timers.create(f"t{number}", organization_id=organization_id, fire_time=due)
    timers.clock.moment += HOUR
    await timers.fire_due(batch=6)
    second = [event.organization_id for event in timers.fired.events][6:12]
    assert second == [organization_id for organization_id in organizations for _ in range(2)]
    assert len(timers.fired.events) == 60


async def test_two_engines_share_a_rush(timers: "Timers") -> None:
    for number in range(40):
        await timers.create(f"t{number}", organization_id=f"o{number % 3}", fire_time=START)
    timers.clock.moment += HOUR
    async with asyncio.TaskGroup() as group:
        for _ in range(2):
            group.create_task(timers.fire_due(batch=3))
    assert len(timers.fired.events) == 40
    assert len({(event.organization_id, event.timer_id) for event in timers.fired.events}) == 40


async def test_nothing_fires_after_repeat_until(timers: "Timers") -> None:
    await timers.create(cron="0 * * * *", repeat_until=at("2026-03-02T11:00"), misfire_policy=MisfirePolicy.FIRE_ALL)
    for hour in (10, 11, 12, 13):
        timers.clock.moment = at(f"2026-03-02T{hour}:00")
        await timers.fire_due()
    assert timers.fired.keys == ["2026-03-02T10:00", "2026-03-02T11:00"]
    assert (await timers.get()).state == TIMER_STATE_FINISHED


async def test_an_auto_remove_timer_is_deleted_after_its_last_firing(timers: "Timers") -> None:
    await timers.create("once", delay=timedelta(0), auto_remove=True, payload=b"p")
    await timers.create("twice", cron="0 * * * *", repeat_until=at("2026-03-02T11:00"), auto_remove=True)
    timers.clock.moment = at("2026-03-02T10:00")
    await timers.fire_due()
    assert {event.timer_id: event.payload for event in timers.fired.events} == {"once": b"p", "twice": b""}
    assert (await timers.get("twice")).state == TIMER_STATE_ACTIVE
    timers.clock.moment = at("2026-03-02T11:00")
    assert await timers.fire_due() == ["2026-03-02T11:00"]
    for timer_id in ("once", "twice"):
        with pytest.raises(NotFound):
            await timers.get(timer_id)


async def test_a_failed_transaction_fires_nothing_and_is_retried(timers: "Timers") -> None:
    await timers.create(cron="0 * * * *")
    timers.clock.moment = at("2026-03-02T10:00")
    async with timers.database.statement() as connection:
        await connection.execute(text("alter table outbox rename to away"))
    replica = timers.jobs()
    jobs = await timers.lock_all(replica)
    with pytest.raises(Exception, match="outbox"):
        await timers.settle(replica, jobs)
    assert (await timers.get()).fire_count == 0
    async with timers.database.statement() as connection:
        await connection.execute(text("alter table away rename to outbox"))
    timers.clock.moment += timedelta(seconds=10)
    assert await timers.fire_due() == ["2026-03-02T10:00"]


async def test_no_occurrence_fires_twice_when_the_clock_goes_back(timers: "Timers") -> None:
    for policy in MisfirePolicy:
        await timers.create(policy, cron="0 * * * *", misfire_policy=policy)
    for moment, keys in (("10:00", ["10:00"] * 3), ("09:30", []), ("10:30", []), ("11:00", ["11:00"] * 3)):
        timers.clock.moment = at(f"2026-03-02T{moment}")
        assert [key[-5:] for key in await timers.fire_due()] == keys


async def test_a_large_batch_fires_each_timer_with_its_own_payload(timers: "Timers") -> None:
    for number in range(30):
        await timers.create(f"t{number}", delay=timedelta(0), payload=bytes([number]) * 65_536)
    assert len(await timers.fire_due(batch=7)) == 30
    assert {event.timer_id: event.payload for event in timers.fired.events} == {
        f"t{number}": bytes([number]) * 65_536 for number in range(30)
    }
