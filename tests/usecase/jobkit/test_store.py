"""The contract of JobStore, held by both stores."""

import asyncio
from datetime import datetime, timedelta
from typing import Any

import pytest

from civil.cron import Dst
from jobkit.job import Job, JobUpdate, Lock, Misfire
from testkit.clocks import START
from testkit.jobs import Jobs

MINUTE = timedelta(minutes=1)
LOCK_END = START + timedelta(minutes=10)


def a_job(number: int, sleep_until: datetime | None = START, **more: Any) -> Job:
    return Job(id=number, due_time=sleep_until, sleep_until=sleep_until, **more)


def an_update(sleep_until: datetime | None = None, **more: Any) -> JobUpdate:
    plain: dict[str, Any] = {"due_time": sleep_until, "sleep_until": sleep_until, "attempts": 0, "last_error": None}
    return JobUpdate(**(plain | more))


async def stored(jobs: Jobs, number: int) -> Job:
    found = await jobs.read(number)
    assert found is not None
    return found


async def locked(jobs: Jobs, now: datetime = START, limit: int = 10) -> list[Job]:
    return await jobs.store.lock_next(now, now + timedelta(minutes=10), limit)


async def test_jobs_are_locked_by_waiting_time_then_by_id(jobs: Jobs) -> None:
    await jobs.add(a_job(3), a_job(1), a_job(4, START - MINUTE), a_job(2), a_job(5, START - 2 * MINUTE))
    assert [job.id for job in await locked(jobs, limit=2)] == [5, 4]
    assert [job.id for job in await locked(jobs)] == [1, 2, 3]


async def test_no_more_jobs_are_locked_than_the_limit(jobs: Jobs) -> None:
    await jobs.add(*(a_job(number) for number in range(5)))
    assert [job.id for job in await locked(jobs, limit=3)] == [0, 1, 2]
    assert [job.id for job in await locked(jobs, limit=3)] == [3, 4]
    assert await locked(jobs, limit=3) == []


async def test_a_job_that_is_due_now_is_locked_and_later_ones_are_not(jobs: Jobs) -> None:
    await jobs.add(a_job(1), a_job(2, START + datetime.resolution), a_job(3, None))
    assert [job.id for job in await locked(jobs)] == [1]


async def test_a_lock_moves_the_row_and_returns_the_old_sleep_until(jobs: Jobs) -> None:
    await jobs.add(a_job(1, START - MINUTE, fence=7, attempts=2))
    (found,) = await locked(jobs)
    assert (found.sleep_until, found.due_time, found.fence, found.attempts) == (START - MINUTE, START - MINUTE, 8, 3)
    row = await stored(jobs, 1)
    assert (row.sleep_until, row.due_time, row.fence, row.attempts) == (LOCK_END, START - MINUTE, 8, 3)
    assert (found.lock.id, found.lock.fence) == (1, 8)


async def test_a_row_without_a_due_time_is_due_at_sleep_until(jobs: Jobs) -> None:
    await jobs.add(Job(id=1, due_time=None, sleep_until=START - MINUTE))
    (found,) = await locked(jobs)
    assert found.due_time == START - MINUTE
    (again,) = await locked(jobs, LOCK_END)
    assert again.due_time == START - MINUTE


async def test_a_row_is_read_as_it_was_written(jobs: Jobs) -> None:
    laid = Job(
        id=1,
        due_time=START - MINUTE,
        sleep_until=START,
        fence=3,
        attempts=1,
        interval="30 2 * * *",
        time_zone="Europe/Berlin",
        dst=Dst.ONCE,
        repeat_until=START + 1000 * MINUTE,
        misfire=Misfire.FIRE_ALL,
        misfire_after=timedelta(seconds=5),
        pace=timedelta(milliseconds=1500),
        auto_remove=True,
        last_error="ValueError: no",
        data={"group": "a", "nested": {"list": [1, None]}},
    )
    await jobs.add(laid)
    (found,) = await locked(jobs)
    assert (found.fence, found.attempts) == (4, 2)
    for name in ("due_time", "sleep_until", "interval", "time_zone", "dst", "repeat_until", "misfire", "misfire_after"):
        assert getattr(found, name) == getattr(laid, name)
    for name in ("pace", "auto_remove", "last_error", "data"):
        assert getattr(found, name) == getattr(laid, name)


async def test_a_locked_job_cannot_be_locked_until_its_lock_expires(jobs: Jobs) -> None:
    await jobs.add(a_job(1))
    (first,) = await locked(jobs)
    assert await locked(jobs, LOCK_END - datetime.resolution) == []
    (second,) = await locked(jobs, LOCK_END)
    assert (second.fence, second.attempts, second.due_time) == (first.fence + 1, 2, START)


async def test_an_update_writes_everything_and_ends_the_lock(jobs: Jobs) -> None:
    await jobs.add(a_job(1, last_error="before", attempts=4))
    (job,) = await locked(jobs)
    update = an_update(START + MINUTE, attempts=1, last_error="now")
    assert await jobs.store.update([(job.lock, update)]) == {job.lock}
    row = await stored(jobs, 1)
    assert (row.sleep_until, row.due_time) == (START + MINUTE, START + MINUTE)
    assert (row.attempts, row.last_error) == (1, "now")
    assert await jobs.store.update([(job.lock, an_update())]) == frozenset()
    assert await jobs.store.extend([job.lock], LOCK_END) == frozenset()
    assert await jobs.store.remove([job.lock]) == frozenset()
    assert await jobs.read(1) == row


async def test_only_jobs_whose_locks_hold_are_written(jobs: Jobs) -> None:
    await jobs.add(*(a_job(number) for number in (1, 2, 3)))
    one, two, three = await locked(jobs)
    await jobs.edit(2, sleep_until=None)
    edited = await jobs.read(2)
    changes = [(job.lock, an_update(START + MINUTE)) for job in (one, two, three)]
    assert await jobs.store.update(changes) == {one.lock, three.lock}
    assert await jobs.read(2) == edited
    assert [(await stored(jobs, number)).sleep_until for number in (1, 3)] == [START + MINUTE] * 2


async def test_a_worker_that_was_overtaken_can_change_nothing(jobs: Jobs) -> None:
    await jobs.add(a_job(1))
    (late,) = await locked(jobs)
    (owner,) = await locked(jobs, LOCK_END)
    row = await stored(jobs, 1)
    assert await jobs.store.update([(late.lock, an_update())]) == frozenset()
    assert await jobs.store.extend([late.lock], LOCK_END + 100 * MINUTE) == frozenset()
    assert await jobs.store.remove([late.lock]) == frozenset()
    assert await jobs.read(1) == row
    assert await jobs.store.remove([owner.lock]) == {owner.lock}
    assert await jobs.read(1) is None


async def test_an_expired_lock_holds_until_another_worker_locks_the_job(jobs: Jobs) -> None:
    await jobs.add(a_job(1))
    (job,) = await locked(jobs)
    assert await jobs.store.update([(job.lock, an_update())]) == {job.lock}


async def test_an_extended_lock_expires_later(jobs: Jobs) -> None:
    await jobs.add(a_job(1))
    (job,) = await locked(jobs)
    assert await jobs.store.extend([job.lock], LOCK_END + MINUTE) == {job.lock}
    assert await locked(jobs, LOCK_END) == []
    assert [again.id for again in await locked(jobs, LOCK_END + MINUTE)] == [1]


@pytest.mark.parametrize("call", ["update", "remove", "extend"])
async def test_a_deleted_row_holds_no_lock(jobs: Jobs, call: str) -> None:
    gone = Lock(99, 1)
    calls = {
        "update": lambda: jobs.store.update([(gone, an_update())]),
        "remove": lambda: jobs.store.remove([gone]),
        "extend": lambda: jobs.store.extend([gone], LOCK_END),
    }
    assert await calls[call]() == frozenset()


async def test_an_empty_batch_changes_nothing(jobs: Jobs) -> None:
    assert await jobs.store.update([]) == await jobs.store.remove([]) == await jobs.store.extend([], LOCK_END) == set()


async def test_next_due_counts_locked_rows(jobs: Jobs) -> None:
    assert await jobs.store.next_due() is None
    await jobs.add(a_job(1, START + 20 * MINUTE), a_job(2), a_job(3, None))
    assert await jobs.store.next_due() == START
    await locked(jobs)
    assert await jobs.store.next_due() == LOCK_END
    await jobs.edit(2, sleep_until=None)
    assert await jobs.store.next_due() == START + 20 * MINUTE


async def test_rows_that_fail_the_condition_are_ignored(jobs: Jobs) -> None:
    store = jobs.store_of("a")
    await jobs.add(a_job(1, START - MINUTE, data={"group": "b"}), a_job(2, data={"group": "a"}), a_job(3))
    assert await store.next_due() == START
    assert [job.id for job in await store.lock_next(START, LOCK_END, 10)] == [2]
    assert await store.next_due() == LOCK_END
    assert (await stored(jobs, 1)).sleep_until == START - MINUTE


async def test_the_store_has_its_own_clock(jobs: Jobs) -> None:
    assert await jobs.store.now() == START
    jobs.clock.advance(MINUTE)
    assert await jobs.store.now() == START + MINUTE


async def test_concurrent_calls_lock_different_jobs(jobs: Jobs) -> None:
    await jobs.add(*(a_job(number) for number in range(200)))
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(locked(jobs, limit=15)) for _ in range(20)]
    found = [job.id for task in tasks for job in task.result()]
    assert len(found) == len(set(found))
    rest = {job.id for job in await locked(jobs, limit=200)}
    assert rest.isdisjoint(found)
    assert rest.union(found) == set(range(200))
