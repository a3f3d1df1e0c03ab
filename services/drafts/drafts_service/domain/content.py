"""What is said, and which contents make sense."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

from drafts_service.domain.target import Target, known_channel
from servicekit.faults import InvalidField

MOST_BYTES = 160 * 1024
"""Of an encoded content. An answer of 256 KiB holds it with its targets and what became of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelText:
    channel: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    text: str
    hashtags: tuple[str, ...] = ()
    channel_texts: tuple[ChannelText, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """A content as it is stored and announced. What is approved and sent are exactly these bytes."""

    encoded: bytes
    digest: str

    @classmethod
    def of(cls, encoded: bytes) -> "Body":
        if len(encoded) > MOST_BYTES:
            raise InvalidField("draft.content", f"must be at most {MOST_BYTES} bytes in all, and is {len(encoded)}")
        return cls(encoded=encoded, digest=sha256(encoded).hexdigest())


def checked_content(content: Content, targets: Sequence[Target]) -> Content:
    """The content with the one spelling of its channels, if it can go to these (checked) targets."""
    if not any(each.isprintable() and not each.isspace() for each in content.text):
        raise InvalidField("draft.content.text", "must not be empty")
    addressed = {target.channel for target in targets}
    seen: set[str] = set()
    texts: list[ChannelText] = []
    for index, given in enumerate(content.channel_texts):
        field = f"draft.content.channel_texts[{index}].channel"
        channel = known_channel(given.channel, field)
        if channel in seen:
            raise InvalidField(field, f"{channel} has a text already")
        if channel not in addressed:
            raise InvalidField(field, f"no target is on {channel}")
        seen.add(channel)
        texts.append(replace(given, channel=channel))
    return replace(content, channel_texts=tuple(texts))
