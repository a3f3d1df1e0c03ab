"""What is said, and what of it one channel gets."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    text: str
    hashtags: tuple[str, ...] = ()
    channel_texts: Mapping[str, str]


def text_for(content: Content, channel: str) -> str:
    """The channel's own text if it has one, else the common text; the hashtags behind either."""
    text = content.channel_texts.get(channel, content.text)
    tags = " ".join(f"#{tag}" for tag in content.hashtags)
    return f"{text}\n\n{tags}" if tags else text
