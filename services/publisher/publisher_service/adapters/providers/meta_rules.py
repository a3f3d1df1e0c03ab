"""Rules of the channels of Facebook pages and Instagram.

https://developers.facebook.com/docs/pages-api/posts and
https://developers.facebook.com/docs/instagram-platform/content-publishing.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from channels.rules import (
    ChannelRules,
    FollowUpKind,
    FollowUpRule,
    ImageRule,
    MediaRule,
    TextRule,
    VideoRule,
)

_MB: Final = 1_000_000
_VIDEOS: Final = ("video/mp4", "video/quicktime")

# The link of a draft is ignored beside media: a post shows the one or the other.
FACEBOOK_RULES: Final[Mapping[str, ChannelRules]] = {
    "facebook": ChannelRules(
        text=TextRule(most=63_206),
        media=MediaRule(
            most=10,
            image=ImageRule(
                types=("image/jpeg", "image/png", "image/gif", "image/tiff", "image/bmp"), most_bytes=4 * _MB - 1
            ),
            # Of an upload in one request.
            video=VideoRule(types=_VIDEOS, most_bytes=1000 * _MB, most_duration=timedelta(minutes=20)),
        ),
        follow_ups=FollowUpRule(kind=FollowUpKind.COMMENT, most=1, text=TextRule(most=8000)),
    )
}
INSTAGRAM_RULES: Final[Mapping[str, ChannelRules]] = {
    "instagram_feed": ChannelRules(
        text=TextRule(most=2200),
        most_hashtags=30,
        most_mentions=20,
        takes_link=False,
        media=MediaRule(
            least=1,
            most=10,
            # Instagram scales a picture that is narrower than 320 pixels or wider than 1,440.
            image=ImageRule(
                types=("image/jpeg",),
                most_bytes=8 * _MB,
                least_ratio=0.8,
                most_ratio=1.91,
            ),
            video=VideoRule(
                types=_VIDEOS,
                most_bytes=300 * _MB,
                least_duration=timedelta(seconds=3),
                most_duration=timedelta(minutes=15),
            ),
            may_mix=True,
        ),
        follow_ups=FollowUpRule(kind=FollowUpKind.COMMENT, most=1, text=TextRule(most=300)),
    ),
    "instagram_story": ChannelRules(
        text=TextRule(most=2200, is_shown=False),
        takes_link=False,
        media=MediaRule(
            least=1,
            most=1,
            image=ImageRule(types=("image/jpeg",), most_bytes=8 * _MB),
            video=VideoRule(
                types=_VIDEOS,
                most_bytes=100 * _MB,
                least_duration=timedelta(seconds=3),
                most_duration=timedelta(seconds=60),
            ),
        ),
    ),
}
