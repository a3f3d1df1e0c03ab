"""Decides how a lock ends, from the row, the outcome of the run and the time: pure functions."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from civil.zones import EARLIEST, LATEST
from jobkit.errors import AttemptFailed, InvalidJob, JobError, JobFailed, OccurrenceSkipped, WorkerLost
from jobkit.guards import describe
from jobkit.job import Done, Failed, Job, JobUpdate, Misfire, Outcome
from jobkit.occurrences import Calendar, calendar_of, occurrence_time
from jobkit.retry import RetryPolicy

_LONGEST_ERROR = 1000  # characters
_UNREADABLE = (ValueError, OverflowError, TypeError)
"""The errors that a row raises whose values have the wrong type or cannot be parsed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The scheduler's settings; a job's own `misfire_after` and `pace` override them."""

    retry: RetryPolicy
    reprocess_delay: timedelta
    misfire_after: timedelta
    pace: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """The values that are written when a lock ends, and the error that is reported."""

    job: Job
    update: JobUpdate | None
    """None: the job is deleted."""
    error: JobError | None = None


def before_run(job: Job, now: datetime, policy: Policy) -> Settlement | None:
    """Returns None if the locked job is to be run, or else how it is settled without a run."""
    try:
        return _before_run(job, now, policy)
    except _UNREADABLE as error:
        return _paused(job, error)


def after_run(
    job: Job,
    outcome: Outcome,
    *,
    begun: datetime,
    now: datetime,
    policy: Policy,
    draw: float,
    not_before: datetime | None = None,
) -> Settlement:
    """Returns how the job is settled after a run that began at `begun`.

    `draw`, from [0, 1), is the jitter of a back-off. A failed job is not run again before `not_before`.
    """
    try:
        if isinstance(outcome, Done):
            return Settlement(job=job, update=_next_occurrence(job, begun, now, policy, last_error=None))
        settlement = _after_failure(job, outcome, begun=begun, now=now, policy=policy, draw=draw)
        return settlement if not_before is None else _postponed(settlement, not_before)
    except _UNREADABLE as error:
        return _paused(job, error)


def given_back(job: Job) -> Settlement:
    """Returns the job to its state before the lock, so that another worker need not wait for the end of the lock."""
    return Settlement(job=job, update=_unchanged(job, job.sleep_until, job.last_error))


def _before_run(job: Job, now: datetime, policy: Policy) -> Settlement | None:
    if job.flaw is not None:
        raise ValueError(job.flaw)
    due, misfire = occurrence_time(job), Misfire(job.misfire)
    recurring = calendar_of(job) is not None
    if recurring and job.repeat_until is not None and due > job.repeat_until:
        return _dropped(job, due, now)
    if job.attempts is not None and job.attempts > policy.retry.max_attempts:
        lost = WorkerLost(_lost_attempts(job, job.attempts - 1, policy))
        return _after_failure(job, Failed(error=lost, retry=False), begun=now, now=now, policy=policy, draw=0)
    # A second attempt is late because of the first: the occurrence itself was in time.
    first_attempt = job.attempts is None or job.attempts == 1
    if misfire is Misfire.SKIP and first_attempt and now - due > _misfire_after(job, policy):
        return _skipped(job, due, now, policy)
    return None


def _lost_attempts(job: Job, begun_before: int, policy: Policy) -> str:
    begun = f"attempt {begun_before} of at most {policy.retry.max_attempts} was begun and did not end"
    return begun if job.last_error is None else f"{begun}; the previous error: {job.last_error}"


def _dropped(job: Job, due: datetime, now: datetime) -> Settlement:
    dropped = OccurrenceSkipped(job, f"the occurrence of {due.isoformat()} is after repeat_until, {job.repeat_until}")
    # Kept even with auto_remove, because it did not end with a run.
    return Settlement(job=job, update=_finished(job, now, _text(dropped)), error=dropped)


def _skipped(job: Job, due: datetime, now: datetime, policy: Policy) -> Settlement:
    skipped = OccurrenceSkipped(job, f"the occurrence of {due.isoformat()} is skipped, {now - due} late")
    # reprocess_delay counts from the end of a run, and there was none.
    at_once = replace(policy, reprocess_delay=timedelta(0))
    following = _next_occurrence(job, now, now, at_once, job.last_error)
    if following is None or following.due_time is None:
        # Kept even with auto_remove, because it did not end with a run.
        following = _finished(job, now, _text(skipped))
    return Settlement(job=job, update=following, error=skipped)


def _after_failure(
    job: Job, outcome: Failed, *, begun: datetime, now: datetime, policy: Policy, draw: float
) -> Settlement:
    reason = _text(outcome.error)
    if outcome.retry and job.attempts is not None and job.attempts < policy.retry.max_attempts:
        delay = policy.retry.delay(job.attempts, draw) if outcome.after is None else outcome.after
        again = _later(now, delay)
        update = JobUpdate(due_time=job.due_time, sleep_until=again, attempts=job.attempts, last_error=reason)
        return Settlement(job=job, update=update, error=AttemptFailed(job, outcome.error, again))
    following = _next_occurrence(job, begun, now, policy, last_error=reason)
    # A job that failed for good is never removed: somebody has to see it.
    update = following or _finished(job, now, reason)
    return Settlement(job=job, update=update, error=JobFailed(job, outcome.error))


def _postponed(settlement: Settlement, not_before: datetime) -> Settlement:
    update = settlement.update
    if update is None or update.sleep_until is None:
        return settlement
    return replace(settlement, update=replace(update, sleep_until=max(update.sleep_until, not_before)))


def _next_occurrence(
    job: Job, begun: datetime, now: datetime, policy: Policy, last_error: str | None
) -> JobUpdate | None:
    calendar = calendar_of(job)
    due = None if calendar is None else _next_due(job, calendar, begun, now, policy)
    if due is None or (job.repeat_until is not None and due > job.repeat_until):
        return _end(job, now, last_error)
    sleep_until = due if not policy.reprocess_delay else max(due, _later(now, policy.reprocess_delay))
    if Misfire(job.misfire) is Misfire.FIRE_ALL and due <= now:
        sleep_until = max(sleep_until, _later(begun, policy.pace if job.pace is None else job.pace))
    return JobUpdate(due_time=due, sleep_until=sleep_until, attempts=_count(job, 0), last_error=last_error)


def _next_due(job: Job, calendar: Calendar, begun: datetime, now: datetime, policy: Policy) -> datetime | None:
    due, after = occurrence_time(job), _handled_until(job, begun, now, policy)
    every = calendar.cron.every
    # `@every` keeps its step, however late this run was.
    start = after if every is None else due + (after - due) // every * every
    return next((firing.instant for firing in calendar.firings(start) if firing.instant > after), None)


def _handled_until(job: Job, begun: datetime, now: datetime, policy: Policy) -> datetime:
    """Returns the instant up to which every occurrence has run or been skipped."""
    due = max(occurrence_time(job), begun) if job.is_rescheduled else occurrence_time(job)
    match Misfire(job.misfire):
        case Misfire.FIRE_ONCE:
            return max(due, begun)
        case Misfire.SKIP:
            return max(due, _earlier(now, _misfire_after(job, policy)) - datetime.resolution)
        case Misfire.FIRE_ALL:
            return due


def _end(job: Job, now: datetime, last_error: str | None) -> JobUpdate | None:
    return None if job.auto_remove else _finished(job, now, last_error)


def _finished(job: Job, now: datetime, last_error: str | None) -> JobUpdate:
    return JobUpdate(due_time=None, sleep_until=None, attempts=_count(job, 0), last_error=last_error, finish_time=now)


def _paused(job: Job, error: Exception) -> Settlement:
    update = _unchanged(job, None, _text(error))
    return Settlement(job=job, update=update, error=InvalidJob(job, f"the row cannot be read: {error}"))


def _unchanged(job: Job, sleep_until: datetime | None, last_error: str | None) -> JobUpdate:
    begun_before = None if job.attempts is None else job.attempts - 1
    return JobUpdate(due_time=job.due_time, sleep_until=sleep_until, attempts=begun_before, last_error=last_error)


def _count(job: Job, attempts: int) -> int | None:
    return None if job.attempts is None else attempts


def _later(moment: datetime, delay: timedelta) -> datetime:
    """Adds a delay of any length, within the limits of the calendar."""
    return moment + min(max(delay, EARLIEST - moment), LATEST - moment)


def _earlier(moment: datetime, delay: timedelta) -> datetime:
    return moment - min(max(delay, moment - LATEST), moment - EARLIEST)


def _misfire_after(job: Job, policy: Policy) -> timedelta:
    return policy.misfire_after if job.misfire_after is None else job.misfire_after


def _text(error: Exception) -> str:
    """Returns what a text column can store: no zero byte, no lone surrogate."""
    text = describe(error)[:_LONGEST_ERROR].replace("\0", "\\0")
    return text.encode(errors="backslashreplace").decode()
