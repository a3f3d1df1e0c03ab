"""Retries: the next run of a post whose run has failed or was missed."""

from datetime import datetime, timedelta
from typing import Any

from publisher_service.domain.follow_up import Parent, called
from publisher_service.domain.plan import local_month
from publisher_service.domain.post_job import JobState, PostJob, begun_again, moved
from servicekit.faults import InvalidField, Refused

_RETRYABLE = frozenset({JobState.FAILED, JobState.MISSED})
_PATIENCE = timedelta(days=1)
_MOST_PATIENCE = timedelta(days=30)


def is_never_due(job: PostJob) -> bool:
    """Returns whether this is a follow-up that has ended without anything that it could follow."""
    return job.part > 0 and not job.follows and job.state in _RETRYABLE


def retried(
    job: PostJob,
    *,
    is_target: bool,
    parent: Parent | None = None,
    not_after: datetime | None,
    now: datetime,
    time_zone: str = "",
) -> PostJob:
    """Returns the job in its next run, which is due at once.

    `is_target` tells whether the draft still has the target, `parent` what a follow-up follows that was never due.
    `not_after` is the run's latest time, if one is given; `time_zone` that of the account, if it is known.
    """
    if job.state not in _RETRYABLE:
        raise Refused(
            "POST_JOB_NOT_RETRYABLE",
            f"only a post job that is FAILED or MISSED can be retried; this one is {job.state}",
            metadata={"post_job_id": job.id, "state": job.state},
        )
    if not is_target:
        raise Refused("TARGET_REMOVED", "the draft has lost this target", metadata={"post_job_id": job.id})
    if parent is not None and parent.reason is not None:
        raise Refused(parent.reason, parent.words, metadata={"post_job_id": job.id})
    again = begun_again(job)
    run: dict[str, Any] = {"called_run": again.run, "publish_now": False, "over_cap": False}
    return moved(
        again,
        JobState.READY,
        now=now,
        until=now,
        follows=parent.name if parent else job.follows,
        schedule_time=now,
        not_after=latest_time(not_after, default=_PATIENCE, now=now),
        target_month=local_month(now, time_zone),
        **(called(again.target, again.run) if again.part else run),
    )


def latest_time(asked: datetime | None, *, default: timedelta, now: datetime) -> datetime:
    """Returns the latest time of a run that a call begins. Raises InvalidField."""
    if asked is None:
        return now + default
    if not now < asked <= now + _MOST_PATIENCE:
        raise InvalidField("not_after", "must be in the future, at most 30 days ahead")
    return asked
