"""Rules of e-mails, no matter how they are sent."""

from collections.abc import Mapping
from typing import Final

from channels.rules import (
    ChannelRules,
    DestinationRule,
    DocumentRule,
    ImageRule,
    LinkPlace,
    MediaRule,
    TextRule,
    VideoRule,
)
from publisher_service.adapters.providers.mail_addresses import ADDRESS_PATTERN

MOST_ATTACHED: Final = 25_000_000
"""Bytes of all attachments together: most mail servers take no larger mail, and encoding adds a third."""

IMAGES: Final = ("image/jpeg", "image/png", "image/gif", "image/webp")
VIDEOS: Final = ("video/mp4", "video/quicktime")
DOCUMENTS: Final = ("application/pdf",)

EMAIL_RULES: Final = ChannelRules(
    text=TextRule(most=100_000, is_required=True),
    # The subject.
    title=TextRule(most=255, is_required=True),
    link_in_text=LinkPlace.ALWAYS,
    media=MediaRule(
        most=10,
        image=ImageRule(types=IMAGES, most_bytes=MOST_ATTACHED),
        video=VideoRule(types=VIDEOS, most_bytes=MOST_ATTACHED),
        document=DocumentRule(types=DOCUMENTS, most_bytes=MOST_ATTACHED),
        may_mix=True,
        most_bytes_together=MOST_ATTACHED,
    ),
    destination=DestinationRule(pattern=ADDRESS_PATTERN, description="one e-mail address, such as ada@example.com"),
)
SMTP_RULES: Final[Mapping[str, ChannelRules]] = {"email": EMAIL_RULES}
