"""Timers in a real database: made, found, at rest and going again, fired by hand, taken away."""

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
    TIMER_STATE_PAUSED,
)
from schedule_service.adapters.postgres import timers as store
from schedule_service.domain.timers.timer import MisfirePolicy
from servicekit.faults import AlreadyExists, Conflict, InvalidField, NotFound, Refused
from testkit.clocks import START

if TYPE_CHECKING:
    from tests.usecase.schedule_service.conftest import Timers

HOUR = timedelta(hours=1)


async def test_a_timer_is_stored_as_it_was_asked_for(timers: "Timers") -> None:
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


async def test_an_id_is_used_once(timers: "Timers") -> None:
    first = await timers.create(delay=HOUR)
    with pytest.raises(AlreadyExists) as refused:
        await timers.create(cron="@daily")
    assert (refused.value.reason, refused.value.metadata) == ("TIMER_EXISTS", {"timer_id": "t"})
    assert await timers.get() == first


async def test_the_law_that_a_recurring_timer_follows_is_recorded_with_it(timers: "Timers") -> None:
    await timers.create("once", delay=HOUR)
    await timers.create("daily", cron="@daily", time_zone="Asia/Tokyo")
    async with timers.database.read() as connection:
        laws = (await connection.execute(text("select tzdata_version, time_zone, data from zone_data"))).all()
    assert [tuple(law) for law in laws] == [(tzdata_version(), "Asia/Tokyo", zone_data("Asia/Tokyo"))]


async def test_the_engine_is_told_how_far_ahead_a_new_timer_is_due(timers: "Timers") -> None:
    await timers.create("soon", delay=timedelta(0))
    await timers.create("later", delay=HOUR)
    with pytest.raises(AlreadyExists):
        await timers.create("soon", delay=timedelta(0))
    assert timers.woken == [timedelta(0), HOUR]


async def test_a_repeated_creation_is_answered_as_the_first_time(timers: "Timers") -> None:
    first = await timers.create("", delay=HOUR, request_id="r1")
    await timers.pause(first.id)
    assert await timers.create("", delay=HOUR, request_id="r1") == first


async def test_creations_at_the_same_time_with_one_request_id_make_one_timer(timers: "Timers") -> None:
    async with asyncio.TaskGroup() as group:
        calls = [group.create_task(timers.create("", delay=HOUR, request_id="r1")) for _ in range(6)]
    assert len({call.result().id for call in calls}) == 1


async def test_a_pause_and_a_resumption_are_changes_by_people(timers: "Timers") -> None:
    made = await timers.create(cron="@daily")
    resting = await timers.pause(etag=made.etag)
    assert (resting.state, resting.next_fire_time) == (TIMER_STATE_PAUSED, made.next_fire_time)
    assert await timers.pause() == resting
    going = await timers.resume(etag=resting.etag)
    assert (going.state, going.next_fire_time) == (TIMER_STATE_ACTIVE, made.next_fire_time)
    assert await timers.resume() == going == await timers.get()
    assert len({made.etag, resting.etag, going.etag}) == 3


async def test_a_stale_etag_changes_nothing(timers: "Timers") -> None:
    made = await timers.create(cron="@daily")
    resting = await timers.pause()
    for call in (timers.pause, timers.resume, timers.delete):
        with pytest.raises(Conflict) as refused:
            await call(etag=made.etag)
        assert refused.value.reason == "ETAG_MISMATCH"
    assert await timers.get() == resting


async def test_a_repeated_request_id_is_answered_as_the_first_time(timers: "Timers") -> None:
    await timers.create(cron="@daily")
    resting = await timers.pause(request_id="r1")
    going = await timers.resume(request_id="r2")
    assert await timers.pause(request_id="r1") == resting
    assert await timers.resume(request_id="r2") == going == await timers.get()
    fired = await timers.fire(request_id="r3")
    assert await timers.fire(request_id="r3") == fired
    assert timers.fired.keys == ["manual/r3"]
    await timers.delete(request_id="r4")
    await timers.delete(request_id="r4")
    with pytest.raises(NotFound):
        await timers.delete()


async def test_a_request_id_is_good_for_one_request_only(timers: "Timers") -> None:
    await timers.create(cron="@daily", request_id="r1")
    async with timers.database.statement() as connection:
        await connection.execute(text("update request_ledger set request_digest = 'another'"))
    with pytest.raises(InvalidField) as refused:
        await timers.create(cron="@daily", request_id="r1")
    assert refused.value.reason == "REQUEST_ID_REUSED"


async def test_a_finished_timer_is_neither_paused_nor_resumed(timers: "Timers") -> None:
    await timers.create(delay=timedelta(0))
    await timers.fire_due()
    for call in (timers.pause, timers.resume):
        with pytest.raises(Refused) as refused:
            await call()
        assert refused.value.reason == "TIMER_FINISHED"


async def test_a_firing_by_hand_leaves_the_schedule_alone(timers: "Timers") -> None:
    made = await timers.create(cron="@daily", payload=b"p")
    answer = await timers.fire()
    assert answer.occurrence_key.startswith("manual/")
    after = answer.timer
    assert (after.fire_count, after.last_occurrence_key) == (1, "")
    assert after.last_fire_time.ToDatetime(UTC) > START
    assert (after.next_fire_time, after.etag, after.update_time) == (made.next_fire_time, made.etag, made.update_time)
    (event,) = timers.fired.events
    assert (event.timer_id, event.topic, event.payload, event.manual) == ("t", "drafts.generate", b"p", True)
    assert event.occurrence_key == answer.occurrence_key
    assert event.due_time == event.fire_time == after.last_fire_time
    assert (await timers.fire()).occurrence_key != answer.occurrence_key


async def test_a_timer_fires_by_hand_whatever_its_state(timers: "Timers") -> None:
    await timers.create("resting", cron="@daily")
    await timers.pause("resting")
    await timers.create("finished", delay=timedelta(0))
    await timers.fire_due()
    for timer_id in ("resting", "finished"):
        before = await timers.get(timer_id)
        after = (await timers.fire(timer_id, request_id=f"by-hand-{timer_id}")).timer
        assert (after.state, after.fire_count) == (before.state, before.fire_count + 1)
        assert timers.fired.keys[-1] == f"manual/by-hand-{timer_id}"


async def test_what_is_deleted_is_gone(timers: "Timers") -> None:
    made = await timers.create(delay=timedelta(0))
    await timers.delete(etag=made.etag)
    assert await timers.fire_due() == []
    for call in (timers.get, timers.pause, timers.resume, timers.fire, timers.delete):
        with pytest.raises(NotFound) as missing:
            await call()
        assert (missing.value.reason, missing.value.metadata) == ("TIMER_NOT_FOUND", {"timer_id": "t"})


async def test_organizations_do_not_meet_even_with_the_same_id(timers: "Timers") -> None:
    ours = await timers.create(cron="@daily")
    for call in (timers.get, timers.pause, timers.resume, timers.fire, timers.delete):
        with pytest.raises(NotFound):
            await call(organization_id="umbrella")
    theirs = await timers.create(organization_id="umbrella", cron="@hourly")
    await timers.pause(organization_id="umbrella")
    await timers.delete(organization_id="umbrella")
    assert theirs.cron == "@hourly"
    assert await timers.get() == ours


async def test_pauses_and_resumptions_at_the_same_time_take_turns(timers: "Timers") -> None:
    await timers.create(cron="@daily")
    async with asyncio.TaskGroup() as group:
        for number in range(10):
            group.create_task(timers.pause() if number % 2 else timers.resume())
    final = await timers.get()
    async with timers.database.read() as connection:
        stored = await store.find(connection, "acme", "t")
    assert stored is not None
    assert (stored.sleep_until is None) == (final.state == TIMER_STATE_PAUSED)
    assert stored.etag == final.etag
