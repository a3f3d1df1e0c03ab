"""Publisher's post jobs as far as drafts reflect them: which of two facts is newer, and what all of them together mean.

Everything here is pure and does not depend on the order in which facts arrive, on repetitions, or on facts that were
lost as long as a newer one of the same job came.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TypeVar

from drafts_service.domain.target import Target


class JobState(StrEnum):
    """Named as in the contract, where each has its meaning."""

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
ENDED = frozenset({JobState.PUBLISHED, JobState.FAILED, JobState.MISSED, JobState.NEEDS_ATTENTION})


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Where a post job stood at its `version`: all that the state of its draft depends on."""

    organization_id: str
    id: str
    draft_id: str
    version: int
    target: Target
    state: JobState
    schedule_time: datetime | None = None
    publish_time: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PostJob(Standing):
    state_reason: str = ""
    external_url: str = ""
    error_message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PostJobEvent(PostJob):
    """What was announced of a job, with its encoding for the archive."""

    kind: str
    payload: bytes
    occur_time: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What became of a draft."""

    state: DraftState = DraftState.DRAFT
    schedule_time: datetime | None = None
    publish_time: datetime | None = None


S = TypeVar("S", bound=Standing)


def latest(jobs: Iterable[S]) -> list[S]:
    """Of each job what is known of its highest version."""
    newest: dict[tuple[str, str], S] = {}
    for job in jobs:
        key = (job.organization_id, job.id)
        known = newest.get(key)
        if known is None or job.version > known.version:
            newest[key] = job
    return list(newest.values())


def fold(targets: Collection[Target], jobs: Iterable[Standing]) -> Progress:
    """The state of a draft from its targets and the latest states of its jobs.

    A canceled job is as good as none. A job of a target that the draft no longer has counts while something may still
    come of it, and when it is out.
    """
    counting = [job for job in jobs if _counts(job, targets)]
    unfinished = [job for job in counting if job.state not in ENDED]
    if any(job.state in IN_FLIGHT for job in unfinished):
        return Progress(state=DraftState.PUBLISHING, schedule_time=_earliest(unfinished))
    if schedule_time := _earliest(unfinished):
        is_blocked = all(job.state is JobState.BLOCKED for job in unfinished if job.schedule_time)
        return Progress(
            state=DraftState.BLOCKED if is_blocked else DraftState.SCHEDULED,
            schedule_time=schedule_time,
        )
    return _at_rest(targets, counting)


def worth_showing(targets: Sequence[Target], jobs: Iterable[PostJob]) -> list[tuple[Target, PostJob | None]]:
    """Each target of the draft with its job, if it has one; behind them what is left of former targets."""
    by_target = {job.target: job for job in jobs}
    former = sorted((job for job in by_target.values() if job.target not in targets), key=lambda job: job.id)
    return [
        *((target, by_target.get(target)) for target in targets),
        *((job.target, job) for job in former if job.state is not JobState.CANCELED),
    ]


def _counts(job: Standing, targets: Collection[Target]) -> bool:
    if job.state is JobState.CANCELED:
        return False
    return job.target in targets or job.state not in {JobState.FAILED, JobState.MISSED}


def _earliest(jobs: Iterable[Standing]) -> datetime | None:
    return min((job.schedule_time for job in jobs if job.schedule_time), default=None)


def _at_rest(targets: Collection[Target], jobs: Sequence[Standing]) -> Progress:
    """Nothing is in flight and nothing has a time."""
    states = {job.state for job in jobs}
    if JobState.NEEDS_ATTENTION in states:
        return Progress(state=DraftState.NEEDS_ATTENTION)
    if states == {JobState.PUBLISHED} and {job.target for job in jobs}.issuperset(targets):
        first = min((job.publish_time for job in jobs if job.publish_time), default=None)
        return Progress(state=DraftState.PUBLISHED, publish_time=first)
    if JobState.PUBLISHED in states:
        return Progress(state=DraftState.PARTIALLY_PUBLISHED)
    if states & OPEN or not states:
        return Progress(state=DraftState.DRAFT)
    return Progress(state=DraftState.FAILED)
