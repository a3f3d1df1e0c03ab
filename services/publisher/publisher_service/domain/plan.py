"""What the other contexts say about a draft's targets, and what that makes of the post jobs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from publisher_service.domain.post_job import (
    ENDED_RUN,
    NOT_STARTED,
    JobState,
    PostJob,
    Reason,
    Target,
    job_id,
    moved,
    newer_slot,
)

_RELEASED_BY_CONTENT = frozenset({Reason.NOT_APPROVED, Reason.WITHDRAWN, Reason.CONTENT_PENDING})


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedDraft:
    organization_id: str
    draft_id: str
    version: int
    revision: int
    content: bytes
    content_digest: str
    approved: bool
    targets: tuple[Target, ...]

    @property
    def post_job_ids(self) -> list[str]:
        return [job_id(self.organization_id, self.draft_id, target) for target in self.targets]


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    organization_id: str
    slot_id: str
    revision: int
    draft_id: str
    targets: tuple[Target, ...]
    schedule_time: datetime
    target_month: str
    traceparent: str


def new_job(organization_id: str, draft_id: str, target: Target, *, below: int, now: datetime) -> PostJob:
    return PostJob(
        organization_id=organization_id,
        id=job_id(organization_id, draft_id, target),
        draft_id=draft_id,
        target=target,
        state=JobState.PENDING,
        withdrawn_below=below,
        create_time=now,
        update_time=now,
    )


def missing_targets(targets: Sequence[Target], jobs: Sequence[PostJob]) -> list[Target]:
    known = {job.target for job in jobs}
    return [target for target in targets if target not in known]


def after_save(job: PostJob, draft: SavedDraft, *, now: datetime) -> PostJob:
    """A target that the draft no longer has is canceled, if it has not started; content that may go releases a wait."""
    if job.target not in draft.targets:
        return canceled(job, now=now) if job.state in NOT_STARTED else job
    waits = job.state in (JobState.BLOCKED, JobState.WAITING) and job.state_reason in _RELEASED_BY_CONTENT
    if waits and draft.approved and draft.revision >= job.withdrawn_below:
        return released(job, now=now)
    return job


def after_slot(job: PostJob, slot: Slot, *, now: datetime) -> PostJob:
    """The job takes the newest slot; an ended run is followed by the next one. An open try keeps what it has."""
    if not newer_slot(job, slot.slot_id, slot.revision) or job.state not in NOT_STARTED | ENDED_RUN:
        return job
    new_run = job.state in ENDED_RUN
    return replace(
        moved(job, JobState.SCHEDULED, now=now),
        run=job.run + 1 if new_run else job.run,
        attempts=0 if new_run else job.attempts,
        error_reason="" if new_run else job.error_reason,
        error_message="" if new_run else job.error_message,
        slot_id=slot.slot_id,
        slot_revision=slot.revision,
        schedule_time=slot.schedule_time,
        not_after=None,
        target_month=slot.target_month,
        traceparent=slot.traceparent,
    )


def released(job: PostJob, *, now: datetime) -> PostJob:
    return moved(job, JobState.READY, now=now, until=now)


def canceled(job: PostJob, *, now: datetime) -> PostJob:
    return moved(job, JobState.CANCELED, now=now)
