"""Reading what has come of posts that were to be taken back."""

from queue_service.domain.job import JobState
from queue_service.domain.slot import TakingBack
from queue_service.domain.take_back import CancelAnswer, CancelOutcome, SlotPost, too_late
from tests.unit.queue_service.test_settlement_of_slots import report


def answer(slot_id: str, outcome: CancelOutcome) -> CancelAnswer:
    post = SlotPost(
        organization_id="acme",
        social_account_id="page",
        slot_id=slot_id,
        slot_revision=1,
        slot_sequence=1,
        draft_id="d1",
        channel="facebook",
        destination="",
        purpose=TakingBack.RETURN,
        reason="",
    )
    return CancelAnswer(post=post, outcome=outcome, job=report(JobState.SENDING, 1))


def test_slots_that_came_too_late_are_named_with_a_post() -> None:
    answers = [answer("s1", CancelOutcome.CANCELED), answer("s2", CancelOutcome.TOO_LATE)]
    assert too_late([*answers, answer("s3", CancelOutcome.ENDED)]) == {("acme", "s2"): "job-facebook"}
