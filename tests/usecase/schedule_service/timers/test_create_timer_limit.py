"""The limit of unfinished timers per organization."""

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import event, text

from postflow.schedule.v1.timer_pb2 import TIMER_STATE_FAULTY, TIMER_STATE_FINISHED
from servicekit.faults import AlreadyExists, LimitReached, NotFound

if TYPE_CHECKING:
    from tests.usecase.schedule_service.timers.conftest import Timers


HOUR = timedelta(hours=1)


async def fill(timers: "Timers", **fields: object) -> None:
    for number in range(3):
        await timers.create(f"t{number}", **({"cron": "@hourly"} | fields))  # type: ignore[arg-type]


async def assert_full(timers: "Timers") -> None:
    with pytest.raises(LimitReached) as refused:
        await timers.create("more", delay=HOUR)
    assert (refused.value.reason, refused.value.metadata) == ("TIMERS_PER_ORGANIZATION", {"limit": "3"})
    with pytest.raises(NotFound):
        await timers.get("more")


async def test_a_timer_over_the_limit_is_refused(three_timers: "Timers") -> None:
    await fill(three_timers)
    woken = len(three_timers.woken)
    await assert_full(three_timers)
    await assert_full(three_timers)
    assert len(three_timers.woken) == woken
    await three_timers.create("more", organization_id="umbrella", delay=HOUR)


async def test_timers_from_before_the_limit_count(three_timers: "Timers") -> None:
    await fill(three_timers)
    async with three_timers.database.statement() as connection:
        await connection.execute(text("delete from timer_room"))
    await assert_full(three_timers)


async def test_an_organization_that_is_over_the_limit_is_refused(three_timers: "Timers") -> None:
    await fill(three_timers)
    async with three_timers.database.statement() as connection:
        await connection.execute(text("update timer_room set room = 2"))
    for timer_id in ("t3", "t4"):
        await three_timers.create(timer_id, delay=HOUR)
    await assert_full(three_timers)


async def test_a_paused_and_a_faulty_timer_count(three_timers: "Timers") -> None:
    await fill(three_timers)
    await three_timers.pause("t0")
    async with three_timers.database.statement() as connection:
        await connection.execute(text("update timer set cron = '61 * * * *' where id = 't1'"))
    three_timers.clock.moment += HOUR
    await three_timers.fire_due()
    assert (await three_timers.get("t1")).state == TIMER_STATE_FAULTY
    await assert_full(three_timers)


async def test_a_deleted_timer_makes_room_for_another(three_timers: "Timers") -> None:
    await fill(three_timers)
    for _ in range(2):
        await assert_full(three_timers)
        await three_timers.delete("t1")
        await three_timers.create("t1", cron="@hourly")
    await assert_full(three_timers)


@pytest.mark.parametrize("auto_remove", [False, True])
async def test_finished_timers_make_room(three_timers: "Timers", auto_remove: bool) -> None:
    await fill(three_timers, cron=None, delay=timedelta(0), auto_remove=auto_remove)
    await three_timers.fire_due()
    for number in range(3):
        await three_timers.create(f"next{number}", cron="@hourly")
    await assert_full(three_timers)
    if not auto_remove:
        assert (await three_timers.get("t0")).state == TIMER_STATE_FINISHED
        three_timers.clock.moment += timedelta(days=8)
        await three_timers.delete_finished()
        await assert_full(three_timers)


async def test_an_id_in_use_is_refused_before_the_limit_is_checked(three_timers: "Timers") -> None:
    for timer_id in ("t0", "t1"):
        await three_timers.create(timer_id, delay=HOUR)
    made = await three_timers.create("t2", delay=HOUR, request_id="r")
    with pytest.raises(AlreadyExists):
        await three_timers.create("t0", delay=HOUR)
    assert await three_timers.create("t2", delay=HOUR, request_id="r") == made
    await assert_full(three_timers)


async def test_the_limit_holds_for_concurrent_creations(three_timers: "Timers") -> None:
    async def attempt() -> str:
        try:
            return (await three_timers.create("", delay=HOUR)).id
        except LimitReached:
            return ""

    for room in (3, 1, 1):
        async with asyncio.TaskGroup() as group:
            calls = [group.create_task(attempt()) for _ in range(12)]
        made = [timer_id for call in calls if (timer_id := call.result())]
        assert len(made) == room
        await three_timers.delete(made[0])


@pytest.mark.parametrize("request_id", ["", "r1"])
async def test_room_is_taken_in_the_last_statement(three_timers: "Timers", request_id: str) -> None:
    statements: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        statements.append(statement)

    await three_timers.create("t0", cron="@hourly", request_id="r0")
    event.listen(three_timers.database.engine.sync_engine, "before_cursor_execute", note)
    await three_timers.create("t1", cron="@hourly", request_id=request_id)
    assert "update timer_room" in statements[-1], "other creations would wait for what follows"


async def test_timers_fire_while_others_are_counted(three_timers: "Timers") -> None:
    await three_timers.create("t0", cron="@hourly")
    await three_timers.create("t1", delay=timedelta(0))
    await three_timers.create("t2", delay=timedelta(0), auto_remove=True)
    three_timers.clock.moment += HOUR
    async with three_timers.database.transaction() as tx:
        await tx.connection.execute(text("select from timer_room for update"))
        assert len(await three_timers.fire_due()) == 3
        await three_timers.pause("t0")
        await three_timers.delete("t1")
