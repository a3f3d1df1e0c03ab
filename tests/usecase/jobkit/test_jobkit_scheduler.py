"""What a scheduler does with jobs, on both stores."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from jobkit.config import Config
from jobkit.errors import (
    AttemptFailed,
    HookFailed,
    InvalidJob,
    JobFailed,
    LateWrite,
    LockLost,
    OccurrenceSkipped,
    SchedulerError,
    StoreFailed,
    WorkerLost,
)
from jobkit.job import Done, Failed, Job, Misfire, Outcome
from jobkit.next_run import occurrence_key
from jobkit.retry import RetryPolicy
from jobkit.scheduler import Scheduler
from jobkit.stores.memory import MemoryStore
from testkit.clocks import START
from testkit.eventually import eventually, holds
from testkit.jobs import Scene

SECOND, MINUTE, HOUR, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


def once(number: int = 1, due: datetime = START, *, auto_remove: bool = False, misfire: str = Misfire.FIRE_ONCE) -> Job:
    return Job(id=number, due_time=due, sleep_until=due, auto_remove=auto_remove, misfire=misfire)


def hourly(
    due: datetime = START,
    *,
    misfire: str = Misfire.FIRE_ONCE,
    repeat_until: datetime | None = None,
    auto_remove: bool = False,
) -> Job:
    return Job(
        id=1,
        due_time=due,
        sleep_until=due,
        interval="0 * * * *",
        misfire=misfire,
        repeat_until=repeat_until,
        auto_remove=auto_remove,
    )


async def fail(job: Job) -> None:
    raise RuntimeError("no")


# Kinds of jobs


async def test_a_one_time_job_runs_once_and_is_kept_as_finished(scene: Scene) -> None:
    await scene.jobs.add(once())
    await scene.until_idle()
    await scene.until_idle()
    assert [job.id for job in scene.ran] == [1]
    row = await scene.job()
    assert (row.due_time, row.sleep_until, row.attempts, row.last_error) == (None, None, 0, None)
    assert scene.told == []


async def test_a_deferred_job_waits_for_its_time(scene: Scene) -> None:
    await scene.jobs.add(once(1, START + MINUTE))
    await scene.until_idle()
    assert scene.ran == []
    scene.clock.advance(MINUTE)
    await scene.until_idle()
    assert [job.due_time for job in scene.ran] == [START + MINUTE]


async def test_a_recurring_job_goes_on_with_its_next_occurrence(scene: Scene) -> None:
    await scene.jobs.add(hourly())
    for _ in range(3):
        await scene.until_idle()
        scene.clock.advance(HOUR)
    assert [job.due_time for job in scene.ran] == [START, START + HOUR, START + 2 * HOUR]
    row = await scene.job()
    assert row.due_time == row.sleep_until == START + 3 * HOUR


async def test_a_job_that_removes_itself_is_gone_after_its_last_run(scene: Scene) -> None:
    await scene.jobs.add(once(auto_remove=True))
    await scene.until_idle()
    assert await scene.jobs.read(1) is None


async def test_a_recurring_job_that_removes_itself_stays_until_it_does_not_repeat(scene: Scene) -> None:
    await scene.jobs.add(hourly(repeat_until=START + HOUR, auto_remove=True))
    await scene.until_idle()
    assert (await scene.job()).sleep_until == START + HOUR
    scene.clock.advance(HOUR)
    await scene.until_idle()
    assert await scene.jobs.read(1) is None
    assert len(scene.ran) == 2


async def test_nothing_repeats_after_repeat_until(scene: Scene) -> None:
    await scene.jobs.add(hourly(repeat_until=START + HOUR - SECOND))
    await scene.until_idle()
    row = await scene.job()
    assert (row.due_time, row.sleep_until) == (None, None)


async def test_an_occurrence_after_repeat_until_is_not_run(scene: Scene) -> None:
    await scene.jobs.add(hourly(repeat_until=START - SECOND))
    await scene.until_idle()
    assert scene.ran == []
    assert (await scene.job()).due_time is None


async def test_an_occurrence_before_repeat_until_runs_also_when_it_is_late(scene: Scene) -> None:
    await scene.jobs.add(hourly(START - DAY, repeat_until=START - DAY))
    await scene.until_idle()
    assert [job.due_time for job in scene.ran] == [START - DAY]
    assert (await scene.job()).due_time is None


async def test_both_passes_of_an_overlap_run_under_keys_of_their_own(scene: Scene) -> None:
    first = datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    scene.clock.jump(first)
    job = Job(id=1, due_time=first, sleep_until=first, interval="30 2 * * *", time_zone="Europe/Berlin")
    await scene.jobs.add(job)
    await scene.until_idle()
    scene.clock.advance(HOUR)
    await scene.until_idle()
    assert [occurrence_key(job) for job in scene.ran] == ["2026-10-25T02:30", "2026-10-25T02:30/2"]
    assert (await scene.job()).due_time == datetime(2026, 10, 26, 1, 30, tzinfo=UTC)


# Misfires


async def test_what_was_missed_fires_once_and_then_comes_the_future(scene: Scene) -> None:
    await scene.jobs.add(hourly(START - 5 * DAY))
    await scene.until_idle()
    assert [job.due_time for job in scene.ran] == [START - 5 * DAY]
    assert (await scene.job()).due_time == START + HOUR


async def test_what_becomes_due_during_a_run_is_not_covered_by_it(scene: Scene) -> None:
    async def linger(job: Job) -> None:
        scene.ran.append(job)
        if len(scene.ran) == 1:
            scene.clock.advance(90 * MINUTE)

    await scene.jobs.add(hourly())
    await scene.until_idle(on_document=linger)
    assert [job.due_time for job in scene.ran] == [START, START + HOUR]
    assert (await scene.job()).due_time == START + 2 * HOUR


async def test_what_is_too_late_is_skipped_and_said(scene: Scene) -> None:
    await scene.jobs.add(hourly(START - HOUR - MINUTE, misfire=Misfire.SKIP))
    await scene.until_idle(misfire_after=MINUTE - SECOND)
    # The occurrence of START itself is just due, so it runs.
    assert [job.due_time for job in scene.ran] == [START]
    assert [type(error) for error in scene.told] == [OccurrenceSkipped]


async def test_what_is_late_but_not_too_late_is_not_skipped(scene: Scene) -> None:
    await scene.jobs.add(hourly(START - MINUTE, misfire=Misfire.SKIP))
    await scene.until_idle(misfire_after=MINUTE)
    # And so does the next one, which is due now.
    assert [job.due_time for job in scene.ran] == [START - MINUTE, START]
    assert scene.told == []


@pytest.mark.parametrize("auto_remove", [False, True])
async def test_a_one_time_job_that_is_too_late_ends_without_a_run_and_says_why(scene: Scene, auto_remove: bool) -> None:
    await scene.jobs.add(once(1, START - HOUR, misfire=Misfire.SKIP, auto_remove=auto_remove))
    await scene.until_idle()
    assert scene.ran == []
    row = await scene.job()
    assert (row.due_time, row.sleep_until) == (None, None)
    assert "1:00:00 late" in str(row.last_error)
    assert [type(error) for error in scene.told] == [OccurrenceSkipped]


@pytest.mark.parametrize("misfire", Misfire)
async def test_delays_have_no_bound(scene: Scene, misfire: Misfire) -> None:
    await scene.jobs.add(hourly(START - HOUR, misfire=misfire))
    endless = dict.fromkeys(("idle_delay", "reprocess_delay", "misfire_after", "pace", "grace"), timedelta.max)
    await scene.until_idle(**endless)
    assert [job.due_time for job in scene.ran] == [START - HOUR]
    assert scene.told == []


async def test_a_second_attempt_is_never_too_late(scene: Scene) -> None:
    await scene.jobs.add(once(misfire=Misfire.SKIP))
    await scene.until_idle(on_document=fail)
    scene.clock.advance(HOUR)
    await scene.until_idle()
    assert [job.attempts for job in scene.ran] == [2]


async def test_every_missed_occurrence_fires_in_order_and_at_a_pace(scene: Scene) -> None:
    await scene.jobs.add(hourly(START - 2 * HOUR, misfire=Misfire.FIRE_ALL))
    pauses = []
    for _ in range(3):
        await scene.until_idle(pace=10 * SECOND)
        pauses.append((await scene.job()).sleep_until)
        scene.clock.advance(10 * SECOND)
    assert [job.due_time for job in scene.ran] == [START - 2 * HOUR, START - HOUR, START]
    assert pauses == [START + 10 * SECOND, START + 20 * SECOND, START + HOUR]


async def test_a_jobs_own_pace_comes_first(scene: Scene) -> None:
    job = Job(
        id=1,
        due_time=START - HOUR,
        sleep_until=START - HOUR,
        interval="@hourly",
        misfire=Misfire.FIRE_ALL,
        pace=3 * SECOND,
    )
    await scene.jobs.add(job)
    await scene.until_idle(pace=10 * SECOND)
    assert (await scene.job()).sleep_until == START + 3 * SECOND


async def test_the_same_job_is_not_run_again_before_the_reprocess_delay(scene: Scene) -> None:
    await scene.jobs.add(hourly())
    await scene.until_idle(reprocess_delay=2 * HOUR)
    row = await scene.job()
    assert (row.due_time, row.sleep_until) == (START + HOUR, START + 2 * HOUR)


# Failures


async def test_a_failed_run_is_tried_again_after_a_back_off_that_doubles(scene: Scene) -> None:
    await scene.jobs.add(once())
    waits = []
    for _ in range(3):
        await scene.until_idle(on_document=fail)
        row = await scene.job()
        assert row.sleep_until is not None
        waits.append(row.sleep_until - scene.clock.now())
        scene.clock.advance(waits[-1])
    assert waits == [5 * SECOND, 10 * SECOND, 20 * SECOND]
    row = await scene.job()
    assert (row.due_time, row.attempts, row.last_error) == (START, 3, "RuntimeError: no")
    assert [type(error) for error in scene.told] == [AttemptFailed] * 3


async def test_a_run_that_succeeds_at_last_leaves_no_error_behind(scene: Scene) -> None:
    await scene.jobs.add(hourly())
    await scene.until_idle(on_document=fail)
    scene.clock.advance(5 * SECOND)
    await scene.until_idle()
    row = await scene.job()
    assert (row.due_time, row.attempts, row.last_error) == (START + HOUR, 0, None)
    assert [occurrence_key(job) for job in scene.ran] == ["2026-03-02T09:00"]


@pytest.mark.parametrize("auto_remove", [False, True])
async def test_a_one_time_job_ends_with_its_last_attempt_and_is_kept(scene: Scene, auto_remove: bool) -> None:
    await scene.jobs.add(once(auto_remove=auto_remove))
    await scene.until_idle(on_document=fail, retry=RetryPolicy(max_attempts=1))
    row = await scene.job()
    assert (row.due_time, row.sleep_until, row.last_error) == (None, None, "RuntimeError: no")
    assert [type(error) for error in scene.told] == [JobFailed]


async def test_a_recurring_job_goes_on_after_its_last_attempt(scene: Scene) -> None:
    await scene.jobs.add(hourly())
    await scene.until_idle(on_document=fail, retry=RetryPolicy(max_attempts=1))
    row = await scene.job()
    assert (row.due_time, row.attempts, row.last_error) == (START + HOUR, 0, "RuntimeError: no")
    assert [type(error) for error in scene.told] == [JobFailed]


async def test_a_handler_may_say_that_there_is_no_use_in_trying_again(scene: Scene) -> None:
    async def refuse(job: Job) -> Outcome:
        return Failed(error=ValueError("never"), retry=False)

    await scene.jobs.add(once())
    await scene.until_idle(on_document=refuse)
    assert (await scene.job()).last_error == "ValueError: never"
    assert [type(error) for error in scene.told] == [JobFailed]


async def test_a_handler_may_say_when_to_try_again(scene: Scene) -> None:
    async def later(job: Job) -> Outcome:
        return Failed(error=ValueError("not yet"), after=HOUR)

    await scene.jobs.add(once())
    await scene.until_idle(on_document=later)
    assert (await scene.job()).sleep_until == START + HOUR


async def test_an_error_is_stored_whatever_stands_in_it(scene: Scene) -> None:
    async def weird(job: Job) -> None:
        raise ValueError("zero \0 half \ud800 long " + "x" * 5000)

    await scene.jobs.add(once())
    await scene.until_idle(on_document=weird)
    error = (await scene.job()).last_error
    assert error is not None
    assert error.startswith("ValueError: zero \\0 half \\ud800 long")
    assert len(error) < 1100


class ShyError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


async def test_an_error_that_cannot_be_shown_is_one_like_any_other(scene: Scene) -> None:
    async def shy(job: Job) -> None:
        raise ShyError

    await scene.jobs.add(once())
    await scene.until_idle(on_document=shy)
    assert str((await scene.job()).last_error).startswith("ShyError")
    assert [type(error) for error in scene.told] == [AttemptFailed]


async def test_a_job_that_ends_its_workers_ends_too(scene: Scene) -> None:
    await scene.jobs.add(once())
    for crash in range(5):
        assert await scene.store.lock_next(START + crash * HOUR, START + (crash + 1) * HOUR, 1)
    scene.clock.advance(5 * HOUR)
    await scene.until_idle()
    assert scene.ran == []
    assert (await scene.job()).due_time is None
    (error,) = scene.told
    assert isinstance(error, JobFailed)
    assert isinstance(error.error, WorkerLost)


@pytest.mark.parametrize(
    "job",
    [
        Job(id=1, due_time=START, sleep_until=START, interval="61 * * * *"),
        Job(id=1, due_time=START, sleep_until=START, interval="* * * * *", time_zone="Berlin"),
        Job(id=1, due_time=START, sleep_until=START, interval="* * * * *", dst="SOMETIMES"),
        Job(id=1, due_time=START, sleep_until=START, misfire="PERHAPS"),
    ],
    ids=["cron", "zone", "dst", "misfire"],
)
async def test_a_row_that_makes_no_sense_is_paused_and_the_others_run(scene: Scene, job: Job) -> None:
    await scene.jobs.add(job, once(2))
    await scene.until_idle(batch=10)
    assert [ran.id for ran in scene.ran] == [2]
    row = await scene.job()
    assert (row.due_time, row.sleep_until, row.attempts) == (START, None, 0)
    assert row.last_error
    assert [type(error) for error in scene.told] == [InvalidJob]


# Batches


async def test_a_batch_handler_gets_the_jobs_in_order_and_says_what_became_of_each(scene: Scene) -> None:
    seen: list[list[object]] = []

    async def together(jobs: Sequence[Job]) -> Sequence[Outcome]:
        seen.append([job.id for job in jobs])
        return [Failed(error=ValueError("odd")) if int(str(job.id)) % 2 else Done() for job in jobs]

    await scene.jobs.add(*(once(number, START - number * SECOND) for number in range(5)))
    await scene.until_idle(on_batch=together, batch=4)
    assert seen == [[4, 3, 2, 1], [0]]
    assert [(await scene.job(number)).last_error is None for number in range(5)] == [True, False, True, False, True]


async def test_a_batch_that_raises_failed_for_all(scene: Scene) -> None:
    async def together(jobs: Sequence[Job]) -> Sequence[Outcome]:
        raise RuntimeError("no")

    await scene.jobs.add(once(1), once(2))
    await scene.until_idle(on_batch=together, batch=4)
    assert [(await scene.job(number)).sleep_until for number in (1, 2)] == [START + 5 * SECOND] * 2


async def test_a_handler_that_answers_false_has_not_succeeded(scene: Scene) -> None:
    async def deny(job: Job) -> Any:
        return False

    await scene.jobs.add(once())
    await scene.until_idle(on_document=deny)
    assert [type(error) for error in scene.told] == [AttemptFailed]


async def test_a_handler_that_answers_nonsense_has_failed(scene: Scene) -> None:
    async def together(jobs: Sequence[Job]) -> Sequence[Outcome]:
        return [Done()]

    await scene.jobs.add(once(1), once(2))
    await scene.until_idle(on_batch=together, batch=4)
    assert [(await scene.job(number)).attempts for number in (1, 2)] == [1, 1]
    assert "for 2 jobs" in str(scene.told[0])


async def test_what_a_batch_holds_is_run_one_by_one_by_a_document_handler(scene: Scene) -> None:
    async def odd_fail(job: Job) -> None:
        scene.ran.append(job)
        if job.id == 1:
            raise RuntimeError("no")

    await scene.jobs.add(once(0), once(1), once(2))
    await scene.until_idle(on_document=odd_fail, batch=10)
    assert [job.id for job in scene.ran] == [0, 1, 2]
    assert [(await scene.job(number)).last_error is None for number in range(3)] == [True, False, True]


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


# Hooks and states


async def test_hooks_are_called_in_their_turn(scene: Scene) -> None:
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


async def test_idleness_is_said_once_each_time(scene: Scene) -> None:
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


async def test_a_scheduler_says_what_it_is_doing(scene: Scene) -> None:
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


async def test_an_error_at_the_start_is_raised_and_nothing_has_begun(scene: Scene) -> None:
    async def refuse() -> None:
        raise RuntimeError("not today")

    await scene.jobs.add(once())
    scheduler = scene.scheduler(on_start=refuse)
    with pytest.raises(RuntimeError, match="not today"):
        await scheduler.start()
    assert not scheduler.is_running
    assert scene.store.calls.total() == 0
    await scheduler.stop()


async def test_errors_of_the_other_hooks_are_told_and_stop_nothing(scene: Scene) -> None:
    async def fail_too() -> None:
        raise RuntimeError("no")

    await scene.jobs.add(once())
    await scene.until_idle(on_idle=fail_too, on_stop=fail_too)
    assert len(scene.ran) == 1
    assert [error.hook for error in scene.told if isinstance(error, HookFailed)] == ["on_idle", "on_stop"]


async def test_a_handler_that_waits_for_what_is_cancelled_has_failed_and_the_scheduler_goes_on(scene: Scene) -> None:
    async def await_in_vain(job: Job) -> None:
        if job.id == 1:
            given_up = asyncio.get_running_loop().create_future()
            given_up.cancel()
            await given_up
        scene.ran.append(job)

    await scene.jobs.add(once(1), once(2))
    await scene.until_idle(on_document=await_in_vain)
    assert [job.id for job in scene.ran] == [2]
    assert [type(error) for error in scene.told] == [AttemptFailed]


async def test_an_error_handler_that_fails_stops_nothing(scene: Scene) -> None:
    async def fail_again(error: SchedulerError) -> None:
        raise RuntimeError("no")

    await scene.jobs.add(once(1), once(2))
    await scene.until_idle(on_document=fail, on_error=fail_again)
    assert [(await scene.job(number)).attempts for number in (1, 2)] == [1, 1]


# Waiting


async def test_an_idle_scheduler_asks_no_more_than_it_has_to(scene: Scene) -> None:
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


async def test_an_idle_scheduler_finds_what_nobody_told_it_of(scene: Scene) -> None:
    async with scene.scheduler(idle_delay=timedelta(milliseconds=20)) as scheduler:
        await eventually(lambda: scheduler.is_idle)
        await scene.jobs.add(once())
        await eventually(lambda: scene.ran)


async def test_the_waiting_worker_hears_of_what_another_has_put_back(scene: Scene) -> None:
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


async def test_workers_wait_between_batches_if_they_are_told_to(scene: Scene) -> None:
    await scene.jobs.add(once(1), once(2))
    async with scene.scheduler(next_delay=HOUR) as scheduler:
        await eventually(lambda: scene.ran and not scheduler.is_processing)
        assert not scheduler.is_idle
    assert len(scene.ran) == 1


# Stopping


async def test_a_stop_lets_the_run_in_hand_finish_and_gives_back_the_rest(scene: Scene) -> None:
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
    assert scene.told == []


@pytest.mark.parametrize("handler", ["on_document", "on_batch"])
async def test_what_does_not_finish_within_the_grace_is_cancelled_and_given_back(scene: Scene, handler: str) -> None:
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
async def test_whatever_a_scheduler_calls_may_stop_it(scene: Scene, caller: str) -> None:
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


async def test_everybody_who_stops_a_scheduler_waits_for_its_end(scene: Scene) -> None:
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


async def test_a_stop_during_the_start_ends_it_before_anything_is_run(scene: Scene) -> None:
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
async def test_a_hook_that_hangs_does_not_hold_up_a_stop_for_ever(scene: Scene, hook: str) -> None:
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


async def test_a_stop_ends_also_while_the_store_is_away(scene: Scene) -> None:
    scene.store.failing = {"now", "lock_next", "update"}
    async with scene.scheduler():
        await eventually(lambda: scene.told)


async def test_a_stop_does_not_wait_for_ever_for_a_store_that_takes_nothing(scene: Scene) -> None:
    scene.store.failing = {"update"}
    await scene.jobs.add(once())
    async with scene.scheduler(grace=timedelta(milliseconds=10)):
        await eventually(lambda: scene.told)
    assert (await scene.job()).sleep_until == START + 10 * MINUTE


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
