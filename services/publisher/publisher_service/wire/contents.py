"""The content of a draft, as Drafts encodes it."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from google.protobuf.message import DecodeError

from channels import normalise
from channels.validation import MediaKind
from channels.well_formed import Malformed, require_well_formed
from postflow.drafts.v1 import draft_pb2
from publisher_service.domain.content import Content, ContentMedia, FollowUp
from publisher_service.domain.media import MediaFacts
from publisher_service.domain.post_job import Target
from publisher_service.wire.unreadable import UnreadableMessage
from servicekit.faults import InvalidField


def content_from(encoded: bytes) -> Content:
    """Decodes a content. Raises UnreadableMessage."""
    try:
        message = draft_pb2.DraftContent.FromString(encoded)
    except DecodeError:
        raise UnreadableMessage("the content of a draft cannot be read") from None
    return content_of(message)


def checked_content(message: draft_pb2.DraftContent, targets: Sequence[Target]) -> Content:
    """Translates a content as a caller gives it, with its channels normalised. Raises InvalidField."""
    try:
        require_well_formed(message, {target.channel for target in targets})
    except Malformed as malformed:
        raise InvalidField(f"content.{malformed.field}", malformed.message, reason=malformed.reason) from None
    content = content_of(message)
    return replace(
        content,
        channel_texts={normalise(channel): text for channel, text in content.channel_texts.items()},
        follow_ups=tuple(replace(each, channel=normalise(each.channel)) for each in content.follow_ups),
        channel_media={normalise(channel): media for channel, media in content.channel_media.items()},
    )


def content_of(message: draft_pb2.DraftContent) -> Content:
    return Content(
        text=message.text,
        hashtags=tuple(message.hashtags),
        channel_texts={each.channel: each.text for each in message.channel_texts},
        title=message.title,
        link=message.link,
        media=_media(message.media),
        follow_ups=tuple(FollowUp(channel=each.channel, text=each.text) for each in message.follow_ups),
        channel_media={each.channel: _media(each.media) for each in message.channel_media},
    )


_KINDS: dict[int, MediaKind] = {
    draft_pb2.MEDIA_KIND_IMAGE: MediaKind.IMAGE,
    draft_pb2.MEDIA_KIND_VIDEO: MediaKind.VIDEO,
    draft_pb2.MEDIA_KIND_DOCUMENT: MediaKind.DOCUMENT,
}


def _media(messages: Iterable[draft_pb2.Media]) -> tuple[ContentMedia, ...]:
    return tuple(
        ContentMedia(url=each.url, alt_text=each.alt_text, sha256=each.facts.sha256, facts=_facts(each))
        for each in messages
    )


def _facts(message: draft_pb2.Media) -> MediaFacts | None:
    """Returns None for facts that are absent, or of a kind that only a newer release knows."""
    facts = message.facts
    if not message.HasField("facts") or facts.kind not in _KINDS:
        return None
    return MediaFacts(
        kind=_KINDS[facts.kind],
        content_type=facts.content_type,
        size=facts.size,
        sha256=facts.sha256,
        width=facts.width,
        height=facts.height,
        duration=facts.duration.ToTimedelta() if facts.HasField("duration") else None,
    )
