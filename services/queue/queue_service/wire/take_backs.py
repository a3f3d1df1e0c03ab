"""Asking Publisher for posts that have not started, and its answers."""

from collections.abc import Iterable

from postflow.publisher.v1 import post_job_pb2, publisher_service_pb2
from queue_service.domain.job import TAKEN_BACK
from queue_service.domain.take_back import CancelAnswer, CancelOutcome, SlotPost
from queue_service.wire.post_jobs import report_of
from queue_service.wire.targets import target

_OUTCOMES = {
    publisher_service_pb2.CANCEL_OUTCOME_CANCELED: CancelOutcome.CANCELED,
    publisher_service_pb2.CANCEL_OUTCOME_TOO_LATE: CancelOutcome.TOO_LATE,
    publisher_service_pb2.CANCEL_OUTCOME_ENDED: CancelOutcome.ENDED,
}


def cancel_posts_request(
    organization_id: str, posts: Iterable[SlotPost]
) -> publisher_service_pb2.CancelPostJobsRequest:
    return publisher_service_pb2.CancelPostJobsRequest(
        organization_id=organization_id,
        posts=[
            publisher_service_pb2.SlotPost(
                draft_id=post.draft_id,
                target=target(post.social_account_id, post.channel, post.destination),
                slot_id=post.slot_id,
                slot_revision=post.slot_revision,
                slot_sequence=post.slot_sequence,
            )
            for post in posts
        ],
    )


def cancel_answer(post: SlotPost, result: publisher_service_pb2.CancelResult) -> CancelAnswer | None:
    """Returns None for an answer that this release does not know."""
    outcome = _OUTCOMES.get(result.outcome)
    if outcome is None or not result.post_job.id:
        return None
    if outcome is CancelOutcome.CANCELED and not _is_given_back(post, result.post_job):
        outcome = CancelOutcome.ENDED  # before, or another revision has it
    return CancelAnswer(post=post, outcome=outcome, job=report_of(post.organization_id, result.post_job))


def _is_given_back(post: SlotPost, job: post_job_pb2.PostJob) -> bool:
    is_canceled = job.state == post_job_pb2.POST_JOB_STATE_CANCELED and job.state_reason == TAKEN_BACK
    return is_canceled and (job.slot_id, job.slot_revision) == (post.slot_id, post.slot_revision)
