"""Computes the row of a new job, and of a job after an edit: pure functions for stores."""

from dataclasses import dataclass, replace
from datetime import datetime

from jobkit.changes import CALENDAR, DEFINITION, UNSET, JobEdit, NewJob
from jobkit.job import Job, Misfire
from jobkit.occurrences import first_due, require_calendar


@dataclass(frozen=True, slots=True, kw_only=True)
class Edited:
    job: Job
    """The row after the edit. Its fence has increased if a current run may no longer write to it."""
    is_finished: bool
    """Whether the edit left the job without an occurrence to come."""


def first_run_time(new: NewJob, now: datetime) -> datetime:
    """Returns when a new job is due. Raises ValueError for a job that would never run or that no worker could read."""
    _check(new)
    if new.due_time is not None:
        due: datetime | None = new.due_time
    elif new.interval:
        due = first_due(new.interval, new.time_zone, new.dst, after=now)
    else:
        due = now
    if due is None:
        raise ValueError(f"{new.interval!r} never fires")
    if new.interval and new.repeat_until is not None and due > new.repeat_until:
        raise ValueError(f"the first occurrence, {due.isoformat()}, is after repeat_until")
    return due


def apply_edit(job: Job, edit: JobEdit, now: datetime) -> Edited:
    """Returns the row after the edit. Raises ValueError for values that no worker could read.

    A new schedule leaves the times of a job in progress alone: its run goes on, and settles by the new definition. All
    other changes of times increase the fence, which takes the job away from a current run.
    """
    new = replace(job, **edit.given)
    if any(name in DEFINITION for name in edit.given):
        _check(new)
    due = job.due_time or job.sleep_until
    was_paused = due is not None and job.sleep_until is None
    is_paused = was_paused if edit.paused is UNSET else edit.paused
    if edit.due_time is not UNSET and edit.due_time != due:
        due, new = _aware(edit.due_time, "due_time"), _unbegun(new)
    elif _is_rescheduled(job, new, due) and not is_in_progress(job, now):
        due, new = _first_due(new, now), _unbegun(new)
    elif due is None or is_paused == was_paused:
        return Edited(job=_fenced(new) if edit.end_run else new, is_finished=False)
    moved = _fenced(replace(new, due_time=due, sleep_until=None if is_paused else due))
    return Edited(job=moved, is_finished=due is None)


def is_in_progress(job: Job, now: datetime) -> bool:
    """Returns whether the job runs or waits for its next attempt."""
    due = job.due_time or job.sleep_until
    has_begun = job.attempts != 0  # 0: a late occurrence waits for its pace; None, not counted, may be either
    return has_begun and due is not None and job.sleep_until is not None and due <= now < job.sleep_until


def with_definition_of(fresh: Job, job: Job) -> Job:
    """Returns a running job with the definition that its row has now."""
    definition = {name: getattr(fresh, name) for name in (*DEFINITION, "definition")}
    is_rescheduled = job.is_rescheduled or _has_other_calendar(job, fresh)
    return replace(job, **definition, is_rescheduled=is_rescheduled)


def edit_to_match(new: NewJob) -> JobEdit:
    """Returns the edit that makes an existing job match the new one.

    Without a due time an unchanged schedule keeps its next occurrence.
    """
    parts = {name: getattr(new, name) for name in DEFINITION}
    return JobEdit(**parts, data=new.data, due_time=UNSET if new.due_time is None else new.due_time)


def _is_rescheduled(job: Job, new: Job, due: datetime | None) -> bool:
    """Returns whether the next occurrence must be computed again.

    Another `repeat_until` moves it only if the old or the new one leaves no occurrence.
    """
    if not new.interval:
        return False
    is_over = due is None or (new.repeat_until is not None and due > new.repeat_until)
    ends_elsewhere = job.repeat_until != new.repeat_until and is_over
    return ends_elsewhere or _has_other_calendar(job, new)


def _has_other_calendar(job: Job, new: Job) -> bool:
    return any(getattr(job, name) != getattr(new, name) for name in CALENDAR)


def _first_due(job: Job, now: datetime) -> datetime | None:
    due = first_due(job.interval, job.time_zone, job.dst, after=now)
    if due is None:
        raise ValueError(f"{job.interval!r} never fires")
    return None if job.repeat_until is not None and due > job.repeat_until else due


def _unbegun(job: Job) -> Job:
    return replace(job, attempts=None if job.attempts is None else 0)


def _fenced(job: Job) -> Job:
    return replace(job, fence=job.fence + 1)


def _check(job: Job | NewJob) -> None:
    if job.interval:
        require_calendar(job.interval, job.time_zone, job.dst)
    Misfire(job.misfire)
    for name in ("due_time", "repeat_until"):
        instant: datetime | None = getattr(job, name)
        if instant is not None:
            _aware(instant, name)


def _aware(instant: datetime, name: str) -> datetime:
    if instant.tzinfo is None:
        raise ValueError(f"{name} has no time zone: {instant}")
    return instant
