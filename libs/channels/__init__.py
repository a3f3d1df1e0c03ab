"""The surfaces on which a post can appear, each with its one spelling, and what a send there counts as."""

from collections.abc import Mapping
from enum import StrEnum

KNOWN = (
    "bluesky",
    "email",
    "facebook",
    "instagram_feed",
    "instagram_story",
    "linkedin_connection",
    "linkedin_inmail",
    "linkedin_message",
    "linkedin_page",
    "linkedin_profile",
    "mastodon",
    "telegram",
    "threads",
    "webhook",
)

_SPELLINGS = {"instagram": "instagram_feed", "linkedin": "linkedin_profile"} | {name: name for name in KNOWN}


class Action(StrEnum):
    """A kind of send, for daily caps and spacing. All but a post go to one person: outreach."""

    POST = "POST"
    EMAIL = "EMAIL"
    MESSAGE = "MESSAGE"
    CONNECTION_REQUEST = "CONNECTION_REQUEST"
    INMAIL = "INMAIL"


_OUTREACH: Mapping[str, Action] = {
    "email": Action.EMAIL,
    "linkedin_connection": Action.CONNECTION_REQUEST,
    "linkedin_inmail": Action.INMAIL,
    "linkedin_message": Action.MESSAGE,
}


class UnknownChannel(ValueError):
    def __init__(self, name: str) -> None:
        super().__init__(f"unknown channel; the known ones are {', '.join(KNOWN)}")
        self.name = name


def normalise(name: str) -> str:
    """Returns the known spelling: `instagram_feed` for `Instagram ` and `instagram`. Raises UnknownChannel."""
    try:
        return _SPELLINGS[name.strip().lower()]
    except KeyError:
        raise UnknownChannel(name) from None


def action_of(channel: str, _destination: str = "", /) -> Action:
    """Returns what a send to this destination of a channel, in its known spelling, counts as.

    So far the channel alone says it: one that reaches people as well as the public has a destination that tells.
    """
    return _OUTREACH.get(channel, Action.POST)
