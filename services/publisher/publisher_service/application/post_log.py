"""Logs a line for each outcome of a post: what happened, to which post, how late."""

import logging
from collections.abc import Iterable, Mapping

from publisher_service.domain.post_job import JobState, PostJob

_log = logging.getLogger(__name__)

# Success is for DEBUG: under load these lines would be most of the log.
_LEVELS: Mapping[str, int] = {
    JobState.PUBLISHED: logging.DEBUG,
    JobState.WAITING: logging.INFO,
    JobState.CANCELED: logging.INFO,
    JobState.BLOCKED: logging.WARNING,
    JobState.UNKNOWN: logging.WARNING,
    JobState.MISSED: logging.WARNING,
    JobState.FAILED: logging.WARNING,
    JobState.NEEDS_ATTENTION: logging.ERROR,
}


def set_level(level: str | None) -> None:
    """Gives these lines a level of their own; None leaves them at the level of the process."""
    if level is not None:
        _log.setLevel(level)


def write_outcomes(jobs: Iterable[PostJob]) -> None:
    """Logs each job that has come to an outcome. To be called after the commit."""
    for job in jobs:
        level = _LEVELS.get(job.state)
        if level is not None and _log.isEnabledFor(level):
            _log.log(level, "post %s", job.state.lower(), extra=_fields(job))


def _fields(job: PostJob) -> dict[str, object]:
    fields: dict[str, object] = {
        "organization_id": job.organization_id,
        "post_job_id": job.id,
        "draft_id": job.draft_id,
        "social_account_id": job.target.social_account_id,
        "channel": job.target.channel,
        "run": job.run,
        "attempt": job.attempts,
    }
    if job.part:
        fields["part"] = job.part
    if reason := job.state_reason or job.error_reason:
        fields["reason"] = str(reason)
    if job.error_message:
        fields["error"] = job.error_message
    if job.external_url:
        fields["url"] = job.external_url
    if job.schedule_time is not None:
        # A post that a look has found went out earlier.
        when = job.publish_time or job.update_time
        fields["lateness"] = round((when - job.schedule_time).total_seconds(), 3)
    if job.traceparent.count("-") == 3:
        fields["trace_id"] = job.traceparent.split("-")[1]
    return fields
