"""Twenty workers and two thousand jobs: while no lock expires, each job is run exactly once."""

import asyncio
from collections import Counter
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any

import pytest

from jobkit.job import Job
from testkit.clocks import START
from testkit.eventually import eventually
from testkit.jobs import Scene

JOBS, WORKERS = 2_000, 20


@pytest.mark.parametrize(("schedulers", "workers"), [(1, WORKERS), (WORKERS, 1)], ids=["together", "apart"])
async def test_each_job_is_run_exactly_once(scene: Scene, schedulers: int, workers: int) -> None:
    ran: Counter[Any] = Counter()
    at_once: list[int] = []
    in_hand = 0

    async def do(job: Job) -> None:
        nonlocal in_hand
        ran[job.id] += 1
        in_hand += 1
        at_once.append(in_hand)
        await asyncio.sleep(0)
        in_hand -= 1

    await scene.jobs.add(*(a_job(number) for number in range(JOBS)))
    async with AsyncExitStack() as running:
        for _ in range(schedulers):
            await running.enter_async_context(scene.scheduler(on_document=do, workers=workers, batch=13))
        await eventually(lambda: ran.total() >= JOBS, within=60)
        await eventually(all_settled(scene), within=60)
    assert set(ran) == set(range(JOBS))
    assert set(ran.values()) == {1}
    assert scene.errors == []
    assert max(at_once) > 1


def a_job(number: int) -> Job:
    due = START - timedelta(seconds=number % 97)
    return Job(id=number, due_time=due, sleep_until=due, auto_remove=number % 2 == 0)


def all_settled(scene: Scene) -> Any:
    async def nothing_to_look_at() -> bool:
        return await scene.jobs.store.next_due() is None

    return nothing_to_look_at
