"""What the other contexts say about a draft's targets, and what that makes of the post jobs."""

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from civil.days import local_day
from civil.zones import UnknownZone, find_zone
from publisher_service.domain.doubt import ended_unsent
from publisher_service.domain.post_job import (
    ENDED_RUN,
    NOT_STARTED,
    JobState,
    PostJob,
    Reason,
    Target,
    begun_again,
    job_id,
    moved,
    newer_slot,
)

_NO_SIGN_OF_LIFE = ENDED_RUN | {JobState.PENDING, JobState.NEEDS_ATTENTION}
_RELEASED_BY_CONTENT = frozenset({Reason.NOT_APPROVED, Reason.WITHDRAWN})


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
    sequence: int
    revision: int
    draft_id: str
    targets: tuple[Target, ...]
    schedule_time: datetime
    not_after: datetime | None
    target_month: str
    traceparent: str
    # The newest revision of the draft that Queue knew; 0: not told.
    content_revision: int = 0


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


def after_save(job: PostJob, draft: SavedDraft, *, live_slots: Set[str], now: datetime) -> PostJob:
    """The job after its draft was saved.

    A target that the draft no longer has is canceled, if it has not started; one that the draft does not have yet is
    left alone; one that comes back is revived; content that may go releases a wait. `live_slots` are slots from which
    other targets of the draft go out, or are out.
    """
    if job.target not in draft.targets:
        is_over = job.state in NOT_STARTED and draft.revision >= job.wanted_revision
        return canceled(job, now=now) if is_over else job
    if job.state is JobState.CANCELED and job.state_reason is Reason.TARGET_REMOVED:
        return _revived(job, live_slots, now)
    if job.state is JobState.WAITING and job.state_reason is Reason.CONTENT_PENDING:
        # The claim says what is in the way, if anything still is.
        return released(job, now=now) if draft.revision >= job.wanted_revision else job
    waits = job.state is JobState.BLOCKED and job.state_reason in _RELEASED_BY_CONTENT
    if waits and draft.approved and draft.revision >= job.withdrawn_below:
        return released(job, now=now)
    return job


def after_slot(job: PostJob, slot: Slot, *, is_target: bool = True, now: datetime) -> PostJob:
    """The job takes the newest slot; an ended run is followed by the next one. An open try keeps what it has.

    Without `is_target`, because the draft has lost the target since, the run ends as it begins.
    """
    is_newer = newer_slot(job, slot.sequence, slot.slot_id, slot.revision)
    if not is_newer or job.state not in NOT_STARTED | ENDED_RUN:
        return job
    taken: dict[str, Any] = {
        "slot_sequence": slot.sequence,
        "slot_id": slot.slot_id,
        "slot_revision": slot.revision,
        "schedule_time": slot.schedule_time,
        "not_after": slot.not_after,
        "target_month": slot.target_month,
        "traceparent": slot.traceparent,
        "wanted_revision": max(job.wanted_revision, slot.content_revision),
    }
    if not is_target:
        return canceled(replace(begun_again(job), **taken), now=now)
    return moved(begun_again(job), JobState.SCHEDULED, now=now, **taken)


def released(job: PostJob, *, now: datetime) -> PostJob:
    return moved(job, JobState.READY, now=now, until=now)


def canceled(job: PostJob, *, now: datetime) -> PostJob:
    return ended_unsent(job, JobState.CANCELED, now=now, reason=Reason.TARGET_REMOVED)


def slots_of_others(jobs: Iterable[PostJob]) -> frozenset[str]:
    """The slots that live as far as is known here: another target of the draft still goes out with them.

    Or it is out. Nobody changes such a draft, so a target that comes back did so before. A job that failed, or that
    came back without a time, says nothing of the slot.
    """
    return frozenset(job.slot_id for job in jobs if job.slot_id and job.state not in _NO_SIGN_OF_LIFE)


def _revived(job: PostJob, live_slots: Set[str], now: datetime) -> PostJob:
    """The next run of a target that came back.

    While another target keeps the slot alive it goes out at the slot's time by itself: Queue may have settled the slot.
    A slot that lost its last target is canceled by Queue. If it is not, a command comes; else there is no time.
    """
    again = begun_again(job)
    due, not_after = job.schedule_time, job.not_after
    if job.slot_id in live_slots and due is not None and not_after is not None and not_after > now:
        return moved(again, JobState.READY, now=now, until=max(due, now))
    return moved(again, JobState.PENDING, now=now, schedule_time=None, not_after=None)


def local_month(time: datetime, zone: str) -> str:
    """Returns the first day of the local month; of the UTC month when the slot names no zone that is known here."""
    try:
        day = local_day(time, find_zone(zone)) if zone else time.date()
    except UnknownZone:
        day = time.date()
    return day.replace(day=1).isoformat()
