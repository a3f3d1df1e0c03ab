"""Rules of the sandbox, which takes nearly anything, on every channel."""

from collections.abc import Mapping
from typing import Final

import channels
from channels.rules import (
    ChannelRules,
    DestinationRule,
    DocumentRule,
    FollowUpKind,
    FollowUpRule,
    ImageRule,
    MediaRule,
    TextRule,
    VideoRule,
)

_TEXT: Final = TextRule(most=5000)
_MOST_BYTES: Final = 100 * 1024 * 1024
_RULES: Final = ChannelRules(
    text=_TEXT,
    title=TextRule(most=300),
    media=MediaRule(
        most=20,
        image=ImageRule(types=("image/jpeg", "image/png", "image/gif", "image/webp"), most_bytes=_MOST_BYTES),
        video=VideoRule(types=("video/mp4", "video/quicktime"), most_bytes=_MOST_BYTES),
        document=DocumentRule(types=("application/pdf",), most_bytes=_MOST_BYTES),
        may_mix=True,
    ),
    follow_ups=FollowUpRule(kind=FollowUpKind.COMMENT, most=20, text=_TEXT),
    destination=DestinationRule(pattern=".*", description="any text", is_required=False),
)
SANDBOX_RULES: Final[Mapping[str, ChannelRules]] = dict.fromkeys(channels.KNOWN, _RULES)
