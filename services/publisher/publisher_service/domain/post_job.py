"""A post job: the publication of one target of one draft, and the states it may take."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID


class JobState(StrEnum):
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


class Reason(StrEnum):
    """Why a job waits or is blocked."""

    NONE = ""
    CONTENT_PENDING = "CONTENT_PENDING"
    RATE_LIMITED = "RATE_LIMITED"
    RETRY = "RETRY"
    NOT_APPROVED = "NOT_APPROVED"
    WITHDRAWN = "WITHDRAWN"
    ACCOUNT_NOT_CONNECTED = "ACCOUNT_NOT_CONNECTED"


class EventKind(StrEnum):
    CREATED = "CREATED"
    SCHEDULED = "SCHEDULED"
    STARTED = "STARTED"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    DEFERRED = "DEFERRED"
    BLOCKED = "BLOCKED"
    UNCERTAIN = "UNCERTAIN"
    NEEDS_ATTENTION = "NEEDS_ATTENTION"
    MISSED = "MISSED"
    CANCELED = "CANCELED"
    ACCEPTED = "ACCEPTED"


WITH_NEXT_ACTION = frozenset({JobState.READY, JobState.WAITING, JobState.BLOCKED, JobState.SENDING, JobState.UNKNOWN})
ENDED_RUN = frozenset({JobState.FAILED, JobState.MISSED, JobState.CANCELED})
OPEN_ATTEMPT = frozenset({JobState.SENDING, JobState.UNKNOWN})
NOT_STARTED = frozenset({JobState.PENDING, JobState.SCHEDULED, JobState.READY, JobState.WAITING, JobState.BLOCKED})

TRANSITIONS: Mapping[JobState, frozenset[JobState]] = {
    JobState.PENDING: frozenset(
        {JobState.SCHEDULED, JobState.SENDING, JobState.WAITING, JobState.BLOCKED, JobState.MISSED, JobState.CANCELED}
    ),
    JobState.SCHEDULED: frozenset(
        {JobState.SENDING, JobState.WAITING, JobState.BLOCKED, JobState.MISSED, JobState.CANCELED}
    ),
    JobState.READY: frozenset(
        {JobState.SENDING, JobState.WAITING, JobState.BLOCKED, JobState.MISSED, JobState.CANCELED}
    ),
    JobState.WAITING: frozenset(
        {JobState.READY, JobState.SENDING, JobState.BLOCKED, JobState.MISSED, JobState.CANCELED}
    ),
    JobState.BLOCKED: frozenset(
        {JobState.READY, JobState.SENDING, JobState.WAITING, JobState.MISSED, JobState.CANCELED}
    ),
    JobState.SENDING: frozenset(
        {JobState.PUBLISHED, JobState.FAILED, JobState.WAITING, JobState.BLOCKED, JobState.UNKNOWN}
    ),
    JobState.UNKNOWN: frozenset({JobState.PUBLISHED, JobState.READY, JobState.NEEDS_ATTENTION}),
    JobState.NEEDS_ATTENTION: frozenset({JobState.PUBLISHED}),
    JobState.PUBLISHED: frozenset(),
    # A new slot begins the next run.
    JobState.FAILED: frozenset({JobState.SCHEDULED}),
    JobState.MISSED: frozenset({JobState.SCHEDULED}),
    JobState.CANCELED: frozenset({JobState.SCHEDULED}),
}

_KINDS: Mapping[JobState, EventKind] = {
    JobState.PENDING: EventKind.CREATED,
    JobState.SCHEDULED: EventKind.SCHEDULED,
    JobState.READY: EventKind.ACCEPTED,
    JobState.SENDING: EventKind.STARTED,
    JobState.WAITING: EventKind.DEFERRED,
    JobState.BLOCKED: EventKind.BLOCKED,
    JobState.UNKNOWN: EventKind.UNCERTAIN,
    JobState.PUBLISHED: EventKind.SUCCEEDED,
    JobState.FAILED: EventKind.FAILED,
    JobState.MISSED: EventKind.MISSED,
    JobState.CANCELED: EventKind.CANCELED,
    JobState.NEEDS_ATTENTION: EventKind.NEEDS_ATTENTION,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    social_account_id: str
    channel: str
    destination: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PostJob:
    organization_id: str
    id: str
    draft_id: str
    target: Target
    state: JobState
    state_reason: Reason = Reason.NONE
    version: int = 1
    run: int = 1
    slot_id: str = ""
    slot_revision: int = 0
    schedule_time: datetime | None = None
    not_after: datetime | None = None
    next_action_time: datetime | None = None
    max_attempts: int = 5
    attempts: int = 0
    fence: int = 0
    content_revision: int = 0
    withdrawn_below: int = 0
    publish_time: datetime | None = None
    external_id: str = ""
    external_url: str = ""
    evidence_kind: str = ""
    error_reason: str = ""
    error_message: str = ""
    last_attempt_time: datetime | None = None
    target_month: str = ""
    traceparent: str = ""
    create_time: datetime
    update_time: datetime


def job_id(organization_id: str, draft_id: str, target: Target) -> str:
    """A UUIDv8 made of what makes the job the job that it is: whoever knows the target knows the id."""
    parts = (organization_id, draft_id, target.social_account_id, target.channel, target.destination)
    digest = hashlib.sha256("\0".join(parts).encode()).digest()[:16]
    value = int.from_bytes(digest) & ~(0xF << 76) & ~(0x3 << 62) | 0x8 << 76 | 0b10 << 62
    return str(UUID(int=value))


def kind_of(state: JobState) -> EventKind:
    """What an observer is told when a job has come into this state."""
    return _KINDS[state]


def newer_slot(job: PostJob, slot_id: str, slot_revision: int) -> bool:
    """Slot ids grow with time (UUIDv7), and a draft has one live slot per account: the greater one is the newer one."""
    return (slot_id, slot_revision) > (job.slot_id, job.slot_revision)
