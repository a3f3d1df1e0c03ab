"""Rules of webhooks: nearly anything goes, since the receiver decides."""

from collections.abc import Mapping
from typing import Final

from channels.rules import (
    ChannelRules,
    DestinationRule,
    DocumentRule,
    ImageRule,
    MediaRule,
    TextRule,
    VideoRule,
)

# Media goes by its URL: the receiver fetches it.
_MOST_BYTES: Final = 1024 * 1024 * 1024

WEBHOOK_RULES: Final[Mapping[str, ChannelRules]] = {
    "webhook": ChannelRules(
        text=TextRule(most=40_000),
        title=TextRule(most=1000),
        media=MediaRule(
            most=20,
            image=ImageRule(types=("image/jpeg", "image/png", "image/gif", "image/webp"), most_bytes=_MOST_BYTES),
            video=VideoRule(types=("video/mp4", "video/quicktime"), most_bytes=_MOST_BYTES),
            document=DocumentRule(types=("application/pdf",), most_bytes=_MOST_BYTES),
            may_mix=True,
        ),
        destination=DestinationRule(
            pattern=".*", description="any text, such as a place behind the receiver", is_required=False
        ),
    )
}
