"""The content of a draft, as Drafts encodes it."""

from google.protobuf.message import DecodeError

from postflow.drafts.v1 import draft_pb2
from publisher_service.domain.content import Content
from publisher_service.wire.unreadable import UnreadableMessage


def content_from(encoded: bytes) -> Content:
    """Decodes a content. Raises UnreadableMessage."""
    try:
        message = draft_pb2.DraftContent.FromString(encoded)
    except DecodeError:
        raise UnreadableMessage("the content of a draft cannot be read") from None
    return Content(
        text=message.text,
        hashtags=tuple(message.hashtags),
        channel_texts={each.channel: each.text for each in message.channel_texts},
    )
