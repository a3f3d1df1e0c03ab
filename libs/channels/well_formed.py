"""Checks of a content that ask no channel for its rules: what is refused here is a draft on no channel. Pure."""

from collections.abc import Collection, Sequence
from typing import Final, Protocol
from urllib.parse import urlsplit

from channels import UnknownChannel, normalise
from channels.texts import is_blank


class Malformed(ValueError):
    """A field of the content, from the content on, and what is wrong with it in words for people."""

    def __init__(self, field: str, message: str, *, reason: str = "INVALID_FIELD") -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.message = message
        self.reason = reason


class GivenMedia(Protocol):
    @property
    def url(self) -> str: ...


class GivenText(Protocol):
    @property
    def channel(self) -> str: ...
    @property
    def text(self) -> str: ...


class GivenChannelMedia(Protocol):
    @property
    def channel(self) -> str: ...
    @property
    def media(self) -> Sequence[GivenMedia]: ...


class GivenContent(Protocol):
    """A content as a caller gives it: the message, or what a service makes of it."""

    @property
    def text(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def link(self) -> str: ...
    @property
    def media(self) -> Sequence[GivenMedia]: ...
    @property
    def channel_texts(self) -> Sequence[GivenText]: ...
    @property
    def follow_ups(self) -> Sequence[GivenText]: ...
    @property
    def channel_media(self) -> Sequence[GivenChannelMedia]: ...


def require_well_formed(content: GivenContent, addressed: Collection[str]) -> None:
    """Raises Malformed for the first field at fault. `addressed` are the channels of the targets, as they are known."""
    if not (content.media or any(each.media for each in content.channel_media)):
        _check_text("text", content.text)
    if not content.title.isprintable():
        raise Malformed("title", "must be one line of printable characters")
    if content.link:
        _check_address("link", content.link)
    _check_media("media", content.media)
    for index, text in enumerate(content.channel_texts):
        _check_text(f"channel_texts[{index}].text", text.text)
    _check_channels("channel_texts", [each.channel for each in content.channel_texts], addressed, "a text")
    for index, text in enumerate(content.follow_ups):
        _check_text(f"follow_ups[{index}].text", text.text)
        _addressed(f"follow_ups[{index}].channel", text.channel, addressed)
    _check_channels("channel_media", [each.channel for each in content.channel_media], addressed, "media")
    for index, own in enumerate(content.channel_media):
        _check_media(f"channel_media[{index}].media", own.media)


_SCHEMES: Final = frozenset({"http", "https"})


def _check_text(field: str, text: str) -> None:
    if is_blank(text):
        raise Malformed(field, "must not be empty")


def _check_channels(field: str, names: Sequence[str], addressed: Collection[str], what: str) -> None:
    """Refuses a channel that is named twice."""
    seen: set[str] = set()
    for index, name in enumerate(names):
        channel = _addressed(f"{field}[{index}].channel", name, addressed)
        if channel in seen:
            raise Malformed(f"{field}[{index}].channel", f"{channel} already has {what}")
        seen.add(channel)


def _addressed(field: str, name: str, addressed: Collection[str]) -> str:
    try:
        channel = normalise(name)
    except UnknownChannel as unknown:
        raise Malformed(field, str(unknown), reason="UNKNOWN_CHANNEL") from None
    if channel not in addressed:
        raise Malformed(field, f"no target is on {channel}")
    return channel


def _check_media(field: str, media: Sequence[GivenMedia]) -> None:
    seen: dict[str, int] = {}
    for index, each in enumerate(media):
        place = f"{field}[{index}].url"
        _check_address(place, each.url)
        if each.url in seen:
            raise Malformed(place, f"is the same as {field}[{seen[each.url]}].url")
        seen[each.url] = index


def _check_address(field: str, address: str) -> None:
    """Refuses what is no address of the web. Whether it may be fetched is for Publisher to say."""
    if not address.isprintable() or any(map(str.isspace, address)):
        raise Malformed(field, "must have neither spaces nor control characters", reason="URL_MALFORMED")
    try:
        parts = urlsplit(address)
        is_whole = parts.scheme.lower() in _SCHEMES and bool(parts.hostname)
    except ValueError:
        is_whole = False
    if not is_whole:
        schemes = " or ".join(f"{each}://" for each in sorted(_SCHEMES))
        raise Malformed(field, f"must begin with {schemes} and a host", reason="URL_MALFORMED")
