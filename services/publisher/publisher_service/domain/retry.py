"""Retries: the next run of a post whose run has failed or was missed."""

from datetime import datetime, timedelta

from publisher_service.domain.plan import local_month
from publisher_service.domain.post_job import JobState, PostJob, begun_again, moved
from servicekit.faults import InvalidField, Refused

_RETRYABLE = frozenset({JobState.FAILED, JobState.MISSED})
_PATIENCE = timedelta(days=1)
_MOST_PATIENCE = timedelta(days=30)


def retried(
    job: PostJob, *, is_target: bool, not_after: datetime | None, now: datetime, time_zone: str = ""
) -> PostJob:
    """Returns the job in its next run, which is due at once.

    `is_target` tells whether the draft still has the target. `not_after` is the run's latest time, if one is given;
    `time_zone` that of the account, if it is known.
    """
    if job.state not in _RETRYABLE:
        raise Refused(
            "POST_JOB_NOT_RETRYABLE",
            f"only a post job that is FAILED or MISSED can be retried; this one is {job.state}",
            metadata={"post_job_id": job.id, "state": job.state},
        )
    if not is_target:
        raise Refused("TARGET_REMOVED", "the draft has lost this target", metadata={"post_job_id": job.id})
    again = begun_again(job)
    return moved(
        again,
        JobState.READY,
        now=now,
        until=now,
        called_run=again.run,
        publish_now=False,
        over_cap=False,
        schedule_time=now,
        not_after=latest_time(not_after, default=_PATIENCE, now=now),
        target_month=local_month(now, time_zone),
    )


def latest_time(asked: datetime | None, *, default: timedelta, now: datetime) -> datetime:
    """Returns the latest time of a run that a call begins. Raises InvalidField."""
    if asked is None:
        return now + default
    if not now < asked <= now + _MOST_PATIENCE:
        raise InvalidField("not_after", "must be in the future, at most 30 days ahead")
    return asked
