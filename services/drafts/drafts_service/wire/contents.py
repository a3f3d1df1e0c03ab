"""Contents of drafts and their media, as callers give them and as they are stored."""

from collections.abc import Iterable

from channels.validation import MediaKind
from drafts_service.domain.content import Body, ChannelMedia, ChannelText, Content, FollowUp, Media, MediaFacts
from drafts_service.domain.media import Inspected, MediaProblem, without_facts
from drafts_service.wire.texts import LONGEST_MESSAGE
from postflow.drafts.v1 import draft_pb2
from postflow.publisher.v1.publisher_service_pb2 import InspectMediaResponse


def given_content(message: draft_pb2.DraftContent) -> Content:
    """Returns the content as a caller gives it: facts about media are for Publisher to find."""
    return without_facts(content(message))


def content(message: draft_pb2.DraftContent) -> Content:
    return Content(
        text=message.text,
        hashtags=tuple(message.hashtags),
        channel_texts=tuple(ChannelText(channel=each.channel, text=each.text) for each in message.channel_texts),
        title=message.title,
        link=message.link,
        media=_media(message.media),
        follow_ups=tuple(FollowUp(channel=each.channel, text=each.text) for each in message.follow_ups),
        channel_media=tuple(
            ChannelMedia(channel=each.channel, media=_media(each.media)) for each in message.channel_media
        ),
    )


def encoded_body(content: Content) -> Body:
    message = draft_pb2.DraftContent(
        text=content.text,
        hashtags=content.hashtags,
        channel_texts=[draft_pb2.ChannelText(channel=each.channel, text=each.text) for each in content.channel_texts],
        title=content.title,
        link=content.link,
        media=map(_media_message, content.media),
        follow_ups=[draft_pb2.FollowUp(channel=each.channel, text=each.text) for each in content.follow_ups],
        channel_media=[
            draft_pb2.ChannelMedia(channel=each.channel, media=map(_media_message, each.media))
            for each in content.channel_media
        ],
    )
    return Body.of(message.SerializeToString(deterministic=True))


def decoded_body(body: Body) -> Content:
    return content(draft_pb2.DraftContent.FromString(body.encoded))


_MEDIA_KINDS: dict[MediaKind, draft_pb2.MediaKind] = {
    MediaKind.IMAGE: draft_pb2.MEDIA_KIND_IMAGE,
    MediaKind.VIDEO: draft_pb2.MEDIA_KIND_VIDEO,
    MediaKind.DOCUMENT: draft_pb2.MEDIA_KIND_DOCUMENT,
}


_KINDS_OF_MEDIA: dict[int, MediaKind] = {number: kind for kind, number in _MEDIA_KINDS.items()}


def inspected(response: InspectMediaResponse) -> Inspected:
    """Translates what Publisher has found about media, by address."""
    found: dict[str, MediaFacts | MediaProblem] = {}
    for each in response.media:
        facts = media_facts(each.facts) if each.HasField("facts") else None
        found[each.url] = facts or MediaProblem(
            reason=each.problem_reason or "MEDIA_UNREADABLE",
            message=each.problem_message[:LONGEST_MESSAGE] or "is of a kind that is not known here",
            may_pass=each.may_pass,
        )
    return found


def media_facts(message: draft_pb2.MediaFacts) -> MediaFacts | None:
    """Returns None for a kind that only a newer release knows."""
    if message.kind not in _KINDS_OF_MEDIA or not message.sha256:
        return None
    return MediaFacts(
        sha256=message.sha256,
        kind=_KINDS_OF_MEDIA[message.kind],
        content_type=message.content_type,
        size=message.size,
        width=message.width,
        height=message.height,
        duration=message.duration.ToTimedelta() if message.HasField("duration") else None,
    )


def _media(messages: Iterable[draft_pb2.Media]) -> tuple[Media, ...]:
    return tuple(Media(url=each.url, alt_text=each.alt_text, facts=_facts(each)) for each in messages)


def _media_message(media: Media) -> draft_pb2.Media:
    return draft_pb2.Media(url=media.url, alt_text=media.alt_text, facts=_facts_message(media.facts))


def _facts(message: draft_pb2.Media) -> MediaFacts | None:
    return media_facts(message.facts) if message.HasField("facts") else None


def _facts_message(facts: MediaFacts | None) -> draft_pb2.MediaFacts | None:
    if facts is None:
        return None
    message = draft_pb2.MediaFacts(
        sha256=facts.sha256,
        kind=_MEDIA_KINDS[facts.kind],
        content_type=facts.content_type,
        size=facts.size,
        width=facts.width,
        height=facts.height,
    )
    if facts.duration is not None:
        message.duration.FromTimedelta(facts.duration)
    return message
