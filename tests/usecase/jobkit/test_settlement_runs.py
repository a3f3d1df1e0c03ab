"""The runs of due jobs and their settlements, on both stores."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from jobkit.errors import AttemptFailed, InvalidJob, JobFailed, OccurrenceSkipped, WorkerLost
from jobkit.job import Done, Failed, Job, Misfire, Outcome
from jobkit.occurrences import occurrence_key
from jobkit.retry import RetryPolicy
from testkit.clocks import START
from testkit.jobs import Scene, fail, hourly, once

SECOND, MINUTE, HOUR, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


# Kinds of jobs


async def test_a_one_time_job_runs_once_and_is_kept_as_finished(scene: Scene) -> None:
    await scene.jobs.add(once())
    await scene.until_idle()
    await scene.until_idle()
    assert [job.id for job in scene.ran] == [1]
    row = await scene.job()
    assert (row.due_time, row.sleep_until, row.attempts, row.last_error) == (None, None, 0, None)
    assert scene.errors == []


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


async def test_an_auto_remove_job_is_deleted_after_its_last_run(scene: Scene) -> None:
    await scene.jobs.add(once(auto_remove=True))
    await scene.until_idle()
    assert await scene.jobs.read(1) is None


async def test_a_recurring_auto_remove_job_stays_until_it_ends(scene: Scene) -> None:
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


@pytest.mark.parametrize("auto_remove", [False, True])
async def test_an_occurrence_after_repeat_until_is_reported_instead_of_run(scene: Scene, auto_remove: bool) -> None:
    await scene.jobs.add(hourly(repeat_until=START - SECOND, auto_remove=auto_remove))
    await scene.until_idle()
    assert scene.ran == []
    row = await scene.job()
    assert (row.due_time, row.sleep_until) == (None, None)
    assert "is after repeat_until" in str(row.last_error)
    assert [type(error) for error in scene.errors] == [OccurrenceSkipped]


async def test_an_occurrence_before_repeat_until_runs_even_if_late(scene: Scene) -> None:
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


async def test_fire_once_runs_once_for_all_missed_occurrences(scene: Scene) -> None:
    await scene.jobs.add(hourly(START - 5 * DAY))
    await scene.until_idle()
    assert [job.due_time for job in scene.ran] == [START - 5 * DAY]
    assert (await scene.job()).due_time == START + HOUR


async def test_an_occurrence_during_a_run_is_not_covered_by_it(scene: Scene) -> None:
    async def linger(job: Job) -> None:
        scene.ran.append(job)
        if len(scene.ran) == 1:
            scene.clock.advance(90 * MINUTE)

    await scene.jobs.add(hourly())
    await scene.until_idle(on_document=linger)
    assert [job.due_time for job in scene.ran] == [START, START + HOUR]
    assert (await scene.job()).due_time == START + 2 * HOUR


async def test_an_occurrence_that_is_too_late_is_skipped_and_reported(scene: Scene) -> None:
    await scene.jobs.add(hourly(START - HOUR - MINUTE, misfire=Misfire.SKIP))
    await scene.until_idle(misfire_after=MINUTE - SECOND)
    # The occurrence at START is due right now, so it runs.
    assert [job.due_time for job in scene.ran] == [START]
    assert [type(error) for error in scene.errors] == [OccurrenceSkipped]


async def test_a_late_occurrence_within_the_limit_is_not_skipped(scene: Scene) -> None:
    await scene.jobs.add(hourly(START - MINUTE, misfire=Misfire.SKIP))
    await scene.until_idle(misfire_after=MINUTE)
    # And so does the next one, which is due now.
    assert [job.due_time for job in scene.ran] == [START - MINUTE, START]
    assert scene.errors == []


@pytest.mark.parametrize("auto_remove", [False, True])
async def test_a_one_time_job_that_is_too_late_ends_without_a_run(scene: Scene, auto_remove: bool) -> None:
    await scene.jobs.add(once(1, START - HOUR, misfire=Misfire.SKIP, auto_remove=auto_remove))
    await scene.until_idle()
    assert scene.ran == []
    row = await scene.job()
    assert (row.due_time, row.sleep_until) == (None, None)
    assert "1:00:00 late" in str(row.last_error)
    assert [type(error) for error in scene.errors] == [OccurrenceSkipped]


@pytest.mark.parametrize("misfire", Misfire)
async def test_delays_of_any_length_are_accepted(scene: Scene, misfire: Misfire) -> None:
    await scene.jobs.add(hourly(START - HOUR, misfire=misfire))
    endless = dict.fromkeys(("idle_delay", "reprocess_delay", "misfire_after", "pace", "grace"), timedelta.max)
    await scene.until_idle(**endless)
    assert [job.due_time for job in scene.ran] == [START - HOUR]
    assert scene.errors == []


async def test_a_second_attempt_is_never_too_late(scene: Scene) -> None:
    await scene.jobs.add(once(misfire=Misfire.SKIP))
    await scene.until_idle(on_document=fail)
    scene.clock.advance(HOUR)
    await scene.until_idle()
    assert [job.attempts for job in scene.ran] == [2]


async def test_fire_all_runs_missed_occurrences_in_order_and_paced(scene: Scene) -> None:
    await scene.jobs.add(hourly(START - 2 * HOUR, misfire=Misfire.FIRE_ALL))
    pauses = []
    for _ in range(3):
        await scene.until_idle(pace=10 * SECOND)
        pauses.append((await scene.job()).sleep_until)
        scene.clock.advance(10 * SECOND)
    assert [job.due_time for job in scene.ran] == [START - 2 * HOUR, START - HOUR, START]
    assert pauses == [START + 10 * SECOND, START + 20 * SECOND, START + HOUR]


async def test_a_jobs_own_pace_overrides_the_schedulers(scene: Scene) -> None:
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


async def test_a_failed_run_is_retried_after_a_doubling_back_off(scene: Scene) -> None:
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
    assert [type(error) for error in scene.errors] == [AttemptFailed] * 3


async def test_a_success_clears_the_last_error(scene: Scene) -> None:
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
    assert [type(error) for error in scene.errors] == [JobFailed]


async def test_a_recurring_job_goes_on_after_its_last_attempt(scene: Scene) -> None:
    await scene.jobs.add(hourly())
    await scene.until_idle(on_document=fail, retry=RetryPolicy(max_attempts=1))
    row = await scene.job()
    assert (row.due_time, row.attempts, row.last_error) == (START + HOUR, 0, "RuntimeError: no")
    assert [type(error) for error in scene.errors] == [JobFailed]


async def test_a_handler_may_refuse_further_attempts(scene: Scene) -> None:
    async def refuse(job: Job) -> Outcome:
        return Failed(error=ValueError("never"), retry=False)

    await scene.jobs.add(once())
    await scene.until_idle(on_document=refuse)
    assert (await scene.job()).last_error == "ValueError: never"
    assert [type(error) for error in scene.errors] == [JobFailed]


async def test_a_handler_may_choose_the_time_of_the_next_attempt(scene: Scene) -> None:
    async def later(job: Job) -> Outcome:
        return Failed(error=ValueError("not yet"), after=HOUR)

    await scene.jobs.add(once())
    await scene.until_idle(on_document=later)
    assert (await scene.job()).sleep_until == START + HOUR


async def test_an_error_text_of_any_characters_is_stored(scene: Scene) -> None:
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


async def test_an_error_without_a_text_counts_like_any_other(scene: Scene) -> None:
    async def shy(job: Job) -> None:
        raise ShyError

    await scene.jobs.add(once())
    await scene.until_idle(on_document=shy)
    assert str((await scene.job()).last_error).startswith("ShyError")
    assert [type(error) for error in scene.errors] == [AttemptFailed]


async def test_a_job_that_kills_its_workers_is_given_up(scene: Scene) -> None:
    await scene.jobs.add(once())
    for crash in range(5):
        assert await scene.store.lock_next(START + crash * HOUR, START + (crash + 1) * HOUR, 1)
    scene.clock.advance(5 * HOUR)
    await scene.until_idle()
    assert scene.ran == []
    assert (await scene.job()).due_time is None
    (error,) = scene.errors
    assert isinstance(error, JobFailed)
    assert isinstance(error.error, WorkerLost)


@pytest.mark.parametrize(
    "job",
    [
        Job(id=1, due_time=START, sleep_until=START, interval="61 * * * *"),
        Job(id=1, due_time=START, sleep_until=START, interval="* * * * *", time_zone="Berlin"),
        Job(id=1, due_time=START, sleep_until=START, interval="* * * * *", dst="SOMETIMES"),
        Job(id=1, due_time=START, sleep_until=START, misfire="MAYBE"),
    ],
    ids=["cron", "zone", "dst", "misfire"],
)
async def test_an_unreadable_row_is_paused_and_the_others_run(scene: Scene, job: Job) -> None:
    await scene.jobs.add(job, once(2))
    await scene.until_idle(batch=10)
    assert [ran.id for ran in scene.ran] == [2]
    row = await scene.job()
    assert (row.due_time, row.sleep_until, row.attempts) == (START, None, 0)
    assert row.last_error
    assert [type(error) for error in scene.errors] == [InvalidJob]


# Batches


async def test_a_batch_handler_returns_an_outcome_for_each_job_in_order(scene: Scene) -> None:
    seen: list[list[object]] = []

    async def together(jobs: Sequence[Job]) -> Sequence[Outcome]:
        seen.append([job.id for job in jobs])
        return [Failed(error=ValueError("odd")) if int(str(job.id)) % 2 else Done() for job in jobs]

    await scene.jobs.add(*(once(number, START - number * SECOND) for number in range(5)))
    await scene.until_idle(on_batch=together, batch=4)
    assert seen == [[4, 3, 2, 1], [0]]
    assert [(await scene.job(number)).last_error is None for number in range(5)] == [True, False, True, False, True]


async def test_an_error_of_a_batch_handler_fails_every_job(scene: Scene) -> None:
    async def together(jobs: Sequence[Job]) -> Sequence[Outcome]:
        raise RuntimeError("no")

    await scene.jobs.add(once(1), once(2))
    await scene.until_idle(on_batch=together, batch=4)
    assert [(await scene.job(number)).sleep_until for number in (1, 2)] == [START + 5 * SECOND] * 2


async def test_a_handler_that_returns_false_has_failed(scene: Scene) -> None:
    async def deny(job: Job) -> Any:
        return False

    await scene.jobs.add(once())
    await scene.until_idle(on_document=deny)
    assert [type(error) for error in scene.errors] == [AttemptFailed]


async def test_a_handler_that_returns_nonsense_has_failed(scene: Scene) -> None:
    async def together(jobs: Sequence[Job]) -> Sequence[Outcome]:
        return [Done()]

    await scene.jobs.add(once(1), once(2))
    await scene.until_idle(on_batch=together, batch=4)
    assert [(await scene.job(number)).attempts for number in (1, 2)] == [1, 1]
    assert "for 2 jobs" in str(scene.errors[0])


async def test_a_document_handler_gets_a_batch_one_by_one(scene: Scene) -> None:
    async def odd_fail(job: Job) -> None:
        scene.ran.append(job)
        if job.id == 1:
            raise RuntimeError("no")

    await scene.jobs.add(once(0), once(1), once(2))
    await scene.until_idle(on_document=odd_fail, batch=10)
    assert [job.id for job in scene.ran] == [0, 1, 2]
    assert [(await scene.job(number)).last_error is None for number in range(3)] == [True, False, True]
