"""The settlement of a job, for any row, any lateness and any outcome."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from civil.cron import Dst, firings, parse_cron
from civil.zones import find_zone
from jobkit.errors import AttemptFailed, InvalidJob, JobFailed, OccurrenceSkipped
from jobkit.job import Done, Failed, Job, JobUpdate, Misfire
from jobkit.occurrences import occurrence_key
from jobkit.retry import RetryPolicy
from jobkit.settlement import Policy, Settlement, after_run, before_run, given_back

SECOND, MINUTE, HOUR, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
POLICY = Policy(retry=RetryPolicy(), reprocess_delay=timedelta(0), misfire_after=MINUTE, pace=SECOND)
START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)

# The first answer for a zone and year is slow.
PATIENT = settings(deadline=None)

EXPRESSIONS = ["* * * * *", "*/7 * * * *", "30 2 * * *", "0 * * * *", "0 0 29 2 *", "15 3 * * 1-5", "@weekly"]
ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Nuuk", "Pacific/Apia"]

instants = st.datetimes(min_value=datetime(2024, 1, 1), max_value=datetime(2029, 1, 1), timezones=st.just(UTC))
lateness = st.one_of(
    st.timedeltas(min_value=timedelta(0), max_value=3 * MINUTE),
    st.timedeltas(min_value=timedelta(0), max_value=40 * DAY),
    st.integers(min_value=0, max_value=3000).map(lambda minutes: minutes * MINUTE),
)


def run(job: Job, begun: datetime, now: datetime | None = None, policy: Policy = POLICY) -> Settlement:
    return after_run(job, Done(), begun=begun, now=now or begun, policy=policy, draw=1)


def failed(job: Job, now: datetime, policy: Policy = POLICY, **more: Any) -> Settlement:
    outcome = Failed(error=ValueError("no"), **more)
    return after_run(job, outcome, begun=now, now=now, policy=policy, draw=1)


def written(settlement: Settlement | None) -> JobUpdate:
    assert settlement is not None
    assert settlement.update is not None
    return settlement.update


def all_firings(job: Job, after: datetime) -> Iterator[datetime]:
    zone = find_zone(job.time_zone)
    for firing in firings(parse_cron(job.interval), zone, after=after, dst=Dst(job.dst)):
        yield firing.instant


@st.composite
def recurring(draw: st.DrawFn, misfire: st.SearchStrategy[Misfire] = st.sampled_from(Misfire)) -> Job:  # noqa: B008
    job = Job(
        id=1,
        due_time=None,
        sleep_until=None,
        attempts=1,
        interval=draw(st.sampled_from(EXPRESSIONS)),
        time_zone=draw(st.sampled_from(ZONES)),
        dst=draw(st.sampled_from(Dst)),
        misfire=draw(misfire),
    )
    due = next(all_firings(job, draw(instants)))
    return replace(job, due_time=due, sleep_until=due)


@PATIENT
@given(recurring(), lateness)
def test_the_next_occurrence_is_a_later_firing_of_the_expression(job: Job, late: timedelta) -> None:
    assert job.due_time
    update = written(run(job, job.due_time + late))
    assert update.due_time is not None
    assert job.due_time < update.due_time
    assert next(all_firings(job, update.due_time - datetime.resolution)) == update.due_time
    assert update.attempts == 0
    assert update.sleep_until is not None
    assert update.sleep_until >= update.due_time


@PATIENT
@given(recurring(st.just(Misfire.FIRE_ONCE)), lateness)
def test_fire_once_leaves_no_missed_occurrence(job: Job, late: timedelta) -> None:
    assert job.due_time
    begun = job.due_time + late
    assert before_run(job, begun, POLICY) is None
    assert written(run(job, begun)).due_time == next(all_firings(job, begun))
    assert written(run(job, begun, begun + HOUR)).due_time == next(all_firings(job, begun))


@PATIENT
@given(recurring(st.just(Misfire.FIRE_ALL)), lateness, st.timedeltas(min_value=timedelta(0), max_value=HOUR))
def test_fire_all_runs_every_occurrence_at_its_pace(job: Job, late: timedelta, pace: timedelta) -> None:
    assert job.due_time
    begun = job.due_time + late
    update = written(run(replace(job, pace=pace), begun))
    assert update.due_time == next(all_firings(job, job.due_time))
    assert update.sleep_until == (update.due_time if update.due_time > begun else max(update.due_time, begun + pace))


@PATIENT
@given(recurring(st.just(Misfire.SKIP)), lateness)
def test_skip_runs_only_occurrences_in_time(job: Job, late: timedelta) -> None:
    assert job.due_time
    now = job.due_time + late
    verdict = before_run(job, now, POLICY)
    if late <= MINUTE:
        assert verdict is None
        return
    assert verdict is not None
    assert isinstance(verdict.error, OccurrenceSkipped)
    due = written(verdict).due_time
    assert due is not None
    in_time = (at for at in all_firings(job, job.due_time) if now - at <= MINUTE)
    assert due == next(in_time)


def test_a_skipped_occurrence_does_not_delay_the_next() -> None:
    # Delayed, each would be too late in turn.
    policy = replace(POLICY, reprocess_delay=5 * MINUTE)
    job = Job(id=1, due_time=START, sleep_until=START, attempts=1, interval="* * * * *", misfire=Misfire.SKIP)
    after = written(run(job, START, policy=policy))
    assert (after.due_time, after.sleep_until) == (START + MINUTE, START + 5 * MINUTE)
    put_off = replace(job, due_time=after.due_time, sleep_until=after.sleep_until)
    verdict = before_run(put_off, START + 5 * MINUTE, policy)
    assert verdict is not None
    assert isinstance(verdict.error, OccurrenceSkipped)
    assert (written(verdict).due_time, written(verdict).sleep_until) == (START + 4 * MINUTE, START + 4 * MINUTE)


@PATIENT
@given(recurring(), lateness, st.timedeltas(min_value=-DAY, max_value=60 * DAY), st.booleans())
def test_nothing_is_due_after_repeat_until(job: Job, late: timedelta, more: timedelta, auto_remove: bool) -> None:
    assert job.due_time
    begun = job.due_time + late
    free = written(run(job, begun))
    bounded = replace(job, repeat_until=job.due_time + more, auto_remove=auto_remove)
    settlement = run(bounded, begun)
    assert free.due_time is not None
    if free.due_time <= job.due_time + more:
        assert settlement.update == free
    elif auto_remove:
        assert settlement.update is None
    else:
        update = written(settlement)
        assert (update.due_time, update.sleep_until, update.finish_time) == (None, None, begun)


@PATIENT
@given(recurring(), st.integers(min_value=1, max_value=5), lateness)
def test_a_failure_keeps_the_occurrence_until_the_last_attempt(job: Job, attempts: int, late: timedelta) -> None:
    assert job.due_time
    now = job.due_time + late
    settlement = failed(replace(job, attempts=attempts), now)
    update = written(settlement)
    assert update.last_error == "ValueError: no"
    if attempts < 5:
        assert (update.due_time, update.attempts) == (job.due_time, attempts)
        assert update.sleep_until == now + min(5 * SECOND * 2 ** (attempts - 1), 15 * MINUTE)
        assert isinstance(settlement.error, AttemptFailed)
    else:
        assert update == replace(written(run(job, now)), last_error="ValueError: no")
        assert isinstance(settlement.error, JobFailed)


@PATIENT
@given(recurring(), lateness, st.integers(min_value=1, max_value=9))
def test_the_key_is_the_firings_in_every_attempt(job: Job, late: timedelta, attempts: int) -> None:
    assert job.due_time
    zone = find_zone(job.time_zone)
    firing = next(firings(parse_cron(job.interval), zone, after=job.due_time - SECOND, dst=Dst(job.dst)))
    again = replace(job, attempts=attempts, fence=attempts, sleep_until=job.due_time + late)
    assert occurrence_key(job) == occurrence_key(again) == firing.key


@PATIENT
@given(recurring())
def test_keys_of_a_job_are_unique(job: Job) -> None:
    keys: list[str] = []
    due = job.due_time
    while due is not None and len(keys) < 30:
        job = replace(job, due_time=due)
        keys.append(occurrence_key(job))
        due = written(run(job, due)).due_time
    assert len(set(keys)) == len(keys)


@PATIENT
@given(st.timedeltas(min_value=SECOND, max_value=3 * DAY), instants, lateness)
def test_every_keeps_its_step_after_a_late_run(every: timedelta, due: datetime, late: timedelta) -> None:
    seconds = int(every.total_seconds())
    due = due.replace(microsecond=0)
    job = Job(id=1, due_time=due, sleep_until=due, attempts=1, interval=f"@every {seconds}s")
    following = written(run(job, due + late)).due_time
    assert following is not None
    assert following > due + late
    assert following - due - late <= timedelta(seconds=seconds)
    assert (following - due) % timedelta(seconds=seconds) == timedelta(0)


def test_a_job_whose_expression_never_fires_again_ends() -> None:
    job = Job(id=1, due_time=START, sleep_until=START, attempts=1, interval="0 0 30 2 *")
    assert written(run(job, START)).due_time is None


def test_a_failed_last_occurrence_is_kept_despite_auto_remove() -> None:
    job = Job(
        id=1, due_time=START, sleep_until=START, attempts=5, interval="@daily", repeat_until=START, auto_remove=True
    )
    assert run(job, START).update is None
    update = written(failed(job, START))
    assert (update.due_time, update.last_error) == (None, "ValueError: no")


def test_a_job_that_lost_its_worker_keeps_the_previous_error() -> None:
    job = Job(id=1, due_time=START, sleep_until=START, attempts=POLICY.retry.max_attempts + 1, last_error="OSError: no")
    settlement = before_run(job, START, POLICY)
    assert settlement is not None
    assert isinstance(settlement.error, JobFailed)
    assert str(written(settlement).last_error).endswith("the previous error: OSError: no")


def test_a_job_without_a_count_has_one_attempt() -> None:
    job = Job(id=1, due_time=START, sleep_until=START, attempts=None)
    settlement = failed(job, START)
    assert isinstance(settlement.error, JobFailed)
    assert (written(settlement).due_time, written(settlement).attempts) == (None, None)


def test_a_job_that_is_given_back_is_as_before_its_lock() -> None:
    job = Job(id=1, due_time=START - HOUR, sleep_until=START - MINUTE, attempts=3, last_error="before")
    update = written(given_back(job))
    assert update == JobUpdate(
        due_time=START - HOUR, sleep_until=START - MINUTE, attempts=2, last_error="before", finish_time=None
    )


NAIVE = START.replace(tzinfo=None)


@pytest.mark.parametrize(
    "job",
    [
        Job(id=1, due_time=None, sleep_until=None, attempts=1),
        Job(id=1, due_time=START, sleep_until=START, attempts=1, interval="@never"),
        Job(id=1, due_time=START, sleep_until=START, attempts=1, interval="@every 2562047h", time_zone="Mars/North"),
        Job(id=1, due_time=START, sleep_until=START, attempts=1, flaw="its data cannot be read"),
        Job(id=1, due_time=NAIVE, sleep_until=START, attempts=1),
        Job(id=1, due_time=START, sleep_until=START, attempts=1, interval="@hourly", repeat_until=NAIVE),
        Job(id=1, due_time=START, sleep_until=START, attempts=1, misfire=Misfire.SKIP, misfire_after="1h"),  # type: ignore[arg-type]
    ],
    ids=["finished", "cron", "zone", "flaw", "due without a zone", "repeat_until without a zone", "no duration"],
)
def test_an_unreadable_row_is_paused_before_or_after_its_run(job: Job) -> None:
    settlement = before_run(job, START, POLICY) or run(replace(job, interval=job.interval or "@hourly"), START)
    assert isinstance(settlement.error, InvalidJob)
    assert (written(settlement).sleep_until, written(settlement).due_time) == (None, job.due_time)
