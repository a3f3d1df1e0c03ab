"""Locks of long runs are extended, and a run without a lock is cancelled, on both stores."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta

from jobkit.errors import LockLost, SchedulerError, StoreFailed
from jobkit.job import Done, Job, Outcome
from testkit.clocks import START
from testkit.eventually import eventually
from testkit.jobs import Scene, once

MINUTE = timedelta(minutes=1)


async def test_a_long_run_keeps_its_lock(scene: Scene) -> None:
    done = asyncio.Event()

    async def linger(job: Job) -> None:
        # The frozen clock stands still; the real one drives the extensions.
        await eventually(lambda: scene.store.calls["extend"] >= 2)
        done.set()

    await scene.jobs.add(once())
    await scene.until_idle(on_document=linger, lock_duration=timedelta(seconds=0.15))
    assert done.is_set()
    assert scene.errors == []
    assert (await scene.job()).due_time is None


async def test_locks_are_extended_while_a_hook_hangs(scene: Scene) -> None:
    begun: list[object] = []
    finish = asyncio.Event()

    async def linger(job: Job) -> None:
        begun.append(job.id)
        await finish.wait()

    async def hang(error: SchedulerError) -> None:
        scene.errors.append(error)
        await finish.wait()

    await scene.jobs.add(once(1), once(2))
    settings = {"on_document": linger, "on_error": hang, "workers": 2, "lock_duration": timedelta(seconds=0.15)}
    async with scene.scheduler(**settings):
        await eventually(lambda: len(begun) == 2)
        await scene.jobs.edit(1, sleep_until=None)
        await eventually(lambda: scene.errors)
        extended = scene.store.calls["extend"]
        await eventually(lambda: scene.store.calls["extend"] > extended + 1)
        finish.set()
    assert [type(error) for error in scene.errors] == [LockLost]
    assert (await scene.job(2)).due_time is None


async def test_a_run_that_loses_its_lock_is_cancelled(scene: Scene) -> None:
    cancelled = asyncio.Event()

    async def linger(job: Job) -> None:
        await scene.jobs.edit(1, sleep_until=None)
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    await scene.jobs.add(once())
    await scene.until_idle(on_document=linger, lock_duration=timedelta(seconds=0.15))
    assert cancelled.is_set()
    assert (await scene.job()).due_time == START
    assert [type(error) for error in scene.errors] == [LockLost]


async def test_a_cancelled_run_may_be_slow_to_end(scene: Scene) -> None:
    cleaning, clean = asyncio.Event(), asyncio.Event()

    async def linger(job: Job) -> None:
        await scene.jobs.edit(1, sleep_until=None)
        try:
            await asyncio.Event().wait()
        finally:
            cleaning.set()
            await clean.wait()

    await scene.jobs.add(once())
    scheduler = scene.scheduler(on_document=linger, lock_duration=timedelta(seconds=0.15), grace=timedelta(0))
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        running = group.create_task(scheduler.run(stop))
        await cleaning.wait()
        stop.set()
        for _ in range(20):
            await asyncio.sleep(0)
        assert not running.done()
        clean.set()
    assert [type(error) for error in scene.errors] == [LockLost]


async def test_a_batch_goes_on_while_it_holds_one_lock(scene: Scene) -> None:
    async def linger(jobs: Sequence[Job]) -> Sequence[Outcome]:
        scene.ran.extend(jobs)
        await scene.jobs.edit(1, sleep_until=None)
        await eventually(lambda: scene.errors)
        return [Done() for _ in jobs]

    await scene.jobs.add(once(1), once(2))
    await scene.until_idle(on_batch=linger, batch=5, lock_duration=timedelta(seconds=0.15))
    assert [job.id for job in scene.ran] == [1, 2]
    assert (await scene.job(1)).due_time == START
    assert (await scene.job(2)).due_time is None
    assert [type(error) for error in scene.errors] == [LockLost]


async def test_a_run_is_cancelled_when_its_lock_expires(scene: Scene) -> None:
    async def linger(job: Job) -> None:
        scene.store.failing.add("extend")
        await eventually(lambda: scene.store.calls["extend"] >= 2)
        scene.clock.advance(MINUTE)
        await asyncio.Event().wait()

    await scene.jobs.add(once())
    async with scene.scheduler(on_document=linger, lock_duration=timedelta(seconds=0.15)):
        await eventually(lambda: any(isinstance(error, LockLost) for error in scene.errors))
    assert isinstance(scene.errors[0], StoreFailed)
