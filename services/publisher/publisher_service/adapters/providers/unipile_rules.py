"""Rules of Unipile: e-mails of connected mailboxes, and three kinds of messages of LinkedIn accounts."""

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
from publisher_service.adapters.providers.mail_rules import DOCUMENTS, EMAIL_RULES, IMAGES, VIDEOS

EMAIL: Final = "email"
MESSAGE: Final = "linkedin_message"
INMAIL: Final = "linkedin_inmail"
CONNECTION: Final = "linkedin_connection"

# https://developer.unipile.com/docs/send-messages: 15 MB with a message.
MOST_ATTACHED: Final = 15_000_000
_MEDIA: Final = MediaRule(
    most=5,
    image=ImageRule(types=IMAGES, most_bytes=MOST_ATTACHED),
    video=VideoRule(types=VIDEOS, most_bytes=MOST_ATTACHED),
    document=DocumentRule(types=DOCUMENTS, most_bytes=MOST_ATTACHED),
    may_mix=True,
    most_bytes_together=MOST_ATTACHED,
)
_MEMBER: Final = DestinationRule(
    pattern=r"[^\s/?#%&]{3,200}",
    description="a LinkedIn member: the provider id (ACoAA...) as this account sees it, or the public identifier, "
    "which is the last part of the profile's address and costs a profile view",
)

UNIPILE_RULES: Final[Mapping[str, ChannelRules]] = {
    EMAIL: EMAIL_RULES,
    MESSAGE: ChannelRules(
        text=TextRule(most=8000, is_required=True),
        link_in_text=LinkPlace.ALWAYS,
        media=_MEDIA,
        destination=_MEMBER,
    ),
    INMAIL: ChannelRules(
        text=TextRule(most=1900, is_required=True),
        title=TextRule(most=200, is_required=True),
        link_in_text=LinkPlace.ALWAYS,
        media=_MEDIA,
        destination=_MEMBER,
    ),
    # The note is what counts: there is no room for a link below it.
    CONNECTION: ChannelRules(text=TextRule(most=300), takes_link=False, destination=_MEMBER),
}
