"""Handlers that are plain functions run in threads; those that block the event loop are reported; on both stores."""

import asyncio
import threading
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest

from jobkit.errors import AttemptFailed, LoopBlocked, RunLost, RunTimedOut
from jobkit.job import Done, Failed, Job, Outcome
from testkit.clocks import START
from testkit.eventually import eventually
from testkit.jobs import Scene, once

SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
BRIEF = timedelta(milliseconds=30)


async def test_a_plain_function_runs_in_a_thread_and_keeps_its_lock(scene: Scene) -> None:
    release = threading.Event()
    threads: list[str] = []

    def do(job: Job) -> None:
        threads.append(threading.current_thread().name)
        assert release.wait(30)

    await scene.jobs.add(once())
    brief = timedelta(seconds=0.15)
    async with scene.scheduler(on_document=do, lock_duration=brief, name="mails") as scheduler:
        await eventually(lambda: scene.store.calls["extend"] >= 2)
        release.set()
        await eventually(lambda: scheduler.is_idle)
    assert threads == ["mails"]
    assert scene.errors == []
    assert (await scene.job()).due_time is None


async def test_a_worker_uses_one_thread(scene: Scene) -> None:
    threads: set[int] = set()

    def do(job: Job) -> None:
        threads.add(threading.get_ident())

    await scene.jobs.add(*(once(number) for number in range(20)))
    await scene.until_idle(on_document=do, batch=7)
    assert len(threads) == 1


async def test_workers_run_plain_functions_concurrently(scene: Scene) -> None:
    together = threading.Barrier(3)

    def do(job: Job) -> None:
        together.wait(30)

    await scene.jobs.add(once(1), once(2), once(3))
    await scene.until_idle(on_document=do, workers=3)
    assert scene.errors == []


async def test_errors_and_outcomes_of_plain_functions_count(scene: Scene) -> None:
    def do(jobs: Sequence[Job]) -> Sequence[Outcome]:
        return [Failed(error=ValueError("odd")) if job.id == 1 else Done() for job in jobs]

    def fail(job: Job) -> None:
        raise StopIteration

    await scene.jobs.add(once(1), once(2), once(3, START + MINUTE))
    await scene.until_idle(on_batch=do, batch=5)
    assert (await scene.job(1)).last_error == "ValueError: odd"
    assert (await scene.job(2)).due_time is None
    scene.clock.advance(MINUTE)
    await scene.until_idle(on_document=fail, batch=5)
    assert [type(error) for error in scene.errors] == [AttemptFailed] * 3


async def test_a_thread_that_hangs_is_reported_and_abandoned(scene: Scene) -> None:
    release = threading.Event()

    def do(job: Job) -> None:
        if job.id == 1:
            assert release.wait(30)
        else:
            scene.ran.append(job)

    await scene.jobs.add(once(1), once(2))
    async with scene.scheduler(on_document=do, run_timeout=BRIEF, cancel_grace=BRIEF) as scheduler:
        await eventually(lambda: scene.ran and scheduler.is_idle)
    assert [type(error) for error in scene.errors] == [RunTimedOut, RunLost, AttemptFailed]
    assert (await scene.job(1)).sleep_until == START + 10 * MINUTE
    release.set()


async def test_a_slow_thread_that_ends_within_the_grace_has_succeeded(scene: Scene) -> None:
    release = threading.Event()

    def do(job: Job) -> None:
        assert release.wait(30)

    await scene.jobs.add(once())
    async with scene.scheduler(on_document=do, run_timeout=BRIEF, cancel_grace=timedelta(seconds=60)) as scheduler:
        await eventually(lambda: scene.errors)
        release.set()
        await eventually(lambda: scheduler.is_idle)
    assert [type(error) for error in scene.errors] == [RunTimedOut]
    assert (await scene.job()).due_time is None


async def test_a_plain_function_sees_the_context_of_its_scheduler(scene: Scene) -> None:
    tenant: ContextVar[str] = ContextVar("tenant", default="")
    seen: list[str] = []

    def do(job: Job) -> None:
        seen.append(tenant.get())

    await scene.jobs.add(once())
    tenant.set("acme")
    await scene.until_idle(on_document=do)
    assert seen == ["acme"]


class Callable:
    def __init__(self, scene: Scene) -> None:
        self._scene = scene

    async def __call__(self, job: Job) -> None:
        await self._scene.do(job)

    async def method(self, scene: Scene, job: Job) -> None:
        await scene.do(job)


@pytest.mark.parametrize("kind", ["function", "object", "partial", "lambda"])
async def test_a_handler_that_returns_a_coroutine_runs_on_the_loop(scene: Scene, kind: str) -> None:
    handlers = {
        "function": scene.do,
        "object": Callable(scene),
        "partial": partial(Callable(scene).method, scene),
        "lambda": lambda job: scene.do(replace(job)),
    }
    await scene.jobs.add(once())
    await scene.until_idle(on_document=handlers[kind])
    assert len(scene.ran) == 1
    assert scene.errors == []


async def test_a_blocked_event_loop_is_reported(scene: Scene) -> None:
    loop = asyncio.get_running_loop()

    async def block(job: Job) -> None:
        until = loop.time() + 0.3
        while loop.time() < until:
            pass

    await scene.jobs.add(once())
    settings = {"lock_duration": timedelta(seconds=0.1), "monotonic": loop.time}
    async with scene.scheduler(on_document=block, **settings):
        await eventually(lambda: any(isinstance(error, LoopBlocked) for error in scene.errors))
