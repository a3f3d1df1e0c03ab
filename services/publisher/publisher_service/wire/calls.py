"""Runs that a call begins: RetryPostJob and PublishNow."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from postflow.drafts.v1 import drafts_events_pb2
from postflow.publisher.v1 import publisher_service_pb2 as pb
from publisher_service.domain.plan import SavedDraft
from publisher_service.domain.post_job import PostJob
from publisher_service.domain.publish_now import UrgentPost, UrgentPosts
from publisher_service.wire.contents import content_from
from publisher_service.wire.events import saved_draft_from
from publisher_service.wire.given_texts import require_words
from publisher_service.wire.posts import post_job
from publisher_service.wire.targets import distinct_targets
from publisher_service.wire.unreadable import UnreadableMessage
from servicekit.faults import InvalidField
from servicekit.timestamps import moment


def latest_time_of(request: pb.RetryPostJobRequest | pb.PublishNowRequest) -> datetime | None:
    return moment(request.not_after) if request.HasField("not_after") else None


def retry_response(job: PostJob) -> pb.RetryPostJobResponse:
    return pb.RetryPostJobResponse(post_job=post_job(job))


def urgent_posts_from(request: pb.PublishNowRequest) -> UrgentPosts:
    """Translates a request. Raises InvalidField."""
    draft = _draft_from(request.draft, request.organization_id)
    targets = distinct_targets(request.targets, "targets")
    for index, target in enumerate(targets):
        if target not in draft.targets:
            raise InvalidField(f"targets[{index}]", "is not a target of the draft")
    return UrgentPosts(
        draft=draft,
        targets=targets or draft.targets,
        over_cap=request.over_cap,
        not_after=latest_time_of(request),
    )


def publish_now_response(results: Sequence[UrgentPost]) -> pb.PublishNowResponse:
    return pb.PublishNowResponse(
        results=[
            pb.PublishNowResult(
                outcome=pb.PUBLISH_NOW_OUTCOME_REFUSED if each.reason else pb.PUBLISH_NOW_OUTCOME_STARTED,
                reason=each.reason,
                post_job=post_job(each.job),
            )
            for each in results
        ]
    )


def _draft_from(message: drafts_events_pb2.DraftSaved, organization_id: str) -> SavedDraft:
    """Reads the draft as its event would be read, in the spelling in which Drafts announces targets."""
    if message.organization_id not in ("", organization_id):
        raise InvalidField("draft.organization_id", "must be the tenant of the request, or empty")
    if not message.targets:
        raise InvalidField("draft.targets", "is required")
    targets = distinct_targets(message.targets, "draft.targets")
    try:
        draft = saved_draft_from(message)
        content = content_from(draft.content)
    except UnreadableMessage as unreadable:
        raise InvalidField("draft.content", unreadable.message) from None
    if not (content.media or any(content.channel_media.values())):
        require_words("draft.content.text", content.text)
    return replace(draft, organization_id=organization_id, targets=targets)
