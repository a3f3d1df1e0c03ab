"""The surfaces on which a post can appear, and the one spelling of each."""

KNOWN = (
    "bluesky",
    "email",
    "facebook",
    "instagram_feed",
    "instagram_story",
    "linkedin_page",
    "linkedin_profile",
    "mastodon",
    "telegram",
    "threads",
)

_SPELLINGS = {"instagram": "instagram_feed", "linkedin": "linkedin_profile"} | {name: name for name in KNOWN}


class UnknownChannel(ValueError):
    def __init__(self, name: str) -> None:
        super().__init__(f"unknown channel; the known ones are {', '.join(KNOWN)}")
        self.name = name


def normalise(name: str) -> str:
    """`Instagram ` and `instagram` are `instagram_feed`."""
    try:
        return _SPELLINGS[name.strip().lower()]
    except KeyError:
        raise UnknownChannel(name) from None
