"""Take-backs: the call CancelPostJobs, and the event that a slot was canceled."""

from collections.abc import Sequence
from dataclasses import replace

import channels
from postflow.publisher.v1 import publisher_service_pb2 as pb
from postflow.queue.v1 import queue_events_pb2
from publisher_service.domain.take_back import CancelOutcome, SlotPost, TakenBack
from publisher_service.wire.posts import post_job
from publisher_service.wire.targets import target_from
from servicekit.faults import InvalidField

_OUTCOMES = {
    CancelOutcome.CANCELED: pb.CANCEL_OUTCOME_CANCELED,
    CancelOutcome.TOO_LATE: pb.CANCEL_OUTCOME_TOO_LATE,
    CancelOutcome.ENDED: pb.CANCEL_OUTCOME_ENDED,
}


def slot_posts_from(request: pb.CancelPostJobsRequest) -> Sequence[SlotPost]:
    """Translates the posts. Raises InvalidField for an unknown channel: the job's id is made of the known spelling."""
    return [
        SlotPost(
            organization_id=request.organization_id,
            draft_id=post.draft_id,
            target=replace(target_from(post.target), channel=_channel(post.target.channel, index)),
            slot_id=post.slot_id,
            slot_revision=post.slot_revision,
            slot_sequence=post.slot_sequence,
        )
        for index, post in enumerate(request.posts)
    ]


def cancel_response(results: Sequence[TakenBack]) -> pb.CancelPostJobsResponse:
    return pb.CancelPostJobsResponse(
        results=[pb.CancelResult(outcome=_OUTCOMES[each.outcome], post_job=post_job(each.job)) for each in results]
    )


def canceled_posts_from(message: queue_events_pb2.SlotCanceled) -> Sequence[SlotPost]:
    """Returns the posts of a canceled slot."""
    return [
        SlotPost(
            organization_id=message.organization_id,
            draft_id=message.draft_id,
            target=target_from(target),
            slot_id=message.slot_id,
            slot_revision=message.revision,
            slot_sequence=message.slot_sequence,
        )
        for target in message.targets
    ]


def _channel(name: str, index: int) -> str:
    try:
        return channels.normalise(name)
    except channels.UnknownChannel as unknown:
        raise InvalidField(f"posts[{index}].target.channel", str(unknown), reason="UNKNOWN_CHANNEL") from None
