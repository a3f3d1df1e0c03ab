"""Texts as they are sent, with what is put behind them, and as they are seen."""

from collections.abc import Sequence


def with_hashtags(text: str, hashtags: Sequence[str]) -> str:
    """Returns the text with the hashtags of its draft behind it; beside media there may be no text."""
    if not hashtags:
        return text
    tags = " ".join(f"#{tag}" for tag in hashtags)
    return tags if is_blank(text) else f"{text}\n\n{tags}"


def with_link(text: str, link: str) -> str:
    """Returns the text with the link below it, unless it is in the text already."""
    return f"{text}\n\n{link}".strip() if link and link not in text else text


def is_blank(text: str) -> bool:
    """Returns whether nothing is to be seen in a text: networks refuse such a text as an empty one."""
    return not any(each.isprintable() and not each.isspace() for each in text)
