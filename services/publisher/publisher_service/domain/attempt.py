"""One try of a job, as it is shown."""

from dataclasses import dataclass
from datetime import datetime

from publisher_service.domain.settlement import AttemptState


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    run: int
    number: int
    state: AttemptState
    idempotency_key: str
    content_revision: int
    start_time: datetime
    end_time: datetime | None
    external_id: str
    error_reason: str
    error_message: str
