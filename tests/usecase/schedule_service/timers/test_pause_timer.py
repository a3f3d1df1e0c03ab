"""Pausing and resuming timers."""

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from postflow.schedule.v1.timer_pb2 import (
    TIMER_STATE_ACTIVE,
    TIMER_STATE_PAUSED,
)
from schedule_service.adapters.postgres.timers import find_timer
from servicekit.faults import Conflict, NotFound, Refused

if TYPE_CHECKING:
    from tests.usecase.schedule_service.timers.conftest import Timers


async def test_pausing_and_resuming_change_the_etag(timers: "Timers") -> None:
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


async def test_a_repeated_request_id_gets_the_first_answer(timers: "Timers") -> None:
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


async def test_a_finished_timer_is_neither_paused_nor_resumed(timers: "Timers") -> None:
    await timers.create(delay=timedelta(0))
    await timers.fire_due()
    for call in (timers.pause, timers.resume):
        with pytest.raises(Refused) as refused:
            await call()
        assert refused.value.reason == "TIMER_FINISHED"


async def test_concurrent_pauses_and_resumptions_are_serialized(timers: "Timers") -> None:
    await timers.create(cron="@daily")
    async with asyncio.TaskGroup() as group:
        for number in range(10):
            group.create_task(timers.pause() if number % 2 else timers.resume())
    final = await timers.get()
    async with timers.database.read() as connection:
        stored = await find_timer(connection, "acme", "t")
    assert stored is not None
    assert (stored.sleep_until is None) == (final.state == TIMER_STATE_PAUSED)
    assert stored.etag == final.etag
