"""Waits of jobs: the stream holds the command of a short one, the sweep finds a long one in the database."""

from datetime import datetime, timedelta

from publisher_service.domain.post_job import JobState, PostJob

# Redelivery is cheap for short waits; for longer ones a message would only occupy a place of the stream.
_LONGEST_BY_STREAM = timedelta(minutes=2)


def carried_by_stream(job: PostJob, now: datetime) -> timedelta | None:
    """Returns how long the stream holds the job's command; None when it need not bring the job back."""
    return wait_of_stream(job.next_action_time, now) if job.state is JobState.WAITING else None


def wait_of_stream(until: datetime | None, now: datetime) -> timedelta | None:
    """Returns how long the stream holds the command of a job that waits until then; None when the sweep takes over."""
    if until is None or until - now > _LONGEST_BY_STREAM:
        return None
    return until - now
