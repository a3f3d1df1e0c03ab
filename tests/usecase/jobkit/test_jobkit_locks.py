"""Who may write what became of a run, and when, on both stores."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta

import pytest

from jobkit.errors import AttemptFailed, LateWrite, LockLost, SchedulerError, StoreFailed
from jobkit.job import Done, Job, Outcome
from testkit.clocks import START
from testkit.eventually import eventually
from testkit.jobs import Scene, hourly, once

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


# Locks


async def test_whoever_was_overtaken_writes_nothing_and_says_so(scene: Scene) -> None:
    async def be_overtaken(job: Job) -> None:
        scene.clock.advance(11 * MINUTE)
        (other,) = await scene.jobs.store.lock_next(scene.clock.now(), scene.clock.now() + HOUR, 1)
        assert other.lock != job.lock

    await scene.jobs.add(once(auto_remove=True))
    await scene.until_idle(on_document=be_overtaken)
    assert (await scene.job()).sleep_until == START + 11 * MINUTE + HOUR
    assert [type(error) for error in scene.told] == [LateWrite]


async def test_a_pause_during_a_run_wins(scene: Scene) -> None:
    async def be_paused(job: Job) -> None:
        await scene.jobs.edit(1, sleep_until=None)

    await scene.jobs.add(hourly())
    await scene.until_idle(on_document=be_paused)
    row = await scene.job()
    assert (row.due_time, row.sleep_until) == (START, None)
    assert [type(error) for error in scene.told] == [LateWrite]


async def test_a_paused_job_goes_on_when_somebody_sets_it_going(scene: Scene) -> None:
    await scene.jobs.add(Job(id=1, due_time=START - DAY, sleep_until=None, interval="@hourly"))
    await scene.until_idle()
    assert scene.ran == []
    await scene.jobs.edit(1, sleep_until=START)
    await scene.until_idle()
    assert [job.due_time for job in scene.ran] == [START - DAY]
    assert (await scene.job()).due_time == START + HOUR


async def test_a_long_run_keeps_its_lock(scene: Scene) -> None:
    done = asyncio.Event()

    async def linger(job: Job) -> None:
        # The frozen clock is behind; the real one drives the extensions.
        await eventually(lambda: scene.store.calls["extend"] >= 2)
        done.set()

    await scene.jobs.add(once())
    await scene.until_idle(on_document=linger, lock_duration=timedelta(seconds=0.15))
    assert done.is_set()
    assert scene.told == []
    assert (await scene.job()).due_time is None


async def test_a_result_is_written_after_the_extension_that_was_under_way(scene: Scene) -> None:
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


async def test_locks_are_extended_while_a_hook_hangs(scene: Scene) -> None:
    begun: list[object] = []
    finish = asyncio.Event()

    async def linger(job: Job) -> None:
        begun.append(job.id)
        await finish.wait()

    async def hang(error: SchedulerError) -> None:
        scene.told.append(error)
        await finish.wait()

    await scene.jobs.add(once(1), once(2))
    settings = {"on_document": linger, "on_error": hang, "workers": 2, "lock_duration": timedelta(seconds=0.15)}
    async with scene.scheduler(**settings):
        await eventually(lambda: len(begun) == 2)
        await scene.jobs.edit(1, sleep_until=None)
        await eventually(lambda: scene.told)
        extended = scene.store.calls["extend"]
        await eventually(lambda: scene.store.calls["extend"] > extended + 1)
        finish.set()
    assert [type(error) for error in scene.told] == [LockLost]
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
    assert [type(error) for error in scene.told] == [LockLost]


async def test_a_cancelled_run_may_take_its_time_to_end(scene: Scene) -> None:
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
    assert [type(error) for error in scene.told] == [LockLost]


async def test_a_batch_goes_on_while_it_holds_one_lock(scene: Scene) -> None:
    async def linger(jobs: Sequence[Job]) -> Sequence[Outcome]:
        scene.ran.extend(jobs)
        await scene.jobs.edit(1, sleep_until=None)
        await eventually(lambda: scene.told)
        return [Done() for _ in jobs]

    await scene.jobs.add(once(1), once(2))
    await scene.until_idle(on_batch=linger, batch=5, lock_duration=timedelta(seconds=0.15))
    assert [job.id for job in scene.ran] == [1, 2]
    assert (await scene.job(1)).due_time == START
    assert (await scene.job(2)).due_time is None
    assert [type(error) for error in scene.told] == [LockLost]


async def test_a_run_whose_lock_can_be_extended_by_nobody_is_cancelled_when_it_ends(scene: Scene) -> None:
    async def linger(job: Job) -> None:
        scene.store.failing.add("extend")
        await eventually(lambda: scene.store.calls["extend"] >= 2)
        scene.clock.advance(MINUTE)
        await asyncio.Event().wait()

    await scene.jobs.add(once())
    async with scene.scheduler(on_document=linger, lock_duration=timedelta(seconds=0.15)):
        await eventually(lambda: any(isinstance(error, LockLost) for error in scene.told))
    assert isinstance(scene.told[0], StoreFailed)


# The store is away


@pytest.mark.parametrize("call", ["now", "lock_next", "next_due"])
async def test_a_store_that_is_away_is_asked_again_after_a_while(scene: Scene, call: str) -> None:
    waits: list[float] = []

    def draw() -> float:
        waits.append(0)
        return 0

    scene.store.failing = {call}
    async with scene.scheduler(draw=draw) as scheduler:
        await eventually(lambda: len(scene.told) >= 3)
        assert {type(error) for error in scene.told} == {StoreFailed}
        assert scene.store.calls[call] - len(waits) <= 1
        scene.store.failing.clear()
        await scene.jobs.add(once())
        await eventually(lambda: scene.ran and scheduler.is_idle)


@pytest.mark.parametrize(("call", "auto_remove"), [("update", False), ("remove", True)])
async def test_what_became_of_a_run_is_written_when_the_store_is_back(
    scene: Scene, call: str, auto_remove: bool
) -> None:
    scene.store.failing = {call}
    await scene.jobs.add(once(auto_remove=auto_remove))
    async with scene.scheduler() as scheduler:
        await eventually(lambda: len(scene.told) >= 2)
        assert scheduler.is_processing
        scene.store.failing.clear()
        await eventually(lambda: scheduler.is_idle)
    assert len(scene.ran) == 1
    row = await scene.jobs.read(1)
    assert row is None if auto_remove else row is not None and row.due_time is None


async def test_after_the_end_of_its_lock_a_run_is_not_held_on_to(scene: Scene) -> None:
    scene.store.failing = {"update"}
    await scene.jobs.add(once(1))
    async with scene.scheduler() as scheduler:
        await eventually(lambda: scene.told)
        scene.clock.advance(11 * MINUTE)
        await eventually(lambda: len(scene.ran) == 2)
        scene.store.failing.clear()
        await eventually(lambda: scheduler.is_idle)
    assert [job.attempts for job in scene.ran] == [1, 2]
    assert (await scene.job()).due_time is None


async def test_a_result_is_given_up_when_its_lock_ended_while_a_batch_goes_on(scene: Scene) -> None:
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
            await eventually(lambda: any(isinstance(error, AttemptFailed) for error in scene.told))
            assert scene.store.calls["extend"] > 1
        finally:
            scene.store.failing.clear()
            finish.set()
