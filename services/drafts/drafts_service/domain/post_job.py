"""Publisher's post jobs as Drafts reflects them: the newest event of each job, and the draft's state folded from them.

Nothing here depends on the order in which events arrive, on duplicates, or on a lost event, provided that a newer one
of the same job has arrived.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from typing import TypeVar

from drafts_service.domain.target import Target
from servicekit.record import record
from servicekit.versions import newest


class JobState(StrEnum):
    """States of a post job, with the names and meanings of PostJobState in the proto."""

    PENDING = "PENDING"
    SCHEDULED = "SCHEDULED"
    READY = "READY"
    SENDING = "SENDING"
    WAITING = "WAITING"
    BLOCKED = "BLOCKED"
    UNKNOWN = "UNKNOWN"
    PUBLISHED = "PUBLISHED"
    FAILED = "FAILED"
    MISSED = "MISSED"
    CANCELED = "CANCELED"
    NEEDS_ATTENTION = "NEEDS_ATTENTION"


class DraftState(StrEnum):
    DRAFT = "DRAFT"
    SCHEDULED = "SCHEDULED"
    PUBLISHING = "PUBLISHING"
    PUBLISHED = "PUBLISHED"
    PARTIALLY_PUBLISHED = "PARTIALLY_PUBLISHED"
    FAILED = "FAILED"
    NEEDS_ATTENTION = "NEEDS_ATTENTION"
    BLOCKED = "BLOCKED"


IN_FLIGHT = frozenset({JobState.SENDING, JobState.UNKNOWN})
OPEN = frozenset({JobState.PENDING, JobState.SCHEDULED, JobState.READY, JobState.WAITING, JobState.BLOCKED})
# CANCELED is not among them: a draft counts a canceled job as no job.
COUNTED_AS_ENDED = frozenset({JobState.PUBLISHED, JobState.FAILED, JobState.MISSED, JobState.NEEDS_ATTENTION})


@record(frozen=True, slots=True, kw_only=True)
class Standing:
    """The part of a post job, as of `version`, that the state of its draft depends on."""

    organization_id: str
    id: str
    draft_id: str
    version: int
    target: Target
    state: JobState
    schedule_time: datetime | None = None
    publish_time: datetime | None = None
    # 0 for the post itself, n for its n-th follow-up on the target.
    part: int = 0


@record(frozen=True, slots=True, kw_only=True)
class PostJob(Standing):
    state_reason: str = ""
    external_url: str = ""
    error_message: str = ""


@record(frozen=True, slots=True, kw_only=True)
class PostJobEvent(PostJob):
    """One announcement of a post job, with its encoded payload for the archive."""

    kind: str
    payload: bytes
    occur_time: datetime


@record(frozen=True, slots=True, kw_only=True)
class FoldedState:
    """A draft's state and times, folded from its post jobs."""

    state: DraftState = DraftState.DRAFT
    schedule_time: datetime | None = None
    publish_time: datetime | None = None


S = TypeVar("S", bound=Standing)


def latest(jobs: Iterable[S]) -> list[S]:
    """Returns each job once, at its highest version."""
    return newest(jobs, key=lambda job: (job.organization_id, job.id), version=lambda job: job.version)


def fold(targets: Collection[Target], jobs: Iterable[Standing]) -> FoldedState:
    """Folds the newest states of a draft's jobs into the state of the draft.

    A canceled job counts as no job. The job of a target that was removed from the draft counts unless it FAILED or was
    MISSED: its post may still be sent, or is out. A follow-up counts once the part before is PUBLISHED.
    """
    counting = [job for job in _as_due(list(jobs)) if counts(job, targets)]
    unfinished = [job for job in counting if job.state not in COUNTED_AS_ENDED]
    if not unfinished:
        return _at_rest(targets, counting)
    schedule_time = _earliest(unfinished)
    if any(job.state in IN_FLIGHT for job in unfinished):
        return FoldedState(state=DraftState.PUBLISHING, schedule_time=schedule_time)
    if schedule_time:
        is_blocked = all(job.state is JobState.BLOCKED for job in unfinished if job.schedule_time)
        return FoldedState(
            state=DraftState.BLOCKED if is_blocked else DraftState.SCHEDULED,
            schedule_time=schedule_time,
        )
    return _at_rest(targets, counting)


def shown_targets(targets: Sequence[Target], jobs: Iterable[PostJob]) -> list[tuple[Target, PostJob | None]]:
    """Pairs each target with its post, if any; removed targets whose posts were not canceled come last."""
    by_target = {job.target: job for job in jobs if not job.part}
    former = sorted((job for job in by_target.values() if job.target not in targets), key=lambda job: job.id)
    return [
        *((target, by_target.get(target)) for target in targets),
        *((job.target, job) for job in former if job.state is not JobState.CANCELED),
    ]


def shown_follow_ups(target: Target, jobs: Iterable[PostJob]) -> list[PostJob]:
    """Returns the follow-ups on a target that were not canceled, in their order."""
    found = (job for job in jobs if job.part and job.target == target and job.state is not JobState.CANCELED)
    return sorted(found, key=lambda job: job.part)


def counts(job: Standing, targets: Collection[Target]) -> bool:
    """Returns whether a job counts towards the state of its draft."""
    match job.state:
        case JobState.CANCELED:
            return False
        case JobState.FAILED | JobState.MISSED:
            return job.target in targets
        case _:
            return True


def _as_due(jobs: Sequence[Standing]) -> Sequence[Standing]:
    """Returns the jobs without the follow-ups that wait for the part before.

    One whose part before is PUBLISHED is due since then, even if Publisher has not begun it yet.
    """
    if not any(job.part for job in jobs):
        return jobs
    out = {(job.target, job.part): job.publish_time for job in jobs if job.state is JobState.PUBLISHED}
    due: list[Standing] = []
    for job in jobs:
        before = (job.target, job.part - 1)
        if not job.part or job.state is not JobState.PENDING:
            due.append(job)
        elif before in out:
            due.append(replace(job, schedule_time=out[before]))
    return due


def _earliest(jobs: Iterable[Standing]) -> datetime | None:
    return min((job.schedule_time for job in jobs if job.schedule_time), default=None)


def _at_rest(targets: Collection[Target], jobs: Sequence[Standing]) -> FoldedState:
    """Returns the state of a draft that has nothing in flight and nothing scheduled."""
    states = {job.state for job in jobs}
    if JobState.NEEDS_ATTENTION in states:
        return FoldedState(state=DraftState.NEEDS_ATTENTION)
    if states == {JobState.PUBLISHED} and {job.target for job in jobs if not job.part}.issuperset(targets):
        first = min((job.publish_time for job in jobs if job.publish_time), default=None)
        return FoldedState(state=DraftState.PUBLISHED, publish_time=first)
    if JobState.PUBLISHED in states:
        return FoldedState(state=DraftState.PARTIALLY_PUBLISHED)
    if states & OPEN or not states:
        return FoldedState(state=DraftState.DRAFT)
    return FoldedState(state=DraftState.FAILED)
