"""The content of a post, and the text that a channel gets of it."""

from collections.abc import Mapping

from servicekit.record import record


@record(frozen=True, slots=True, kw_only=True)
class Content:
    text: str
    hashtags: tuple[str, ...] = ()
    channel_texts: Mapping[str, str]


def text_for(content: Content, channel: str) -> str:
    """Returns the channel's own text, or the common one, followed by the hashtags."""
    text = content.channel_texts.get(channel, content.text)
    tags = " ".join(f"#{tag}" for tag in content.hashtags)
    return f"{text}\n\n{tags}" if tags else text
