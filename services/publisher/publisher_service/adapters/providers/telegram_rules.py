"""Rules of Telegram for what a bot sends. https://core.telegram.org/bots/api#sending-files"""

from typing import Final

from channels.rules import (
    ChannelRules,
    DestinationRule,
    DocumentRule,
    FollowUpKind,
    FollowUpRule,
    ImageRule,
    LinkPlace,
    MediaRule,
    TextRule,
    Unit,
    VideoRule,
)
from channels.validation import MediaKind
from publisher_service.domain.media import MediaFacts

_MEGABYTE: Final = 1_000_000
_MOST_OF_PHOTO: Final = 10 * _MEGABYTE
_MOST_OF_FILE: Final = 50 * _MEGABYTE
_PHOTOS: Final = ("image/jpeg", "image/png", "image/webp")
_TEXT: Final = TextRule(most=4096, unit=Unit.UTF16)

TELEGRAM_RULES: Final = ChannelRules(
    text=_TEXT,
    caption=TextRule(most=1024, unit=Unit.UTF16),
    link_in_text=LinkPlace.ALWAYS,
    media=MediaRule(
        most=10,
        image=ImageRule(
            types=_PHOTOS, most_bytes=_MOST_OF_PHOTO, least_ratio=1 / 20, most_ratio=20.0, most_sides=10_000
        ),
        video=VideoRule(types=("video/mp4",), most_bytes=_MOST_OF_FILE),
        document=DocumentRule(types=("application/pdf",), most_bytes=_MOST_OF_FILE),
        may_mix=True,
        documents_apart=True,
    ),
    follow_ups=FollowUpRule(kind=FollowUpKind.COMMENT, most=20, text=_TEXT),
    destination=DestinationRule(
        pattern=r"-?[0-9]{1,20}|@[A-Za-z0-9_]{4,32}",
        description="the number of a chat, such as -1001234567890, or the name of a public channel, such as @example",
    ),
)


def kind_of(facts: MediaFacts) -> str:
    """Returns as what a file is sent: `photo`, `video` or `document`. A picture that is no photo is a document."""
    match facts.kind:
        case MediaKind.IMAGE if facts.content_type in _PHOTOS:
            return "photo"
        case MediaKind.VIDEO:
            return "video"
        case _:
            return "document"


def too_large(facts: MediaFacts) -> bool:
    return facts.size > (_MOST_OF_PHOTO if kind_of(facts) == "photo" else _MOST_OF_FILE)
