"""The content of a draft, and the rules that make it valid."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from hashlib import sha256

from channels import normalise
from channels.validation import MediaKind
from channels.well_formed import Malformed, require_well_formed
from drafts_service.domain.target import Target
from servicekit.faults import InvalidField

MOST_BYTES = 160 * 1024
"""The limit of the encoded content, so that its targets and their states also fit into a response of 256 KiB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelText:
    channel: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaFacts:
    """Facts that the bytes of media show; no other bytes than these are sent."""

    sha256: str
    kind: MediaKind
    content_type: str
    size: int
    # As it is shown; 0 for documents.
    width: int = 0
    height: int = 0
    # Of a video.
    duration: timedelta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Media:
    url: str
    alt_text: str = ""
    # None until Publisher has fetched it.
    facts: MediaFacts | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelMedia:
    """Media that replaces the common one on a channel."""

    channel: str
    media: tuple[Media, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowUp:
    """A comment below the post, or a further part of a thread."""

    channel: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    text: str
    hashtags: tuple[str, ...] = ()
    channel_texts: tuple[ChannelText, ...] = ()
    title: str = ""
    link: str = ""
    media: tuple[Media, ...] = ()
    # Those of one channel in their order.
    follow_ups: tuple[FollowUp, ...] = ()
    channel_media: tuple[ChannelMedia, ...] = ()

    @property
    def all_media(self) -> tuple[Media, ...]:
        """The media of all channels, in the order of the fields; one may come twice."""
        return self.media + tuple(each for of_channel in self.channel_media for each in of_channel.media)


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """The encoded content, as stored and announced: exactly these bytes are approved and sent."""

    encoded: bytes
    digest: str

    @classmethod
    def of(cls, encoded: bytes) -> "Body":
        if len(encoded) > MOST_BYTES:
            raise InvalidField(
                "draft.content", f"must be at most {MOST_BYTES} bytes when encoded, and is {len(encoded)}"
            )
        return cls(encoded=encoded, digest=sha256(encoded).hexdigest())


def checked_content(content: Content, targets: Sequence[Target]) -> Content:
    """Returns the content with normalised channels; refuses one that does not fit the (checked) targets."""
    try:
        require_well_formed(content, {target.channel for target in targets})
    except Malformed as malformed:
        raise InvalidField(f"draft.content.{malformed.field}", malformed.message, reason=malformed.reason) from None
    return replace(
        content,
        channel_texts=tuple(replace(each, channel=normalise(each.channel)) for each in content.channel_texts),
        follow_ups=tuple(replace(each, channel=normalise(each.channel)) for each in content.follow_ups),
        channel_media=tuple(replace(each, channel=normalise(each.channel)) for each in content.channel_media),
    )
