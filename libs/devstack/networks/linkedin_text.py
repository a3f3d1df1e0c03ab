"""The commentary of a post ("little" text), as LinkedIn reads it and shows it to people."""

import re

_RESERVED = frozenset("|{}@[]()<>#*_~")
_HASHTAG = re.compile(r"\{hashtag\|\\?#\|([^\W_]+)\}")
_MENTION = re.compile(r"@\[([^\]]*)\]\(urn:li:(?:person|organization):[\w-]+\)")
_PLAIN_HASHTAG = re.compile(r"#([^\W_]+)")


def read(commentary: str) -> str:
    """Returns the text; at a reserved character that is not escaped it ends, as it does in life."""
    seen: list[str] = []
    at = 0
    while at < len(commentary):
        letter = commentary[at]
        if letter == "\\" and at + 1 < len(commentary):
            seen.append(commentary[at + 1])
            at += 2
            continue
        element = _HASHTAG.match(commentary, at) or _PLAIN_HASHTAG.match(commentary, at)
        if element is not None:
            seen.append(f"#{element[1]}")
            at = element.end()
            continue
        if (mention := _MENTION.match(commentary, at)) is not None:
            seen.append(mention[1])
            at = mention.end()
            continue
        if letter in _RESERVED:
            break
        seen.append(letter)
        at += 1
    return "".join(seen)
