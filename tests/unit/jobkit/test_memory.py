"""The limits of the memory store."""

from dataclasses import replace
from datetime import timedelta

import pytest

from jobkit.job import Job, JobUpdate
from jobkit.stores.memory import MemoryStore, StoreFull
from testkit.clocks import START


def a_job(number: int) -> Job:
    return Job(id=number, due_time=START, sleep_until=START)


def test_a_full_store_refuses_jobs() -> None:
    store = MemoryStore(capacity=1)
    store.add(a_job(1))
    with pytest.raises(StoreFull):
        store.add(a_job(2))
    with pytest.raises(ValueError, match="there is a job 1 already"):
        store.add(a_job(1))
    store.delete(1)
    store.delete(1)
    store.add(a_job(2))
    assert len(store) == 1


async def test_a_job_that_is_locked_many_times_takes_no_more_memory() -> None:
    store = MemoryStore()
    store.add(a_job(1))
    for _ in range(1_000):
        (job,) = await store.lock_next(START, START + timedelta(minutes=1), 1)
        update = JobUpdate(due_time=START, sleep_until=START, attempts=0, last_error=None)
        assert await store.update([(job.lock, update)]) == {job.lock}
    assert len(store._waiting) <= 2 * len(store) + 64


async def test_an_edit_past_the_scheduler_increases_the_fence() -> None:
    store = MemoryStore()
    with pytest.raises(KeyError):
        store.edit(1, sleep_until=None)
    store.add(a_job(1))
    assert store.edit(1, sleep_until=None) == replace(a_job(1), sleep_until=None, fence=1)
    assert await store.next_due() is None


@pytest.mark.parametrize("part", ["due_time", "sleep_until", "repeat_until"])
async def test_a_naive_time_is_refused(part: str) -> None:
    store = MemoryStore(now=lambda: START)
    store.add(a_job(1))
    naive = {part: START.replace(tzinfo=None)}
    with pytest.raises(ValueError, match=part):
        store.add(replace(a_job(2), **naive))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=part):
        store.edit(1, **naive)
    assert await store.lock_next(START, START + timedelta(minutes=1), 9) == [replace(a_job(1), fence=1, attempts=1)]


async def test_a_condition_that_raises_loses_no_job() -> None:
    meant: dict[int, bool] = {1: True, 3: True}
    store = MemoryStore(condition=lambda job: meant[job.data["number"]])
    for number in (1, 2, 3):
        store.add(replace(a_job(number), data={"number": number}))
    with pytest.raises(KeyError):
        await store.lock_next(START, START + timedelta(minutes=1), 3)
    meant[2] = True
    assert [job.id for job in await store.lock_next(START, START + timedelta(minutes=1), 3)] == [1, 2, 3]


async def test_the_system_clock_is_the_default() -> None:
    store = MemoryStore()
    assert await store.now() <= await store.now()
