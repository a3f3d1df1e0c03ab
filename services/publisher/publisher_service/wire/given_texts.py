"""Texts that people give: what a post says, who says something for the record, why, and where a post is to be seen."""

import re

from channels.texts import is_blank
from servicekit.faults import InvalidField

_WEB_ADDRESS = re.compile(r"https?://\S+", re.IGNORECASE)


def require_words(field: str, text: str) -> str:
    """Refuses a text in which nothing is to be seen: it would stand there as if somebody had said something."""
    if is_blank(text):
        raise InvalidField(field, "must not be empty")
    return text


def require_web_address(field: str, text: str) -> str:
    """Refuses what is no address: people and programs follow it as a link. An empty one is none."""
    if text and not _WEB_ADDRESS.fullmatch(text):
        raise InvalidField(field, "must be an address that begins with https:// or http://")
    return text
