"""The content of a draft, and the rules that make it valid."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from hashlib import sha256
from typing import Final
from urllib.parse import urlsplit

from channels.texts import is_blank
from channels.validation import MediaKind
from drafts_service.domain.target import Target, known_channel
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
    if not content.all_media and is_blank(content.text):
        raise InvalidField("draft.content.text", "must not be empty")
    if not content.title.isprintable():
        raise InvalidField("draft.content.title", "must be one line of printable characters")
    if content.link:
        _check_address("draft.content.link", content.link, _LINK_SCHEMES)
    _check_media("draft.content.media", content.media)
    addressed = {target.channel for target in targets}
    return replace(
        content,
        channel_texts=_checked_texts(content.channel_texts, addressed),
        follow_ups=tuple(_checked_follow_ups(content.follow_ups, addressed)),
        channel_media=_checked_channel_media(content.channel_media, addressed),
    )


_LINK_SCHEMES: Final = frozenset({"http", "https"})


def _checked_texts(given: Sequence[ChannelText], addressed: Collection[str]) -> tuple[ChannelText, ...]:
    texts: dict[str, ChannelText] = {}
    for index, each in enumerate(given):
        place = f"draft.content.channel_texts[{index}]"
        if is_blank(each.text):
            raise InvalidField(f"{place}.text", "must not be empty")
        channel = _addressed_channel(each.channel, f"{place}.channel", addressed)
        if channel in texts:
            raise InvalidField(f"{place}.channel", f"{channel} already has a text")
        texts[channel] = replace(each, channel=channel)
    return tuple(texts.values())


def _checked_follow_ups(given: Sequence[FollowUp], addressed: Collection[str]) -> Iterable[FollowUp]:
    for index, each in enumerate(given):
        place = f"draft.content.follow_ups[{index}]"
        if is_blank(each.text):
            raise InvalidField(f"{place}.text", "must not be empty")
        yield replace(each, channel=_addressed_channel(each.channel, f"{place}.channel", addressed))


def _checked_channel_media(given: Sequence[ChannelMedia], addressed: Collection[str]) -> tuple[ChannelMedia, ...]:
    checked: dict[str, ChannelMedia] = {}
    for index, each in enumerate(given):
        place = f"draft.content.channel_media[{index}]"
        channel = _addressed_channel(each.channel, f"{place}.channel", addressed)
        if channel in checked:
            raise InvalidField(f"{place}.channel", f"{channel} already has media")
        _check_media(f"{place}.media", each.media)
        checked[channel] = replace(each, channel=channel)
    return tuple(checked.values())


def _check_media(field: str, media: Sequence[Media]) -> None:
    seen: dict[str, int] = {}
    for index, each in enumerate(media):
        place = f"{field}[{index}].url"
        _check_address(place, each.url, _LINK_SCHEMES)
        if each.url in seen:
            raise InvalidField(place, f"is the same as {field}[{seen[each.url]}].url")
        seen[each.url] = index


def _addressed_channel(name: str, field: str, addressed: Collection[str]) -> str:
    channel = known_channel(name, field)
    if channel not in addressed:
        raise InvalidField(field, f"no target is on {channel}")
    return channel


def _check_address(field: str, address: str, schemes: Collection[str]) -> None:
    """Refuses what is no address of the web. Whether it may be fetched is for Publisher to say."""
    if not address.isprintable() or any(map(str.isspace, address)):
        raise InvalidField(field, "must have neither spaces nor control characters", reason="URL_MALFORMED")
    try:
        parts = urlsplit(address)
        is_whole = parts.scheme.lower() in schemes and bool(parts.hostname)
    except ValueError:
        is_whole = False
    if not is_whole:
        raise InvalidField(
            field,
            f"must begin with {' or '.join(f'{each}://' for each in sorted(schemes))} and a host",
            reason="URL_MALFORMED",
        )
