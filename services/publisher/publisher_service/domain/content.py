"""The content of a post, and what a channel gets of it."""

from collections.abc import Mapping
from dataclasses import field

from channels.texts import with_hashtags
from publisher_service.domain.media import MediaFacts
from servicekit.record import record


@record(frozen=True, slots=True, kw_only=True)
class ContentMedia:
    """A picture, a video or a document of a content."""

    url: str
    alt_text: str = ""
    # SHA-256 of the bytes that were approved, in lower-case hexadecimal; empty if nothing pins them.
    sha256: str = ""
    # What was found when it was fetched; None if nobody knows.
    facts: MediaFacts | None = None


@record(frozen=True, slots=True, kw_only=True)
class FollowUp:
    channel: str
    text: str


@record(frozen=True, slots=True, kw_only=True)
class Content:
    text: str
    hashtags: tuple[str, ...] = ()
    channel_texts: Mapping[str, str]
    title: str = ""
    link: str = ""
    media: tuple[ContentMedia, ...] = ()
    follow_ups: tuple[FollowUp, ...] = ()
    # By channel, what replaces the common media there.
    channel_media: Mapping[str, tuple[ContentMedia, ...]] = field(default_factory=dict)


@record(frozen=True, slots=True, kw_only=True)
class Message:
    """A post, or one of its follow-ups, as a channel gets it."""

    text: str
    title: str = ""
    link: str = ""
    media: tuple[ContentMedia, ...] = ()


def message_for(content: Content, channel: str, part: int = 0) -> Message | None:
    """Returns the post on a channel, or its n-th follow-up, which is a text alone; None if there is none."""
    if not part:
        text = text_for(content, channel)
        return Message(text=text, title=content.title, link=content.link, media=media_for(content, channel))
    texts = follow_ups_for(content, channel)
    return Message(text=texts[part - 1]) if part <= len(texts) else None


def is_alike(one: Message, other: Message, *, by_title: bool) -> bool:
    """Returns whether a list of posts may show one message as the other: it may show a link as text, and no title.

    `by_title`: it may show nothing but the title.
    """
    if by_title and one.title and one.title == other.title:
        return True
    if not one.text and not other.text:
        return one.media == other.media
    return not _shown(one).isdisjoint(_shown(other))


def _shown(message: Message) -> set[str]:
    """Returns the texts as which a message may be shown, without regard to white space."""
    return {" ".join(shown.split()) for shown in (message.text, f"{message.text} {message.link}")}


def text_for(content: Content, channel: str) -> str:
    """Returns the channel's own text, or the common one, followed by the hashtags."""
    return with_hashtags(content.channel_texts.get(channel, content.text), content.hashtags)


def media_for(content: Content, channel: str) -> tuple[ContentMedia, ...]:
    """Returns the channel's own media, or the common one."""
    return content.channel_media.get(channel, content.media)


def follow_ups_for(content: Content, channel: str) -> tuple[str, ...]:
    """Returns the texts of the follow-ups on a channel, in their order."""
    return tuple(each.text for each in content.follow_ups if each.channel == channel)
