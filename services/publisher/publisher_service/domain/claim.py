"""Asking for a job, and what may come of it."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from publisher_service.domain.post_job import PostJob, Target, job_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """The wish to send one target of one draft now: from the stream, or from the job itself when the stream lost it."""

    organization_id: str
    draft_id: str
    target: Target
    slot_id: str
    slot_revision: int
    emission: int
    schedule_time: datetime
    not_after: datetime
    content_revision: int
    max_attempts: int
    traceparent: str

    @property
    def post_job_id(self) -> str:
        return job_id(self.organization_id, self.draft_id, self.target)


class Verdict(StrEnum):
    CLAIMED = "CLAIMED"
    # A newer slot has taken its place.
    STALE = "STALE"
    # The run has ended.
    ENDED = "ENDED"
    # Another try is open.
    OPEN = "OPEN"
    # It waits, and its time has not come.
    EARLY = "EARLY"
    MISSED = "MISSED"
    CONTENT_PENDING = "CONTENT_PENDING"
    WITHDRAWN = "WITHDRAWN"
    # The draft does not have this target any more.
    REMOVED = "REMOVED"
    NOT_APPROVED = "NOT_APPROVED"
    ACCOUNT_NOT_CONNECTED = "ACCOUNT_NOT_CONNECTED"
    # Another job of the account is being sent.
    ACCOUNT_BUSY = "ACCOUNT_BUSY"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """An open try: its intention is written down, and everything that the send needs is here."""

    job: PostJob
    provider: str
    external_account_id: str
    credentials: bytes
    content: bytes
    content_digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    verdict: Verdict
    organization_id: str
    id: str
    next_action_time: datetime | None
    claimed: Claimed | None = None
