"""Jobs that a worker has locked together are settled in groups, or given back if they wait too long; on both stores."""

import asyncio
from datetime import timedelta

from jobkit.job import Job
from testkit.clocks import START
from testkit.eventually import eventually
from testkit.jobs import Scene, once

SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
BRIEF = timedelta(milliseconds=30)


async def test_jobs_of_a_batch_are_settled_together(scene: Scene) -> None:
    await scene.jobs.add(*(once(number, auto_remove=number % 2 == 0) for number in range(100)))
    await scene.until_idle(batch=100)
    assert len(scene.ran) == 100
    assert (scene.store.calls["update"], scene.store.calls["remove"]) == (1, 1)


async def test_finished_jobs_are_settled_during_the_next_run(scene: Scene) -> None:
    finish = asyncio.Event()

    async def do(job: Job) -> None:
        scene.ran.append(job)
        if job.id == 3:
            await finish.wait()

    await scene.jobs.add(*(once(number) for number in (1, 2, 3)))

    async def two_are_finished() -> bool:
        return [(await scene.job(number)).due_time for number in (1, 2)] == [None, None]

    async with scene.scheduler(on_document=do, batch=3) as scheduler:
        await eventually(two_are_finished)
        assert scheduler.is_processing
        assert (await scene.job(3)).due_time == START
        finish.set()
        await eventually(lambda: scheduler.is_idle)
    assert scene.store.calls["update"] == 2


async def test_jobs_not_begun_are_given_back_for_other_workers(scene: Scene) -> None:
    finish = asyncio.Event()

    async def hang(job: Job) -> None:
        if job.id != 1:
            scene.ran.append(job)
            return
        await finish.wait()

    await scene.jobs.add(*(once(number) for number in range(1, 21)))
    async with scene.scheduler(on_document=hang, batch=20, batch_time=BRIEF):
        await eventually(lambda: scene.store.calls["update"])
        assert scene.ran == []
        async with scene.scheduler(batch=20, idle_delay=BRIEF):
            await eventually(lambda: len(scene.ran) == 19)
        finish.set()
    assert {job.attempts for job in scene.ran} == {1}
    assert scene.errors == []


async def test_jobs_not_begun_are_given_back_while_a_result_waits_to_be_written(scene: Scene) -> None:
    write, finish = asyncio.Event(), asyncio.Event()

    async def linger(job: Job) -> None:
        scene.store.gates["update"] = write
        if job.id == 2:
            await eventually(lambda: scene.store.calls["update"])
            del scene.store.gates["update"]
            await finish.wait()

    async def is_given_back() -> bool:
        return (await scene.job(3)).sleep_until == START

    await scene.jobs.add(once(1), once(2), once(3))
    async with scene.scheduler(on_document=linger, batch=3, batch_time=timedelta(milliseconds=100)):
        try:
            await eventually(lambda: scene.store.calls["update"])
            await eventually(is_given_back)
            assert (await scene.job(1)).due_time == START
        finally:
            write.set()
            finish.set()


async def test_a_worker_locks_fewer_jobs_while_they_are_slow(scene: Scene) -> None:
    async def linger(job: Job) -> None:
        scene.ran.append(job)
        # Longer than batch_time.
        calls = scene.store.calls["update"]
        if len(scene.ran) == 1:
            await eventually(lambda: scene.store.calls["update"] > calls)

    await scene.jobs.add(*(once(number) for number in range(1, 9)))
    await scene.until_idle(on_document=linger, batch=8, batch_time=BRIEF)
    assert scene.store.limits[:2] == [8, 1]
    assert len(scene.ran) == 8


async def test_two_schedulers_share_a_batch_of_slow_jobs(scene: Scene) -> None:
    ran: dict[str, list[object]] = {"a": [], "b": []}
    both = asyncio.Event()

    def slow(name: str) -> object:
        async def do(job: Job) -> None:
            ran[name].append(job.id)
            if ran["a"] and ran["b"]:
                both.set()
            # Each job lasts until the other scheduler has work, too.
            await both.wait()

        return do

    await scene.jobs.add(*(once(number) for number in range(10)))
    settings = {"batch": 10, "batch_time": BRIEF, "idle_delay": BRIEF}
    async with (
        scene.scheduler(on_document=slow("a"), **settings) as first,
        scene.scheduler(on_document=slow("b"), **settings) as second,
    ):
        await eventually(lambda: len(ran["a"]) + len(ran["b"]) == 10)
        await eventually(lambda: first.is_idle and second.is_idle)
    assert sorted(map(str, ran["a"] + ran["b"])) == [str(number) for number in range(10)]
    assert scene.errors == []


async def test_a_stop_gives_back_jobs_not_begun_during_a_run(scene: Scene) -> None:
    going_on, finish = asyncio.Event(), asyncio.Event()

    async def linger(job: Job) -> None:
        going_on.set()
        await finish.wait()

    await scene.jobs.add(once(1), once(2))
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(scene.scheduler(on_document=linger, batch=2, batch_time=HOUR).run(stop))
        await going_on.wait()
        stop.set()

        async def is_given_back() -> bool:
            return (await scene.job(2)).sleep_until == START

        await eventually(is_given_back)
        finish.set()
