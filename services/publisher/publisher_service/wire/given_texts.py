"""Texts that people give for the record: who says something, why, and where a post is to be seen."""

import re

from servicekit.faults import InvalidField

_WEB_ADDRESS = re.compile(r"https?://\S+", re.IGNORECASE)


def require_words(field: str, text: str) -> str:
    """Refuses a text of nothing but spaces: it would stand in the record as if somebody had said something."""
    if not text.strip():
        raise InvalidField(field, "is required")
    return text


def require_web_address(field: str, text: str) -> str:
    """Refuses what is no address: people and programs follow it as a link. An empty one is none."""
    if text and not _WEB_ADDRESS.fullmatch(text):
        raise InvalidField(field, "must be an address that begins with https:// or http://")
    return text
