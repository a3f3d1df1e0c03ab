"""Drafts and slots as other services announce them, and how post jobs follow them."""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
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
    renewed,
)

_NO_SIGN_OF_LIFE = ENDED_RUN | {JobState.PENDING, JobState.NEEDS_ATTENTION}
_RELEASED_BY_CONTENT = frozenset({Reason.NOT_APPROVED, Reason.WITHDRAWN})
_FOLLOWING = frozenset(JobState) - {JobState.SENDING, JobState.PUBLISHED}
# A hold of the brand or campaign; if the draft has another one now, it may cover the post no longer.
_RELEASED_BY_IDS = frozenset({Reason.BRAND_ON_HOLD, Reason.CAMPAIGN_ON_HOLD})


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
    # Empty if it has none.
    brand_id: str = ""
    campaign_id: str = ""
    # The number of follow-ups by channel; a channel without any is missing.
    follow_ups: Mapping[str, int] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, str]:
        return self.organization_id, self.draft_id

    @property
    def parts(self) -> list[tuple[Target, int]]:
        """Returns every post with its follow-ups, each by its target and its number, 0 for the post."""
        return [(target, part) for target in self.targets for part in range(self.follow_ups.get(target.channel, 0) + 1)]

    @property
    def post_job_ids(self) -> list[str]:
        return [job_id(self.organization_id, self.draft_id, target, part) for target, part in self.parts]

    def has(self, job: PostJob) -> bool:
        return job.target in self.targets and job.part <= self.follow_ups.get(job.target.channel, 0)

    def parts_behind(self, target: Target, part: int) -> int:
        """Returns how many follow-ups come after this part."""
        return self.follow_ups.get(target.channel, 0) - part


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
    # The newest revision of the draft that Queue knew; 0 if the event does not say.
    content_revision: int = 0


def new_job(
    organization_id: str,
    draft_id: str,
    target: Target,
    *,
    below: int,
    brand_id: str = "",
    campaign_id: str = "",
    part: int = 0,
    parts: int = 0,
    now: datetime,
) -> PostJob:
    """Returns a PENDING job; `below` is the lowest revision that is not withdrawn."""
    return PostJob(
        organization_id=organization_id,
        id=job_id(organization_id, draft_id, target, part),
        draft_id=draft_id,
        target=target,
        part=part,
        parts=parts,
        state=JobState.PENDING,
        withdrawn_below=below,
        brand_id=brand_id,
        campaign_id=campaign_id,
        create_time=now,
        update_time=now,
    )


def missing_parts(draft: SavedDraft, jobs: Sequence[PostJob]) -> list[tuple[Target, int]]:
    """Returns the posts and follow-ups of the draft that have no job."""
    known = {(job.target, job.part) for job in jobs}
    return [each for each in draft.parts if each not in known]


def after_save(job: PostJob, draft: SavedDraft, *, live_slots: Set[str], now: datetime) -> PostJob:
    """Returns the job after its draft was saved.

    It follows the draft's brand and campaign, and the number of follow-ups, unless it is being sent or is out. A target
    or follow-up that the draft has lost is canceled unless it has started; one of a revision still to come is left
    alone; one that the draft has regained is revived; approved content releases a wait. `live_slots` are slots from
    which other targets of the draft go out or are out.
    """
    if (job.brand_id, job.campaign_id) != (draft.brand_id, draft.campaign_id) and job.state in _FOLLOWING:
        is_held = job.state is JobState.BLOCKED and job.state_reason in _RELEASED_BY_IDS
        ids: dict[str, Any] = {"brand_id": draft.brand_id, "campaign_id": draft.campaign_id}
        job = replace(released(job, now=now) if is_held else _changed(job, now), **ids)
    if not draft.has(job):
        is_over = job.state in NOT_STARTED and draft.revision >= job.wanted_revision
        return canceled(job, now=now) if is_over else job
    if (parts := draft.parts_behind(job.target, job.part)) != job.parts and job.state in _FOLLOWING:
        job = replace(_changed(job, now), parts=parts)
    if job.state is JobState.CANCELED and job.state_reason is Reason.TARGET_REMOVED:
        return _revived(job, live_slots, now)
    if job.state is JobState.WAITING and job.state_reason is Reason.CONTENT_PENDING:
        # If something else forbids the send, the claim finds it.
        return released(job, now=now) if draft.revision >= job.wanted_revision else job
    waits = job.state is JobState.BLOCKED and job.state_reason in _RELEASED_BY_CONTENT
    if waits and draft.approved and draft.revision >= job.withdrawn_below:
        return released(job, now=now)
    return job


def _changed(job: PostJob, now: datetime) -> PostJob:
    return replace(job, version=job.version + 1, update_time=now)


def after_slot(job: PostJob, slot: Slot, *, is_target: bool = True, now: datetime) -> PostJob:
    """Returns the job with the newest slot, in its next run if its run has ended. An open attempt keeps its slot.

    A run that a call began keeps its time, too, and the slot is noted: its outcome will be that of the slot. Without
    `is_target`, because the draft has lost the target since, the run is canceled as it begins.
    """
    is_newer = newer_slot(job, slot.sequence, slot.slot_id, slot.revision)
    if not is_newer or job.state not in NOT_STARTED | ENDED_RUN:
        return job
    # After a restore the number of a slot may be unknown: the run that it has had is over all the same.
    if job.state in ENDED_RUN and (slot.slot_id, slot.revision) == (job.slot_id, job.slot_revision):
        return job
    noted: dict[str, Any] = {
        "slot_sequence": slot.sequence,
        "slot_id": slot.slot_id,
        "slot_revision": slot.revision,
        "wanted_revision": max(job.wanted_revision, slot.content_revision),
    }
    if not is_target:
        return canceled(replace(begun_again(job), **noted, **_times_of(slot)), now=now)
    if job.is_called and job.state in NOT_STARTED:
        return renewed(job, now=now, **noted)
    return moved(begun_again(job), JobState.SCHEDULED, now=now, **noted, **_times_of(slot))


def _times_of(slot: Slot) -> dict[str, Any]:
    return {
        "schedule_time": slot.schedule_time,
        "not_after": slot.not_after,
        "target_month": slot.target_month,
        "traceparent": slot.traceparent,
    }


def released(job: PostJob, *, now: datetime) -> PostJob:
    return moved(job, JobState.READY, now=now, until=now)


def canceled(job: PostJob, *, now: datetime) -> PostJob:
    return ended_unsent(job, JobState.CANCELED, now=now, reason=Reason.TARGET_REMOVED)


def slots_of_others(jobs: Iterable[PostJob]) -> frozenset[str]:
    """Returns the slots from which a target of the draft still goes out, or has gone out.

    A draft with a target that is out can no longer be changed, so a target was regained before that. A job that failed,
    or was revived without a time, does not show that its slot is alive.
    """
    return frozenset(job.slot_id for job in jobs if job.slot_id and job.state not in _NO_SIGN_OF_LIFE)


def _revived(job: PostJob, live_slots: Set[str], now: datetime) -> PostJob:
    """Returns the next run of a target that the draft has regained.

    While another target keeps the slot alive, the job goes out at the slot's time without a command: Queue may have
    settled the slot. Queue cancels a slot that loses its last target. If it does not, a command comes; otherwise the
    job has no time.
    """
    again = begun_again(job)
    due, not_after = job.schedule_time, job.not_after
    if job.slot_id in live_slots and due is not None and not_after is not None and not_after > now:
        return moved(again, JobState.READY, now=now, until=max(due, now))
    return moved(again, JobState.PENDING, now=now, schedule_time=None, not_after=None, follows="")


@lru_cache(maxsize=1024)  # many posts share a minute and a zone
def local_month(time: datetime, zone: str) -> str:
    """Returns the first day of the local month.

    It is that of the UTC month if the slot names no zone that is known here, or the local date lies outside the years 1
    to 9999.
    """
    try:
        day = local_day(time, find_zone(zone)) if zone else time.date()
    except (UnknownZone, OverflowError):
        day = time.date()
    return day.replace(day=1).isoformat()
