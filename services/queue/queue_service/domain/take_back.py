"""Taking posts back from Publisher that have not started: what is asked, and what the answers mean."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from queue_service.domain.account import AccountKey
from queue_service.domain.settlement import JobReport
from queue_service.domain.slot import TakingBack


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotPost:
    """A post of a dispatched slot that Publisher is asked to give back, and what for."""

    organization_id: str
    social_account_id: str
    slot_id: str
    slot_revision: int
    slot_sequence: int
    draft_id: str
    channel: str
    destination: str
    purpose: TakingBack
    # Why a call cancels the slot; empty if it is to return.
    reason: str

    @property
    def slot_key(self) -> tuple[str, str]:
        return self.organization_id, self.slot_id

    @property
    def account(self) -> AccountKey:
        return self.organization_id, self.social_account_id


class CancelOutcome(StrEnum):
    # Nothing was sent, and nothing will be.
    CANCELED = "CANCELED"
    # It is being sent, may be out, or is out.
    TOO_LATE = "TOO_LATE"
    # It had ended otherwise.
    ENDED = "ENDED"


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelAnswer:
    """The end of asking for one post, with its job as Publisher reports it."""

    post: SlotPost
    outcome: CancelOutcome
    job: JobReport


def too_late(answers: Iterable[CancelAnswer]) -> dict[tuple[str, str], str]:
    """Returns the slots with a post for which it was too late, each with that post's job."""
    return {answer.post.slot_key: answer.job.job_id for answer in answers if answer.outcome is CancelOutcome.TOO_LATE}
