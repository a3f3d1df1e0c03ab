"""Resolutions: a person says whether a post is out whose outcome nothing has proven."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from publisher_service.domain.post_job import JobState, PostJob, moved
from publisher_service.domain.settlement import AttemptState, Settlement
from servicekit.faults import InvalidField, Refused

NOT_PUBLISHED = "RESOLVED_NOT_PUBLISHED"
_RESOLVABLE = frozenset({JobState.UNKNOWN, JobState.NEEDS_ATTENTION})
_SKEW = timedelta(minutes=1)


class Said(StrEnum):
    PUBLISHED = "PUBLISHED"
    NOT_PUBLISHED = "NOT_PUBLISHED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    outcome: Said
    external_id: str
    external_url: str
    publish_time: datetime | None
    resolver: str
    note: str


def resolved(job: PostJob, said: Resolution, *, now: datetime) -> Settlement:
    """Returns the job as the person says; its doubtful attempt ends too."""
    if job.state not in _RESOLVABLE:
        raise Refused(
            "POST_JOB_NOT_RESOLVABLE",
            f"only a post job that is UNKNOWN or NEEDS_ATTENTION can be resolved; this one is {job.state}",
            metadata={"post_job_id": job.id, "state": job.state},
        )
    if said.outcome is Said.PUBLISHED:
        return Settlement(job=_published(job, said, now), attempt_state=AttemptState.ACCEPTED)
    message = f"{said.resolver} said that it is not out" + (f": {said.note}" if said.note else "")
    failed = moved(job, JobState.FAILED, now=now, in_doubt=False, error_reason=NOT_PUBLISHED, error_message=message)
    return Settlement(job=failed, attempt_state=AttemptState.ABSENT, error_reason=NOT_PUBLISHED, error_message=message)


def _published(job: PostJob, said: Resolution, now: datetime) -> PostJob:
    if said.publish_time is not None and said.publish_time > now + _SKEW:
        raise InvalidField("publish_time", "must not be in the future")
    return moved(
        job,
        JobState.PUBLISHED,
        now=now,
        in_doubt=False,
        publish_time=said.publish_time or job.last_attempt_time or now,
        external_id=said.external_id,
        external_url=said.external_url,
        evidence_kind="PERSON",
        error_reason="",
        error_message="",
    )
