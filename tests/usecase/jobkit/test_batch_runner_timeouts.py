"""Runs that time out, and runs that ignore their cancellation, on both stores."""

import asyncio
import contextlib
from collections.abc import Sequence
from datetime import timedelta

import pytest

from jobkit.errors import AttemptFailed, JobFailed, LockLost, RunLost, RunTimedOut, TooManyLostRuns
from jobkit.job import Done, Job, Outcome
from jobkit.retry import RetryPolicy
from testkit.clocks import START
from testkit.eventually import eventually
from testkit.jobs import Scene, hourly, once

SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
BRIEF = timedelta(milliseconds=30)


async def hang(work: object) -> None:
    await asyncio.Event().wait()


class Stubborn:
    """A handler that ignores its cancellation until it is released."""

    def __init__(self) -> None:
        self.release = asyncio.Event()
        self.ran: list[Job] = []

    async def __call__(self, job: Job) -> None:
        self.ran.append(job)
        while not self.release.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await self.release.wait()


async def test_a_hung_run_is_reported_cancelled_and_retried(scene: Scene) -> None:
    await scene.jobs.add(once())
    await scene.until_idle(on_document=hang, run_timeout=BRIEF)
    row = await scene.job()
    assert (row.due_time, row.sleep_until, row.attempts) == (START, START + 5 * SECOND, 1)
    assert str(row.last_error).startswith("RunTimedOut: job 1: ")
    timed_out, failed = scene.errors
    assert isinstance(timed_out, RunTimedOut)
    assert isinstance(failed, AttemptFailed)
    assert isinstance(failed.error, RunTimedOut)
    scene.clock.advance(5 * SECOND)
    await scene.until_idle()
    assert [job.attempts for job in scene.ran] == [2]


async def test_a_hung_run_is_cancelled_while_a_result_is_written(scene: Scene) -> None:
    write = scene.store.gates["update"] = asyncio.Event()

    async def do(job: Job) -> None:
        scene.ran.append(job)
        if job.id == 2:
            await hang(job)

    await scene.jobs.add(once(1), once(2), once(3))
    async with scene.scheduler(on_document=do, batch=3, run_timeout=timedelta(milliseconds=100)) as scheduler:
        try:
            await eventually(lambda: scene.store.calls["update"])
            await eventually(lambda: any(isinstance(error, RunTimedOut) for error in scene.errors))
            assert [job.id for job in scene.ran] == [1, 2]
        finally:
            write.set()
        await eventually(lambda: scheduler.is_idle)
    assert [((await scene.job(number)).due_time, (await scene.job(number)).attempts) for number in (1, 2, 3)] == [
        (None, 0),
        (START, 1),
        (None, 0),
    ]
    assert [type(error) for error in scene.errors] == [RunTimedOut, AttemptFailed]


async def test_the_last_attempt_of_a_hung_run_ends_the_job(scene: Scene) -> None:
    await scene.jobs.add(once())
    await scene.until_idle(on_document=hang, run_timeout=BRIEF, retry=RetryPolicy(max_attempts=1))
    assert (await scene.job()).sleep_until is None
    assert [type(error) for error in scene.errors] == [RunTimedOut, JobFailed]


async def test_every_job_of_a_hung_batch_has_timed_out(scene: Scene) -> None:
    await scene.jobs.add(once(1), once(2))
    await scene.until_idle(on_batch=hang, batch=5, run_timeout=BRIEF)
    assert [(await scene.job(number)).sleep_until for number in (1, 2)] == [START + 5 * SECOND] * 2
    assert sorted(type(error).__name__ for error in scene.errors) == ["AttemptFailed"] * 2 + ["RunTimedOut"] * 2


async def test_an_error_instead_of_a_cancellation_is_a_timeout(scene: Scene) -> None:
    async def complain(job: Job) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise RuntimeError("interrupted") from None

    await scene.jobs.add(once())
    await scene.until_idle(on_document=complain, run_timeout=BRIEF)
    assert str((await scene.job()).last_error).startswith("RunTimedOut")


async def test_a_cancelled_run_that_succeeds_counts(scene: Scene) -> None:
    async def finish_all_the_same(job: Job) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()

    await scene.jobs.add(once())
    await scene.until_idle(on_document=finish_all_the_same, run_timeout=BRIEF)
    row = await scene.job()
    assert (row.due_time, row.last_error) == (None, None)
    assert [type(error) for error in scene.errors] == [RunTimedOut]


async def test_a_lost_run_keeps_neither_its_worker_nor_its_lock(scene: Scene) -> None:
    stubborn = Stubborn()

    async def do(job: Job) -> None:
        await (stubborn(job) if job.id == 1 else scene.do(job))

    await scene.jobs.add(once(1), once(2, START + MINUTE))
    async with scene.scheduler(on_document=do, run_timeout=BRIEF, cancel_grace=BRIEF) as scheduler:
        await eventually(lambda: any(isinstance(error, AttemptFailed) for error in scene.errors))
        await eventually(lambda: scheduler.is_idle)
        # It may still be going on, so nobody runs it again before its lock expires.
        row = await scene.job(1)
        assert (row.due_time, row.sleep_until, row.attempts) == (START, START + 10 * MINUTE, 1)
        assert str(row.last_error).startswith("RunTimedOut")
        scene.clock.advance(MINUTE)
        scheduler.wake()
        await eventually(lambda: scene.ran)
        stubborn.release.set()
        await eventually(lambda: scheduler.is_idle)
    assert [type(error) for error in scene.errors] == [RunTimedOut, RunLost, AttemptFailed]
    assert (await scene.job(1)).fence == row.fence


async def test_a_lost_run_can_write_nothing_when_it_ends(scene: Scene) -> None:
    stubborn = Stubborn()
    await scene.jobs.add(hourly())
    async with scene.scheduler(on_document=stubborn, run_timeout=BRIEF, cancel_grace=BRIEF) as scheduler:
        await eventually(lambda: any(isinstance(error, AttemptFailed) for error in scene.errors))
        (job,) = stubborn.ran
        assert await scene.store.extend([job.lock], START + HOUR) == frozenset()
        stubborn.release.set()
        await eventually(lambda: scheduler.is_idle)
    assert (await scene.job()).due_time == START


async def test_a_run_that_ignores_the_loss_of_its_lock_keeps_no_worker(scene: Scene) -> None:
    stubborn = Stubborn()

    async def do(job: Job) -> None:
        if job.id == 2:
            scene.ran.append(job)
            return
        await scene.jobs.edit(1, sleep_until=None)
        await stubborn(job)

    await scene.jobs.add(once(1), once(2))
    brief = timedelta(seconds=0.15)
    async with scene.scheduler(on_document=do, lock_duration=brief, cancel_grace=BRIEF):
        await eventually(lambda: scene.ran)
        stubborn.release.set()
    assert [type(error) for error in scene.errors] == [LockLost, RunLost]


async def test_a_stop_does_not_wait_for_a_lost_run(scene: Scene) -> None:
    stubborn = Stubborn()
    await scene.jobs.add(once())
    scheduler = scene.scheduler(on_document=stubborn, grace=timedelta(0), cancel_grace=BRIEF)
    await scheduler.start()
    await eventually(lambda: stubborn.ran)
    await scheduler.stop()
    assert not scheduler.is_running
    # Its lock expires, like that of a dead worker.
    assert (await scene.job()).sleep_until == START + 10 * MINUTE
    assert [type(error) for error in scene.errors] == [RunLost]
    stubborn.release.set()


async def test_the_number_of_lost_runs_is_bounded(scene: Scene) -> None:
    stubborn = Stubborn()
    await scene.jobs.add(*(once(number) for number in range(30)))
    settings = {"run_timeout": timedelta(0, 0, 1), "cancel_grace": timedelta(0), "workers": 4}
    async with scene.scheduler(on_document=stubborn, **settings):
        await eventually(lambda: any(isinstance(error, TooManyLostRuns) for error in scene.errors))
        assert len(stubborn.ran) <= 16 + 4
        stubborn.release.set()
        await eventually(lambda: len(stubborn.ran) == 30, within=20)


@pytest.mark.parametrize("hook", ["on_idle", "on_error"])
async def test_a_hook_that_hangs_is_cancelled_like_a_run(scene: Scene, hook: str) -> None:
    calls: list[object] = []

    async def hang_once(*_: object) -> None:
        calls.append(hook)
        if len(calls) == 1:
            await asyncio.Event().wait()

    async def do(job: Job) -> None:
        scene.ran.append(job)
        if job.id == 1:
            raise RuntimeError("no")

    await scene.jobs.add(once(1), once(2, START + MINUTE))
    settings: dict[str, object] = {"on_document": do, "run_timeout": BRIEF, hook: hang_once}
    async with scene.scheduler(**settings) as scheduler:
        await eventually(lambda: calls and scheduler.is_idle)
        scene.clock.advance(MINUTE)
        scheduler.wake()
        await eventually(lambda: [job.id for job in scene.ran if job.id == 2])


async def test_a_run_without_a_limit_is_not_timed_out(scene: Scene) -> None:
    finish = asyncio.Event()

    async def linger(jobs: Sequence[Job]) -> Sequence[Outcome]:
        await finish.wait()
        return [Done() for _ in jobs]

    await scene.jobs.add(once())
    async with scene.scheduler(on_batch=linger, run_timeout=None) as scheduler:
        await eventually(lambda: scheduler.is_processing)
        finish.set()
        await eventually(lambda: scheduler.is_idle)
    assert scene.errors == []


async def test_a_handler_that_cancels_itself_has_failed(scene: Scene) -> None:
    async def give_up(job: Job) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)

    await scene.jobs.add(once())
    await scene.until_idle(on_document=give_up)
    assert [type(error) for error in scene.errors] == [AttemptFailed]


@pytest.mark.parametrize("form", ["run", "stop", "async with"])
async def test_a_cancelled_scheduler_gives_locks_back_without_a_grace(scene: Scene, form: str) -> None:
    going_on = asyncio.Event()

    async def linger(job: Job) -> None:
        going_on.set()
        await asyncio.Event().wait()

    async def work() -> None:
        scheduler = scene.scheduler(on_document=linger, batch=3, grace=HOUR)
        if form == "run":
            await scheduler.run(asyncio.Event())
        elif form == "stop":
            await scheduler.start()
            await going_on.wait()
            await scheduler.stop()
        else:
            async with scheduler:
                await asyncio.Event().wait()

    await scene.jobs.add(once(1), once(2))
    async with asyncio.TaskGroup() as group:
        task = group.create_task(work())
        await going_on.wait()
        await asyncio.sleep(0)
        task.cancel()
    for number in (1, 2):
        row = await scene.job(number)
        assert (row.sleep_until, row.due_time, row.attempts) == (START, START, 0)
    assert scene.errors == []
