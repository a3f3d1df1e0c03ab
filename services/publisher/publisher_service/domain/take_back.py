"""Take-backs: Queue takes a slot from posts that have not started, or cancels a slot that it has not dispatched."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from publisher_service.domain.doubt import needs_attention
from publisher_service.domain.post_job import (
    ENDED_RUN,
    NOT_STARTED,
    OPEN_ATTEMPT,
    JobState,
    PostJob,
    Reason,
    Target,
    begun_again,
    is_readable,
    job_id,
    moved,
)

_MAY_BE_OUT = OPEN_ATTEMPT | {JobState.NEEDS_ATTENTION, JobState.PUBLISHED}
_NO_TIME: Mapping[str, Any] = {"schedule_time": None, "not_after": None}


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotPost:
    """A post, and the revision of the slot that gives it its time."""

    organization_id: str
    draft_id: str
    target: Target
    slot_id: str
    slot_revision: int
    slot_sequence: int

    @property
    def order(self) -> tuple[int, str, int]:
        """Returns what says which of two slots of a target is newer."""
        return self.slot_sequence, self.slot_id, self.slot_revision

    @property
    def post_job_id(self) -> str:
        return job_id(self.organization_id, self.draft_id, self.target)


class CancelOutcome(StrEnum):
    CANCELED = "CANCELED"
    TOO_LATE = "TOO_LATE"
    ENDED = "ENDED"


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenBack:
    """The outcome of a take-back, with the job; it is the same job if nothing has changed."""

    outcome: CancelOutcome
    job: PostJob


def taken_back(job: PostJob, post: SlotPost, *, now: datetime) -> TakenBack:
    """Returns the job CANCELED in the run of the slot, unless it may be out, has another time, or was called for.

    From then on nothing that names this revision of the slot, or an older one, starts the job. A later revision or a
    newer slot does.
    """
    if job.in_doubt or job.state in _MAY_BE_OUT or _is_called(job) or not is_readable(job):
        return TakenBack(outcome=CancelOutcome.TOO_LATE, job=job)
    asked, known = post.order, _order_of(job)
    if job.state is JobState.CANCELED and known >= asked and job.slot_id == post.slot_id:
        return TakenBack(outcome=CancelOutcome.CANCELED, job=_kept_canceled(job, now))
    if known > asked or (known == asked and job.state in ENDED_RUN):
        return TakenBack(outcome=CancelOutcome.ENDED, job=job)
    # A run that has ended belongs to an older slot, so that of this one ends as it begins.
    canceled = moved(begun_again(job), JobState.CANCELED, now=now, reason=Reason.TAKEN_BACK, **_slot_of(job, post))
    return TakenBack(outcome=CancelOutcome.CANCELED, job=canceled)


def without_slot(job: PostJob, post: SlotPost, *, now: datetime) -> PostJob:
    """Returns the job after its slot was canceled: without a time, unless a newer slot has given it another one.

    The revision is kept, so that older events of the slot, which may come later, give it no time either. A job whose
    command has come, which contradicts the event, is taken back. A run that a call began goes on.
    """
    if job.state not in NOT_STARTED | ENDED_RUN:
        return job
    if _order_of(job) > post.order or _has_ended(job, post):
        return job
    if _is_called(job):
        return replace(job, **_order_in(post))
    slot = _slot_of(job, post)
    if job.in_doubt:
        return needs_attention(replace(job, **slot), "its slot was canceled, but an attempt may have gone out", now=now)
    if job.state in (JobState.CANCELED, JobState.PENDING):
        # In the same version: nothing changes for those who follow the job.
        return replace(job, **slot)
    if job.state in (JobState.READY, JobState.WAITING, JobState.BLOCKED):
        return moved(job, JobState.CANCELED, now=now, reason=Reason.TAKEN_BACK, **slot)
    return moved(begun_again(job), JobState.PENDING, now=now, **{**slot, **_NO_TIME})


def _kept_canceled(job: PostJob, now: datetime) -> PostJob:
    """Returns a canceled job that no draft revives: one without its target could go out again at the slot's time."""
    if job.state_reason == Reason.TAKEN_BACK:
        return job
    return moved(job, JobState.CANCELED, now=now, reason=Reason.TAKEN_BACK)


def _has_ended(job: PostJob, post: SlotPost) -> bool:
    """Returns whether the run of this very slot has failed or was missed: that stays on record."""
    return job.state in (JobState.FAILED, JobState.MISSED) and job.slot_id == post.slot_id


def _is_called(job: PostJob) -> bool:
    """Returns whether a call began the run, which goes out without regard to slots, and it has not ended."""
    return job.is_called and job.state in NOT_STARTED


def _order_in(post: SlotPost) -> dict[str, Any]:
    return {
        "slot_sequence": post.slot_sequence,
        "slot_id": post.slot_id,
        "slot_revision": post.slot_revision,
    }


def _slot_of(job: PostJob, post: SlotPost) -> dict[str, Any]:
    """Returns the slot as fields of the job; its times are those of another revision, unless it knows this one."""
    slot = _order_in(post)
    return slot if _order_of(job) == post.order else {**slot, **_NO_TIME}


def _order_of(job: PostJob) -> tuple[int, str, int]:
    return job.slot_sequence, job.slot_id, job.slot_revision
