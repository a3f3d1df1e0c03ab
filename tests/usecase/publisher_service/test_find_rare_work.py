"""The loops of rare work are woken when there is some."""

import asyncio
from datetime import timedelta

from publisher_service.application.find_rare_work import FindRareWork
from publisher_service.domain.rare_work import Work
from servicekit.clock import SystemClock
from servicekit.pg.clock import DatabaseClock, SteadyClock
from tests.usecase.publisher_service.replica import Replica


async def test_steps_with_work_are_woken_and_no_others(replica: Replica) -> None:
    wakes = {work: asyncio.Event() for work in Work}
    steady = SteadyClock(SystemClock())
    await steady.start(DatabaseClock(), replica.database)
    find = FindRareWork(database=replica.database, steady=steady, wakes=wakes)
    await replica.connect("page")
    await replica.write("update account_gate set relabel = false")
    await find()
    assert not any(event.is_set() for event in wakes.values())
    (row,) = await replica.rows("select clock_timestamp() as now")
    await replica.hold("page", end=row.now + timedelta(hours=1))
    await replica.write("update hold set end_time = :now", now=row.now)
    await find()
    assert {work for work, event in wakes.items() if event.is_set()} == {Work.RELABEL_LINES, Work.END_HOLDS}
