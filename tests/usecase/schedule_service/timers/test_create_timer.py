"""Creating timers."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import text

from civil.cron import Dst
from civil.zones import tzdata_version, zone_data
from postflow.schedule.v1.timer_pb2 import (
    DST_POLICY_ONCE,
    MISFIRE_POLICY_FIRE_ALL,
    TIMER_STATE_ACTIVE,
)
from schedule_service.domain.timers.timer import MisfirePolicy
from servicekit.faults import AlreadyExists, InvalidField

if TYPE_CHECKING:
    from tests.usecase.schedule_service.timers.conftest import Timers


HOUR = timedelta(hours=1)


async def test_a_timer_is_stored_with_the_given_fields(timers: "Timers") -> None:
    made = await timers.create(
        payload=b"\0\xff",
        cron="30 2 * * *",
        time_zone="America/New_York",
        dst_policy=Dst.ONCE,
        misfire_policy=MisfirePolicy.FIRE_ALL,
        catch_up_interval=timedelta(seconds=2.5),
        repeat_until=datetime(2027, 1, 1, tzinfo=UTC),
        auto_remove=True,
    )
    assert (made.id, made.topic, made.payload, made.cron) == ("t", "drafts.generate", b"\0\xff", "30 2 * * *")
    assert (made.time_zone, made.dst_policy, made.misfire_policy) == (
        "America/New_York",
        DST_POLICY_ONCE,
        MISFIRE_POLICY_FIRE_ALL,
    )
    assert made.catch_up_interval.ToTimedelta() == timedelta(seconds=2.5)
    assert made.repeat_until.ToDatetime(UTC) == datetime(2027, 1, 1, tzinfo=UTC)
    assert made.auto_remove
    assert made.state == TIMER_STATE_ACTIVE
    assert made.next_fire_time.ToDatetime(UTC) == datetime(2026, 3, 3, 7, 30, tzinfo=UTC)
    assert (made.fire_count, made.last_occurrence_key, made.HasField("last_fire_time")) == (0, "", False)
    assert made.tzdata_version == tzdata_version()
    assert await timers.get() == made


async def test_a_timer_without_an_id_gets_one(timers: "Timers") -> None:
    first, second = await timers.create("", delay=HOUR), await timers.create("", delay=HOUR)
    assert first.id != second.id
    assert await timers.get(first.id) == first


async def test_an_id_in_use_is_refused(timers: "Timers") -> None:
    first = await timers.create(delay=HOUR)
    with pytest.raises(AlreadyExists) as refused:
        await timers.create(cron="@daily")
    assert (refused.value.reason, refused.value.metadata) == ("TIMER_EXISTS", {"timer_id": "t"})
    assert await timers.get() == first


async def test_the_zone_of_a_recurring_timer_is_recorded(timers: "Timers") -> None:
    await timers.create("once", delay=HOUR)
    await timers.create("daily", cron="@daily", time_zone="Asia/Tokyo")
    async with timers.database.read() as connection:
        zones = (await connection.execute(text("select tzdata_version, time_zone, data from zone_data"))).all()
    assert [tuple(zone) for zone in zones] == [(tzdata_version(), "Asia/Tokyo", zone_data("Asia/Tokyo"))]


async def test_the_engine_is_woken_with_the_time_until_the_timer_is_due(timers: "Timers") -> None:
    await timers.create("soon", delay=timedelta(0))
    await timers.create("later", delay=HOUR)
    with pytest.raises(AlreadyExists):
        await timers.create("soon", delay=timedelta(0))
    assert timers.woken == [timedelta(0), HOUR]


async def test_a_repeated_creation_gets_the_first_answer(timers: "Timers") -> None:
    first = await timers.create("", delay=HOUR, request_id="r1")
    await timers.pause(first.id)
    assert await timers.create("", delay=HOUR, request_id="r1") == first


async def test_concurrent_creations_of_one_request_id_make_one_timer(timers: "Timers") -> None:
    async with asyncio.TaskGroup() as group:
        calls = [group.create_task(timers.create("", delay=HOUR, request_id="r1")) for _ in range(6)]
    assert len({call.result().id for call in calls}) == 1


async def test_a_request_id_is_valid_for_one_request_only(timers: "Timers") -> None:
    await timers.create(cron="@daily", request_id="r1")
    async with timers.database.statement() as connection:
        await connection.execute(text("update request_ledger set request_digest = 'another'"))
    with pytest.raises(InvalidField) as refused:
        await timers.create(cron="@daily", request_id="r1")
    assert refused.value.reason == "REQUEST_ID_REUSED"
