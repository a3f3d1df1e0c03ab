"""The rules of a channel: what a provider takes there. They are data, so they can be shown before one is broken.

Publisher's adapters declare them and ListChannels shows them; Drafts checks what it saves by what was shown.
"""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum


class Unit(StrEnum):
    """Units in which providers count a text."""

    CHARACTERS = "CHARACTERS"
    # Code units of UTF-16: most emoji count twice.
    UTF16 = "UTF16"
    # Bytes of UTF-8.
    BYTES = "BYTES"


@dataclass(frozen=True, slots=True, kw_only=True)
class TextRule:
    most: int
    unit: Unit = Unit.CHARACTERS
    # A post without it is refused, even one with media.
    is_required: bool = False
    # The channel shows no text: it is left out, and nothing counts.
    is_shown: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageRule:
    types: tuple[str, ...]
    most_bytes: int
    # Width divided by height; None: any.
    least_ratio: float | None = None
    most_ratio: float | None = None
    # Width times height.
    most_pixels: int | None = None
    # Width plus height.
    most_sides: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoRule:
    types: tuple[str, ...]
    most_bytes: int
    least_duration: timedelta | None = None
    most_duration: timedelta | None = None
    least_ratio: float | None = None
    most_ratio: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentRule:
    types: tuple[str, ...]
    most_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaRule:
    """None: the channel takes none of that kind."""

    most: int
    least: int = 0
    image: ImageRule | None = None
    video: VideoRule | None = None
    document: DocumentRule | None = None
    # More than one video or document, or one beside other media.
    may_mix: bool = False
    # Documents stand beside documents alone, even where media may mix.
    documents_apart: bool = False
    # Of all media together.
    most_bytes_together: int | None = None


class LinkPlace(StrEnum):
    """Posts in which a provider's adapter puts the draft's link into the text: it counts there."""

    NEVER = "NEVER"
    ALWAYS = "ALWAYS"
    # Without media the link has a preview.
    BESIDE_MEDIA = "BESIDE_MEDIA"


class FollowUpKind(StrEnum):
    # Comments below the post.
    COMMENT = "COMMENT"
    # Parts of a thread, each an answer to the one before.
    THREAD = "THREAD"


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowUpRule:
    kind: FollowUpKind
    most: int
    text: TextRule


@dataclass(frozen=True, slots=True, kw_only=True)
class DestinationRule:
    """Destinations of a channel, as a regular expression and in words."""

    pattern: str
    description: str
    is_required: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelRules:
    """None, where that is possible: no limit, or the channel has no such thing and ignores it."""

    text: TextRule
    # Of a text beside media, if that is another.
    caption: TextRule | None = None
    title: TextRule | None = None
    most_hashtags: int | None = None
    most_mentions: int | None = None
    # The channel shows the draft's link, as a preview or behind its text.
    takes_link: bool = True
    link_in_text: LinkPlace = LinkPlace.NEVER
    media: MediaRule | None = None
    follow_ups: FollowUpRule | None = None
    # None: the account's own feed, and nothing else.
    destination: DestinationRule | None = None
