"""Rules of LinkedIn for profiles and pages.

https://learn.microsoft.com/linkedin/marketing/community-management/shares/posts-api
"""

from datetime import timedelta
from typing import Final

from channels.rules import (
    ChannelRules,
    DocumentRule,
    FollowUpKind,
    FollowUpRule,
    ImageRule,
    LinkPlace,
    MediaRule,
    TextRule,
    VideoRule,
)

_MEBIBYTE: Final = 1024 * 1024

LINKEDIN_RULES: Final = ChannelRules(
    text=TextRule(most=3000),
    title=TextRule(most=400),
    link_in_text=LinkPlace.BESIDE_MEDIA,
    media=MediaRule(
        most=20,
        image=ImageRule(
            types=("image/jpeg", "image/png", "image/gif"), most_bytes=20 * _MEBIBYTE, most_pixels=36_152_320
        ),
        # LinkedIn takes 500 MB. But one answer names the addresses of all parts of 4 MB, and 64 KiB of it are read.
        video=VideoRule(
            types=("video/mp4",),
            most_bytes=200 * _MEBIBYTE,
            least_duration=timedelta(seconds=3),
            most_duration=timedelta(minutes=30),
        ),
        document=DocumentRule(types=("application/pdf",), most_bytes=100 * _MEBIBYTE),
    ),
    follow_ups=FollowUpRule(kind=FollowUpKind.COMMENT, most=10, text=TextRule(most=1250)),
)
