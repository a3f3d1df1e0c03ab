"""One try of a job, as it is shown."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    run: int
    number: int
    # An `AttemptState`; plain text where a newer release has written one that this release does not know.
    state: str
    idempotency_key: str
    content_revision: int
    start_time: datetime
    end_time: datetime | None
    external_id: str
    error_reason: str
    error_message: str
