"""The content of a draft, and the rules that make it valid."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

from drafts_service.domain.target import Target, known_channel
from servicekit.faults import InvalidField

MOST_BYTES = 160 * 1024
"""The limit of the encoded content, so that its targets and their states also fit into a response of 256 KiB."""


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
    if not any(each.isprintable() and not each.isspace() for each in content.text):
        raise InvalidField("draft.content.text", "must not be empty")
    addressed = {target.channel for target in targets}
    seen: set[str] = set()
    texts: list[ChannelText] = []
    for index, given in enumerate(content.channel_texts):
        field = f"draft.content.channel_texts[{index}].channel"
        channel = known_channel(given.channel, field)
        if channel in seen:
            raise InvalidField(field, f"{channel} already has a text")
        if channel not in addressed:
            raise InvalidField(field, f"no target is on {channel}")
        seen.add(channel)
        texts.append(replace(given, channel=channel))
    return replace(content, channel_texts=tuple(texts))
