"""Results are written while the lock holds, on both stores."""

import asyncio
from datetime import timedelta

import pytest

from jobkit.errors import AttemptFailed, LateWrite, StoreFailed
from jobkit.job import Job
from testkit.clocks import START
from testkit.eventually import eventually
from testkit.jobs import Scene, hourly, once

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


# Locks


async def test_a_worker_that_was_overtaken_writes_nothing(scene: Scene) -> None:
    async def be_overtaken(job: Job) -> None:
        scene.clock.advance(11 * MINUTE)
        (other,) = await scene.jobs.store.lock_next(scene.clock.now(), scene.clock.now() + HOUR, 1)
        assert other.lock != job.lock

    await scene.jobs.add(once(auto_remove=True))
    await scene.until_idle(on_document=be_overtaken)
    assert (await scene.job()).sleep_until == START + 11 * MINUTE + HOUR
    assert [type(error) for error in scene.errors] == [LateWrite]


async def test_a_pause_during_a_run_wins(scene: Scene) -> None:
    async def be_paused(job: Job) -> None:
        await scene.jobs.edit(1, sleep_until=None)

    await scene.jobs.add(hourly())
    await scene.until_idle(on_document=be_paused)
    row = await scene.job()
    assert (row.due_time, row.sleep_until) == (START, None)
    assert [type(error) for error in scene.errors] == [LateWrite]


async def test_a_paused_job_runs_when_it_is_resumed(scene: Scene) -> None:
    await scene.jobs.add(Job(id=1, due_time=START - DAY, sleep_until=None, interval="@hourly"))
    await scene.until_idle()
    assert scene.ran == []
    await scene.jobs.edit(1, sleep_until=START)
    await scene.until_idle()
    assert [job.due_time for job in scene.ran] == [START - DAY]
    assert (await scene.job()).due_time == START + HOUR


async def test_a_result_waits_for_an_extension_under_way(scene: Scene) -> None:
    gate, finish = asyncio.Event(), asyncio.Event()
    scene.store.gates["extend"] = gate

    async def linger(job: Job) -> None:
        await finish.wait()

    await scene.jobs.add(once())
    async with scene.scheduler(on_document=linger, lock_duration=timedelta(seconds=0.15)) as scheduler:
        await eventually(lambda: scene.store.calls["extend"])
        finish.set()
        for _ in range(20):
            await asyncio.sleep(0)
        assert scene.store.calls["update"] == 0
        gate.set()
        await eventually(lambda: scheduler.is_idle)
    assert (await scene.job()).sleep_until is None


# The store is unreachable


@pytest.mark.parametrize("call", ["now", "lock_next", "next_due"])
async def test_a_store_call_that_failed_is_retried(scene: Scene, call: str) -> None:
    waits: list[float] = []

    def draw() -> float:
        waits.append(0)
        return 0

    scene.store.failing = {call}
    async with scene.scheduler(draw=draw) as scheduler:
        await eventually(lambda: len(scene.errors) >= 3)
        assert {type(error) for error in scene.errors} == {StoreFailed}
        assert scene.store.calls[call] - len(waits) <= 1
        scene.store.failing.clear()
        await scene.jobs.add(once())
        await eventually(lambda: scene.ran and scheduler.is_idle)


@pytest.mark.parametrize(("call", "auto_remove"), [("update", False), ("remove", True)])
async def test_a_result_is_written_when_the_store_is_back(scene: Scene, call: str, auto_remove: bool) -> None:
    scene.store.failing = {call}
    await scene.jobs.add(once(auto_remove=auto_remove))
    async with scene.scheduler() as scheduler:
        await eventually(lambda: len(scene.errors) >= 2)
        assert scheduler.is_processing
        scene.store.failing.clear()
        await eventually(lambda: scheduler.is_idle)
    assert len(scene.ran) == 1
    row = await scene.jobs.read(1)
    assert row is None if auto_remove else row is not None and row.due_time is None


async def test_a_result_is_given_up_when_its_lock_expires(scene: Scene) -> None:
    scene.store.failing = {"update"}
    await scene.jobs.add(once(1))
    async with scene.scheduler() as scheduler:
        await eventually(lambda: scene.errors)
        scene.clock.advance(11 * MINUTE)
        await eventually(lambda: len(scene.ran) == 2)
        scene.store.failing.clear()
        await eventually(lambda: scheduler.is_idle)
    assert [job.attempts for job in scene.ran] == [1, 2]
    assert (await scene.job()).due_time is None


async def test_a_result_is_given_up_while_its_batch_goes_on(scene: Scene) -> None:
    finish = asyncio.Event()

    async def do(job: Job) -> None:
        if job.id == 1:
            raise RuntimeError("no")
        await finish.wait()

    scene.store.failing = {"update"}
    await scene.jobs.add(once(1), once(2))
    brief, loop = timedelta(seconds=0.15), asyncio.get_running_loop()
    async with scene.scheduler(on_document=do, batch=2, lock_duration=brief, monotonic=loop.time, draw=lambda: 0.0):
        try:
            await eventually(lambda: any(isinstance(error, AttemptFailed) for error in scene.errors))
            assert scene.store.calls["extend"] > 1
        finally:
            scene.store.failing.clear()
            finish.set()
