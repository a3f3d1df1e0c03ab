"""New jobs, and edits of jobs that wait or run, on both stores."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from jobkit.changes import Enqueued, JobEdit, NewJob, OnConflict
from jobkit.errors import AttemptFailed, LateWrite, LockLost
from jobkit.job import Job, Misfire
from jobkit.store import JobExists, NoSuchJob
from testkit.clocks import START
from testkit.eventually import eventually
from testkit.jobs import Scene, fail, hourly, once

SECOND, MINUTE, HOUR, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


# New jobs


async def test_a_new_job_runs_at_once_and_gets_an_id(scene: Scene) -> None:
    job_id, is_new = await scene.store.enqueue(NewJob(data={"to": "ada"}))
    assert is_new
    await scene.until_idle()
    assert [(job.id, job.due_time, job.data) for job in scene.ran] == [(job_id, START, {"to": "ada"})]
    assert (await scene.store.enqueue(NewJob())).id != job_id


async def test_a_new_recurring_job_is_due_at_its_first_occurrence(scene: Scene) -> None:
    scene.clock.advance(MINUTE)
    new = NewJob(
        id=7,
        interval="0 8 * * *",
        time_zone="Europe/Berlin",
        dst="ONCE",
        repeat_until=START + 30 * DAY,
        misfire="FIRE_ALL",
        misfire_after=MINUTE,
        pace=SECOND,
        auto_remove=True,
    )
    assert await scene.store.enqueue(new) == Enqueued(7, is_new=True)
    job = await scene.job(7)
    assert job.due_time == job.sleep_until == START.replace(hour=7) + DAY
    for part in ("interval", "time_zone", "dst", "repeat_until", "misfire", "misfire_after", "pace", "auto_remove"):
        assert getattr(job, part) == getattr(new, part)


async def test_a_deferred_job_waits_for_its_time(scene: Scene) -> None:
    await scene.store.enqueue(NewJob(id=7, due_time=START + HOUR))
    await scene.until_idle()
    assert scene.ran == []
    assert (await scene.job(7)).sleep_until == START + HOUR


async def test_an_id_that_is_taken_is_refused_or_kept(scene: Scene) -> None:
    await scene.store.enqueue(NewJob(id=7, data={"n": 1}))
    with pytest.raises(JobExists, match="there is a job 7 already"):
        await scene.store.enqueue(NewJob(id=7))
    kept = await scene.store.enqueue(NewJob(id=7, data={"n": 2}), on_conflict=OnConflict.KEEP)
    assert kept == Enqueued(7, is_new=False)
    assert (await scene.job(7)).data == {"n": 1}


async def test_an_unchanged_declaration_keeps_the_next_occurrence(scene: Scene) -> None:
    async def declare(interval: str, number: int) -> None:
        new = NewJob(id=1, interval=interval, data={"n": number})
        assert await scene.store.enqueue(new, on_conflict=OnConflict.EDIT) == Enqueued(1, is_new=number == 0)

    await declare("@hourly", 0)
    scene.clock.advance(90 * MINUTE)
    # The declaration does not lose the occurrence that was missed.
    await declare("@hourly", 1)
    job = await scene.job()
    assert (job.due_time, job.data) == (START + HOUR, {"n": 1})
    await declare("@daily", 2)
    assert (await scene.job()).due_time == START.replace(hour=0) + DAY


@pytest.mark.parametrize(
    ("new", "reason"),
    [
        (NewJob(interval="61 * * * *"), "61"),
        (NewJob(interval="@daily", time_zone="Berlin"), "Berlin"),
        (NewJob(interval="0 0 30 2 *"), "never fires"),
        (NewJob(interval="@daily", repeat_until=START), "after repeat_until"),
        (NewJob(misfire="MAYBE"), "MAYBE"),
        (NewJob(due_time=START.replace(tzinfo=None)), "due_time has no time zone"),
    ],
    ids=str,
)
async def test_an_invalid_new_job_is_refused(scene: Scene, new: NewJob, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        await scene.store.enqueue(new)
    assert await scene.store.next_due() is None


async def test_a_scheduler_looks_at_once_after_its_own_changes(scene: Scene) -> None:
    async with scene.scheduler(idle_delay=HOUR) as scheduler:
        await eventually(lambda: scheduler.is_idle)
        await scheduler.enqueue(NewJob(id=1))
        await eventually(lambda: scene.ran and scheduler.is_idle)
        await scheduler.enqueue(NewJob(id=2, due_time=START + DAY))
        await scheduler.edit_job(2, JobEdit(due_time=START))
        await eventually(lambda: len(scene.ran) == 2)


# Edits of a waiting job


async def test_a_new_schedule_begins_at_once(scene: Scene) -> None:
    await scene.jobs.add(hourly(START + HOUR))
    edited = await scene.store.edit_job(1, JobEdit(interval="*/10 * * * *"))
    assert edited.due_time == edited.sleep_until == START + 10 * MINUTE
    row = await scene.job()
    assert (row.due_time, row.sleep_until, row.fence) == (START + 10 * MINUTE, START + 10 * MINUTE, 1)
    await scene.store.edit_job(1, JobEdit(interval="0 8 * * *", time_zone="Europe/Berlin"))
    assert (await scene.job()).due_time == START.replace(hour=7) + DAY


async def test_a_job_ends_with_its_schedule_and_resumes_with_a_longer_one(scene: Scene) -> None:
    await scene.jobs.add(hourly(START + HOUR))
    await scene.store.edit_job(1, JobEdit(repeat_until=START + MINUTE))
    row = await scene.job()
    assert (row.due_time, row.sleep_until) == (None, None)
    await scene.store.edit_job(1, JobEdit(repeat_until=None))
    row = await scene.job()
    assert row.due_time == row.sleep_until == START + HOUR


async def test_a_job_that_repeats_for_longer_keeps_its_step(scene: Scene) -> None:
    await scene.store.enqueue(NewJob(id=1, interval="@every 1h", repeat_until=START + 5 * HOUR))
    scene.clock.advance(20 * MINUTE)
    await scene.store.edit_job(1, JobEdit(repeat_until=START + 2 * HOUR))
    row = await scene.job()
    assert (row.due_time, row.sleep_until, row.fence) == (START + HOUR, START + HOUR, 0)


async def test_a_job_is_moved_to_another_time(scene: Scene) -> None:
    await scene.jobs.add(once())
    await scene.until_idle()
    await scene.store.edit_job(1, JobEdit(due_time=START + HOUR))
    await scene.until_idle()
    scene.clock.advance(HOUR)
    await scene.until_idle()
    assert [job.due_time for job in scene.ran] == [START, START + HOUR]


async def test_a_job_is_paused_and_resumed(scene: Scene) -> None:
    await scene.jobs.add(hourly(START - MINUTE))
    await scene.store.edit_job(1, JobEdit(paused=True))
    await scene.store.edit_job(1, JobEdit(paused=True))
    await scene.until_idle()
    row = await scene.job()
    assert (scene.ran, row.due_time, row.sleep_until) == ([], START - MINUTE, None)
    await scene.store.edit_job(1, JobEdit(paused=False))
    await scene.until_idle()
    assert [job.due_time for job in scene.ran] == [START - MINUTE]


async def test_a_paused_job_stays_paused_when_its_schedule_is_edited(scene: Scene) -> None:
    await scene.jobs.add(Job(id=1, due_time=START + HOUR, sleep_until=None, interval="@hourly"))
    await scene.store.edit_job(1, JobEdit(interval="@daily"))
    row = await scene.job()
    assert (row.due_time, row.sleep_until) == (START.replace(hour=0) + DAY, None)
    await scene.store.edit_job(1, JobEdit(interval="@hourly", paused=False))
    assert (await scene.job()).sleep_until == START + HOUR


async def test_an_unreadable_row_is_corrected_by_an_edit(scene: Scene) -> None:
    await scene.jobs.add(Job(id=1, due_time=START, sleep_until=START, interval="61 * * * *"))
    await scene.until_idle()
    await scene.store.edit_job(1, JobEdit(data={"seen": True}))
    await scene.store.edit_job(1, JobEdit(interval="@hourly", paused=False))
    assert (await scene.job()).sleep_until == START + HOUR


async def test_a_waiting_attempt_is_made_under_the_edited_definition(scene: Scene) -> None:
    await scene.jobs.add(hourly())
    await scene.until_idle(on_document=fail)
    edited = await scene.store.edit_job(1, JobEdit(interval="*/10 * * * *"))
    assert (edited.due_time, edited.sleep_until, edited.attempts) == (START, START + 5 * SECOND, 1)
    scene.clock.advance(5 * SECOND)
    await scene.until_idle()
    assert [(job.due_time, job.attempts) for job in scene.ran] == [(START, 2)]
    assert (await scene.job()).due_time == START + 10 * MINUTE


@pytest.mark.parametrize(
    "edit",
    [
        JobEdit(interval="61 * * * *"),
        JobEdit(time_zone="Berlin"),
        JobEdit(interval="0 0 30 2 *"),
        JobEdit(misfire="MAYBE"),
        JobEdit(due_time=START.replace(tzinfo=None)),
        JobEdit(repeat_until=START.replace(tzinfo=None)),
    ],
    ids=str,
)
async def test_an_invalid_edit_changes_nothing(scene: Scene, edit: JobEdit) -> None:
    await scene.jobs.add(hourly(START + HOUR))
    before = await scene.job()
    with pytest.raises(ValueError, match=r"61|Berlin|never fires|MAYBE|time zone"):
        await scene.store.edit_job(1, edit)
    assert await scene.job() == before


async def test_a_missing_job_cannot_be_edited(scene: Scene) -> None:
    with pytest.raises(NoSuchJob, match="there is no job 1"):
        await scene.store.edit_job(1, JobEdit(paused=True))


# Edits of a running job


async def edited_in_its_run(scene: Scene, job: Job, edit: JobEdit, **settings: Any) -> None:
    async def do(job: Job) -> None:
        scene.ran.append(job)
        if len(scene.ran) == 1:
            scene.clock.advance(MINUTE)
            await scene.store.edit_job(1, edit)

    await scene.jobs.add(job)
    await scene.until_idle(on_document=do, **settings)


async def test_an_edit_of_data_does_not_void_a_run(scene: Scene) -> None:
    await edited_in_its_run(scene, once(), JobEdit(data={"n": 2}))
    row = await scene.job()
    assert (len(scene.ran), row.due_time, row.data) == (1, None, {"n": 2})
    assert scene.errors == []


async def test_a_run_settles_by_the_schedule_that_its_row_has_at_its_end(scene: Scene) -> None:
    await edited_in_its_run(scene, hourly(), JobEdit(interval="*/10 * * * *"))
    row = await scene.job()
    assert row.due_time == row.sleep_until == START + 10 * MINUTE
    assert (len(scene.ran), row.attempts, scene.errors) == (1, 0, [])


@pytest.mark.parametrize("misfire", Misfire)
async def test_a_rescheduled_run_does_not_catch_up(scene: Scene, misfire: Misfire) -> None:
    edit = JobEdit(interval="*/10 * * * *", misfire_after=DAY)
    await edited_in_its_run(scene, hourly(START - 5 * HOUR, misfire=misfire), edit, misfire_after=DAY)
    assert ((await scene.job()).due_time, len(scene.ran), scene.errors) == (START + 10 * MINUTE, 1, [])


async def test_a_run_that_is_rescheduled_twice_does_not_catch_up(scene: Scene) -> None:
    held = scene.store.gates["held"] = asyncio.Event()

    async def do(job: Job) -> None:
        await scene.store.edit_job(1, JobEdit(interval="*/10 * * * *"))

    await scene.jobs.add(hourly(START - 5 * HOUR, misfire=Misfire.FIRE_ALL))
    async with scene.scheduler(on_document=do) as scheduler:
        await eventually(lambda: scene.store.calls["held"])
        write = scene.store.gates["update"] = asyncio.Event()
        held.set()
        await eventually(lambda: scene.store.calls["update"] == 2)
        await scene.store.edit_job(1, JobEdit(auto_remove=True))
        write.set()
        await eventually(lambda: scheduler.is_idle)
    assert (await scene.job()).due_time == START + 10 * MINUTE


async def test_a_late_job_that_waits_for_its_pace_is_rescheduled(scene: Scene) -> None:
    await scene.jobs.add(replace(hourly(START - 5 * HOUR, misfire=Misfire.FIRE_ALL), sleep_until=START + MINUTE))
    edited = await scene.store.edit_job(1, JobEdit(interval="@daily"))
    assert edited.due_time == edited.sleep_until == START.replace(hour=0) + DAY


async def test_a_run_settles_by_the_zone_that_its_row_has_at_its_end(scene: Scene) -> None:
    job = Job(id=1, due_time=START, sleep_until=START, interval="0 9 * * *")
    await edited_in_its_run(scene, job, JobEdit(time_zone="America/New_York"))
    assert (await scene.job()).due_time == START.replace(hour=14)


async def test_a_job_whose_schedule_ends_during_its_run_has_ended(scene: Scene) -> None:
    await edited_in_its_run(scene, hourly(), JobEdit(repeat_until=START + MINUTE))
    assert (await scene.job()).due_time is None
    assert scene.errors == []


@pytest.mark.parametrize("removes", [False, True])
async def test_auto_remove_counts_at_the_end_of_a_run(scene: Scene, removes: bool) -> None:
    await edited_in_its_run(scene, once(auto_remove=not removes), JobEdit(auto_remove=removes))
    assert ((await scene.jobs.read(1)) is None) == removes
    assert scene.errors == []


async def test_a_failed_run_of_an_edited_job_is_retried(scene: Scene) -> None:
    async def do(job: Job) -> None:
        await scene.store.edit_job(1, JobEdit(interval="@daily"))
        raise RuntimeError("no")

    await scene.jobs.add(hourly())
    await scene.until_idle(on_document=do)
    row = await scene.job()
    assert (row.due_time, row.sleep_until, row.interval) == (START, START + 5 * SECOND, "@daily")
    assert [type(error) for error in scene.errors] == [AttemptFailed]


async def test_only_the_edited_job_of_a_batch_is_decided_again(scene: Scene) -> None:
    async def do(job: Job) -> None:
        scene.ran.append(job)
        if job.id == 1:
            await scene.store.edit_job(1, JobEdit(auto_remove=True))

    await scene.jobs.add(once(1), once(2), once(3))
    await scene.until_idle(on_document=do, batch=3)
    assert [await scene.jobs.read(number) is None for number in (1, 2, 3)] == [True, False, False]
    assert (scene.store.calls["update"], scene.store.calls["held"], scene.store.calls["remove"]) == (1, 1, 1)
    assert scene.errors == []


@pytest.mark.parametrize("edit", [JobEdit(paused=True), JobEdit(due_time=START + DAY)], ids=str)
async def test_a_run_loses_a_job_that_is_paused_or_moved(scene: Scene, edit: JobEdit) -> None:
    await edited_in_its_run(scene, hourly(), edit)
    row = await scene.job()
    assert row.sleep_until == (None if edit.paused is True else START + DAY)
    assert [type(error) for error in scene.errors] == [LateWrite]


async def test_an_edit_may_end_a_run(scene: Scene) -> None:
    cancelled = asyncio.Event()

    async def linger(job: Job) -> None:
        await scene.store.edit_job(1, JobEdit(end_run=True))
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    await scene.jobs.add(once())
    await scene.until_idle(on_document=linger, lock_duration=timedelta(seconds=0.15))
    assert cancelled.is_set()
    assert [type(error) for error in scene.errors] == [LockLost]


async def test_concurrent_edits_are_all_applied(scene: Scene) -> None:
    await scene.jobs.add(hourly(START + HOUR))
    edits = [
        JobEdit(interval="30 7 * * *"),
        JobEdit(time_zone="Europe/Berlin"),
        JobEdit(repeat_until=START + 9 * DAY),
        JobEdit(data={"n": 1}),
        JobEdit(paused=True),
    ]
    async with asyncio.TaskGroup() as group:
        for edit in edits:
            group.create_task(scene.store.edit_job(1, edit))
    row = await scene.job()
    assert (row.interval, row.time_zone, row.data, row.sleep_until) == ("30 7 * * *", "Europe/Berlin", {"n": 1}, None)
    assert (row.due_time, row.repeat_until) == (START.replace(hour=6, minute=30) + DAY, START + 9 * DAY)


async def test_an_edited_row_is_read_when_the_store_is_back(scene: Scene) -> None:
    async def do(job: Job) -> None:
        await scene.store.edit_job(1, JobEdit(interval="@daily"))

    scene.store.failing = {"held"}
    await scene.jobs.add(hourly())
    async with scene.scheduler(on_document=do) as scheduler:
        await eventually(lambda: scene.errors)
        scene.store.failing.clear()
        await eventually(lambda: scheduler.is_idle)
    assert (await scene.job()).due_time == START.replace(hour=0) + DAY
    assert {getattr(error, "call", "") for error in scene.errors} == {"held"}
