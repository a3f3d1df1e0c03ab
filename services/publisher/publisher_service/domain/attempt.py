"""One attempt of a job, as callers see it."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    run: int
    number: int
    # An `AttemptState`, or plain text that only a newer release knows.
    state: str
    idempotency_key: str
    content_revision: int
    start_time: datetime
    end_time: datetime | None
    external_id: str
    error_reason: str
    error_message: str
