"""Taking posts back from Publisher that have not started: what is asked, and what the answers mean."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from queue_service.domain.account import AccountKey
from queue_service.domain.settlement import JobReport
from queue_service.domain.slot import SlotState, TakingBack
from servicekit.faults import NotFound, Refused


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


def slot_not_found(slot_id: str) -> NotFound:
    return NotFound("SLOT_NOT_FOUND", f"slot {slot_id} does not exist", metadata={"slot_id": slot_id})


def slot_not_live(slot_id: str, state: SlotState) -> Refused:
    return Refused("SLOT_NOT_LIVE", f"slot {slot_id} has ended: {state}", metadata={"slot_id": slot_id, "state": state})


def came_too_late(slot_id: str, post_job_id: str) -> Refused:
    return Refused(
        "TOO_LATE",
        f"post {post_job_id} of slot {slot_id} is being sent or may be out",
        metadata={"slot_id": slot_id, "post_job_id": post_job_id},
    )
