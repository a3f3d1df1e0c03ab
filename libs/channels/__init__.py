"""The surfaces on which a post can appear, each with its one spelling."""

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
    """Returns the known spelling: `instagram_feed` for `Instagram ` and `instagram`. Raises UnknownChannel."""
    try:
        return _SPELLINGS[name.strip().lower()]
    except KeyError:
        raise UnknownChannel(name) from None
