"""Findings about media."""

from collections.abc import Sequence

from channels.validation import MediaKind
from postflow.drafts.v1 import draft_pb2
from postflow.publisher.v1 import publisher_service_pb2 as pb
from publisher_service.domain.media import Inspected, MediaFacts, MediaProblem

_KINDS: dict[MediaKind, draft_pb2.MediaKind] = {
    MediaKind.IMAGE: draft_pb2.MEDIA_KIND_IMAGE,
    MediaKind.VIDEO: draft_pb2.MEDIA_KIND_VIDEO,
    MediaKind.DOCUMENT: draft_pb2.MEDIA_KIND_DOCUMENT,
}


def inspect_media_response(urls: Sequence[str], found: Sequence[Inspected]) -> pb.InspectMediaResponse:
    return pb.InspectMediaResponse(media=[_inspected(url, each) for url, each in zip(urls, found, strict=True)])


def _inspected(url: str, found: Inspected) -> pb.InspectedMedia:
    match found:
        case MediaFacts():
            return pb.InspectedMedia(url=url, facts=_facts(found))
        case MediaProblem(reason=reason, message=message, is_transient=is_transient):
            return pb.InspectedMedia(url=url, problem_reason=reason, problem_message=message, may_pass=is_transient)


def _facts(facts: MediaFacts) -> draft_pb2.MediaFacts:
    message = draft_pb2.MediaFacts(
        sha256=facts.sha256,
        kind=_KINDS[facts.kind],
        content_type=facts.content_type,
        size=facts.size,
        width=facts.width,
        height=facts.height,
    )
    if facts.duration is not None:
        message.duration.FromTimedelta(facts.duration)
    return message
