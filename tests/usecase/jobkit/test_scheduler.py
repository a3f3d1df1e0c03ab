"""The life of a scheduler, with its hooks, sleep and stop, on both stores."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from jobkit.config import Config
from jobkit.errors import AttemptFailed, HookFailed, SchedulerError
from jobkit.job import Done, Failed, Job, Outcome
from jobkit.scheduler import Scheduler
from jobkit.stores.memory import MemoryStore
from testkit.clocks import START
from testkit.eventually import eventually, holds
from testkit.jobs import Scene, fail, hourly, once

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


# Hooks and states


async def test_hooks_are_called_in_order(scene: Scene) -> None:
    said: list[str] = []

    async def do(job: Job) -> None:
        said.append("document")

    def saying(word: str) -> object:
        async def say() -> None:
            said.append(word)

        return say

    await scene.jobs.add(once())
    hooks = {f"on_{word}": saying(word) for word in ("start", "stop", "idle")}
    await scene.until_idle(on_document=do, **hooks)
    assert said == ["start", "document", "idle", "stop"]


async def test_on_idle_is_called_once_each_time(scene: Scene) -> None:
    said: list[int] = []

    async def say() -> None:
        said.append(len(scene.ran))

    async with scene.scheduler(on_idle=say, idle_delay=timedelta(milliseconds=5), workers=3) as scheduler:
        await eventually(lambda: scene.store.calls["next_due"] >= 5)
        await scene.jobs.add(once())
        await eventually(lambda: scene.ran and scheduler.is_idle)
        calls = scene.store.calls["next_due"]
        await eventually(lambda: scene.store.calls["next_due"] >= calls + 5)
    assert said == [0, 1]


async def test_the_states_of_a_scheduler(scene: Scene) -> None:
    going_on, finish = asyncio.Event(), asyncio.Event()

    async def linger(job: Job) -> None:
        going_on.set()
        await finish.wait()

    await scene.jobs.add(once())
    scheduler = scene.scheduler(on_document=linger)
    assert (scheduler.is_running, scheduler.is_processing, scheduler.is_idle) == (False, False, False)
    await scheduler.start()
    await going_on.wait()
    assert (scheduler.is_running, scheduler.is_processing, scheduler.is_idle) == (True, True, False)
    finish.set()
    await eventually(lambda: scheduler.is_idle)
    assert (scheduler.is_running, scheduler.is_processing) == (True, False)
    await scheduler.stop()
    assert (scheduler.is_running, scheduler.is_processing, scheduler.is_idle) == (False, False, False)


async def test_a_scheduler_runs_until_an_event_is_set_and_can_run_again(scene: Scene) -> None:
    scheduler = scene.scheduler()
    for number in (1, 2):
        await scene.jobs.add(once(number))
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(scheduler.run(stop))
            await eventually(lambda: scheduler.is_idle)
            with pytest.raises(RuntimeError, match="runs already"):
                await scheduler.start()
            stop.set()
    assert [job.id for job in scene.ran] == [1, 2]


def test_a_scheduler_can_run_again_on_another_loop() -> None:
    store = MemoryStore()

    async def do(job: Job) -> None:
        ran.append(job.id)

    async def once_more(number: int) -> None:
        async with scheduler:
            await eventually(lambda: scheduler.is_idle)
            now = await store.now()
            store.add(Job(id=number, due_time=now, sleep_until=now))
            scheduler.wake()
            await eventually(lambda: number in ran)

    ran: list[object] = []
    scheduler = Scheduler(Config(store=store, on_document=do, idle_delay=HOUR))
    asyncio.run(once_more(1))
    asyncio.run(once_more(2))


async def test_an_error_of_on_start_is_raised_and_nothing_begins(scene: Scene) -> None:
    async def refuse() -> None:
        raise RuntimeError("not today")

    await scene.jobs.add(once())
    scheduler = scene.scheduler(on_start=refuse)
    with pytest.raises(RuntimeError, match="not today"):
        await scheduler.start()
    assert not scheduler.is_running
    assert scene.store.calls.total() == 0
    await scheduler.stop()


async def test_errors_of_other_hooks_are_reported_and_stop_nothing(scene: Scene) -> None:
    async def fail_too() -> None:
        raise RuntimeError("no")

    await scene.jobs.add(once())
    await scene.until_idle(on_idle=fail_too, on_stop=fail_too)
    assert len(scene.ran) == 1
    assert [error.hook for error in scene.errors if isinstance(error, HookFailed)] == ["on_idle", "on_stop"]


async def test_a_handler_that_awaits_a_cancelled_task_has_failed(scene: Scene) -> None:
    async def await_in_vain(job: Job) -> None:
        if job.id == 1:
            given_up = asyncio.get_running_loop().create_future()
            given_up.cancel()
            await given_up
        scene.ran.append(job)

    await scene.jobs.add(once(1), once(2))
    await scene.until_idle(on_document=await_in_vain)
    assert [job.id for job in scene.ran] == [2]
    assert [type(error) for error in scene.errors] == [AttemptFailed]


async def test_an_on_error_that_fails_stops_nothing(scene: Scene) -> None:
    async def fail_again(error: SchedulerError) -> None:
        raise RuntimeError("no")

    await scene.jobs.add(once(1), once(2))
    await scene.until_idle(on_document=fail, on_error=fail_again)
    assert [(await scene.job(number)).attempts for number in (1, 2)] == [1, 1]


# Sleeping


async def test_an_idle_scheduler_asks_once(scene: Scene) -> None:
    await scene.jobs.add(once(1, START + HOUR))

    async def quiet() -> bool:
        return scene.store.calls == {"now": 1, "lock_next": 1, "next_due": 1}

    async with scene.scheduler(workers=10, idle_delay=HOUR) as scheduler:
        await eventually(lambda: scheduler.is_idle)
        await holds(quiet, during=0.2)


async def test_an_idle_scheduler_looks_when_it_is_woken(scene: Scene) -> None:
    async with scene.scheduler(idle_delay=HOUR) as scheduler:
        await eventually(lambda: scheduler.is_idle)
        await scene.jobs.add(once())
        scheduler.wake()
        await eventually(lambda: scene.ran)


async def test_an_idle_scheduler_looks_when_the_next_job_is_due(scene: Scene) -> None:
    await scene.jobs.add(once(1, START + timedelta(milliseconds=30)))
    async with scene.scheduler(idle_delay=HOUR) as scheduler:
        await eventually(lambda: scheduler.is_idle)
        scene.clock.advance(timedelta(milliseconds=30))
        await eventually(lambda: scene.ran)


async def test_an_idle_scheduler_finds_rows_without_wake(scene: Scene) -> None:
    async with scene.scheduler(idle_delay=timedelta(milliseconds=20)) as scheduler:
        await eventually(lambda: scheduler.is_idle)
        await scene.jobs.add(once())
        await eventually(lambda: scene.ran)


async def test_a_settlement_wakes_the_sleeping_worker(scene: Scene) -> None:
    others_wait = asyncio.Event()

    async def fail_late(job: Job) -> Outcome:
        scene.ran.append(job)
        if len(scene.ran) == 1:
            await others_wait.wait()
            return Failed(error=ValueError("again"), after=timedelta(0))
        return Done()

    await scene.jobs.add(once())
    async with scene.scheduler(on_document=fail_late, workers=2, idle_delay=HOUR):
        await eventually(lambda: scene.store.calls["next_due"] >= 1)
        others_wait.set()
        await eventually(lambda: len(scene.ran) == 2)


async def test_workers_wait_for_next_delay_between_batches(scene: Scene) -> None:
    await scene.jobs.add(once(1), once(2))
    async with scene.scheduler(next_delay=HOUR) as scheduler:
        await eventually(lambda: scene.ran and not scheduler.is_processing)
        assert not scheduler.is_idle
    assert len(scene.ran) == 1


# Stopping


async def test_a_stop_lets_a_current_run_finish_and_gives_back_the_rest(scene: Scene) -> None:
    going_on, finish = asyncio.Event(), asyncio.Event()

    async def linger(job: Job) -> None:
        scene.ran.append(job)
        going_on.set()
        await finish.wait()

    await scene.jobs.add(once(1), once(2), once(3))
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(scene.scheduler(on_document=linger, batch=3).run(stop))
        await going_on.wait()
        stop.set()
        await asyncio.sleep(0)
        finish.set()
    assert [job.id for job in scene.ran] == [1]
    assert (await scene.job(1)).due_time is None
    for number in (2, 3):
        row = await scene.job(number)
        assert (row.sleep_until, row.due_time, row.attempts) == (START, START, 0)
    assert scene.errors == []


@pytest.mark.parametrize("handler", ["on_document", "on_batch"])
async def test_runs_that_outlast_the_grace_are_given_back(scene: Scene, handler: str) -> None:
    going_on, cancelled = asyncio.Event(), asyncio.Event()

    async def linger(work: object) -> None:
        going_on.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    await scene.jobs.add(hourly(START - MINUTE))
    scheduler = scene.scheduler(**{handler: linger}, grace=timedelta(milliseconds=10))
    await scheduler.start()
    await going_on.wait()
    await scheduler.stop()
    assert cancelled.is_set()
    row = await scene.job()
    assert (row.sleep_until, row.due_time, row.attempts) == (START - MINUTE, START - MINUTE, 0)
    await scene.until_idle()
    assert [job.attempts for job in scene.ran] == [1]


@pytest.mark.parametrize("caller", ["on_document", "on_idle", "on_error", "on_start", "on_stop"])
async def test_handlers_and_hooks_may_stop_their_scheduler(scene: Scene, caller: str) -> None:
    await scene.jobs.add(once())
    called = 0

    async def stop(*_: object) -> None:
        nonlocal called
        called += 1
        await scheduler.stop()

    settings: dict[str, Any] = {"on_document": fail if caller == "on_error" else scene.do}
    scheduler = scene.scheduler(**(settings | {caller: stop}))
    await scheduler.start()
    if caller == "on_stop":
        await scheduler.stop()
    await eventually(lambda: not scheduler.is_running)
    await scheduler.stop()
    assert called == 1


async def test_concurrent_stops_all_wait_for_the_end(scene: Scene) -> None:
    ended: list[str] = []

    async def end() -> None:
        await asyncio.sleep(0)
        ended.append("on_stop")

    async def stop() -> None:
        await scheduler.stop()
        ended.append("stopped")

    scheduler = scene.scheduler(on_stop=end)
    await scheduler.start()
    async with asyncio.TaskGroup() as group:
        for _ in range(3):
            group.create_task(stop())
    assert ended == ["on_stop", "stopped", "stopped", "stopped"]


async def test_a_stop_during_the_start_ends_it_before_any_run(scene: Scene) -> None:
    await scene.jobs.add(once())
    starting, go_on = asyncio.Event(), asyncio.Event()

    async def begin() -> None:
        starting.set()
        await go_on.wait()

    scheduler = scene.scheduler(on_start=begin)
    async with asyncio.TaskGroup() as group:
        group.create_task(scheduler.start())
        await starting.wait()
        await scheduler.stop()
        go_on.set()
    await eventually(lambda: not scheduler.is_running)
    assert scene.ran == []


@pytest.mark.parametrize("hook", ["on_idle", "on_error"])
async def test_a_hook_that_hangs_does_not_block_a_stop(scene: Scene, hook: str) -> None:
    await scene.jobs.add(once())
    hangs = asyncio.Event()

    async def hang(*_: object) -> None:
        hangs.set()
        await asyncio.Event().wait()

    settings: dict[str, Any] = {"on_document": fail, hook: hang}
    scheduler = scene.scheduler(**settings, grace=timedelta(0))
    await scheduler.start()
    await hangs.wait()
    await scheduler.stop()
    assert not scheduler.is_running


async def test_a_stop_ends_while_the_store_is_unreachable(scene: Scene) -> None:
    scene.store.failing = {"now", "lock_next", "update"}
    async with scene.scheduler():
        await eventually(lambda: scene.errors)


async def test_a_stop_gives_up_writing_to_a_failing_store(scene: Scene) -> None:
    scene.store.failing = {"update"}
    await scene.jobs.add(once())
    async with scene.scheduler(grace=timedelta(milliseconds=10)):
        await eventually(lambda: scene.errors)
    assert (await scene.job()).sleep_until == START + 10 * MINUTE


async def test_a_report_of_a_lost_lock_does_not_block_a_stop(scene: Scene) -> None:
    lost = asyncio.Event()

    async def linger(job: Job) -> None:
        await scene.jobs.edit(1, sleep_until=None)
        await asyncio.Event().wait()

    async def hang(error: SchedulerError) -> None:
        lost.set()
        await asyncio.Event().wait()

    await scene.jobs.add(once())
    settings = {"on_document": linger, "on_error": hang, "lock_duration": timedelta(seconds=0.15)}
    async with scene.scheduler(**settings, grace=timedelta(0)):
        await lost.wait()
