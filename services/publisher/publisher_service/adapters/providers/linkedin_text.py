"""Texts of LinkedIn: what a reader is to see, written as the Posts API takes it ("little" text).

https://learn.microsoft.com/linkedin/marketing/community-management/shares/little-text-format
"""

import re
import unicodedata
from typing import Final

# Unescaped, a parenthesis cuts the post off where it stands, without an error.
_RESERVED: Final = re.compile(r"[\\|{}@\[\]()<>#*_~]")
# A sign before letters and digits of any script. The rest of its word decides whether it is a hashtag.
_SIGN: Final = re.compile(r"(?<![\w&#/])#([^\W_]+)")
_TOKEN: Final = re.compile(
    r"\\(?P<escaped>.)"
    r"|\{hashtag\|\\?(?P<sign>[#\uff03])\|(?P<tag>[^{}|]*)\}"
    r"|@\[(?P<name>[^\[\]]*)\]\([^()]*\)",
    re.DOTALL,
)


def little(text: str) -> str:
    """Returns the text in the format of the Posts API: its hashtags work, and everything else is shown as it is."""
    parts: list[str] = []
    end = 0
    for match in _SIGN.finditer(text):
        if _is_hashtag(match[1], text[match.end() : match.end() + 1]):
            parts += (_escaped(text[end : match.start()]), f"{{hashtag|\\#|{match[1]}}}")
            end = match.end()
    return "".join((*parts, _escaped(text[end:])))


def shown(commentary: str) -> str:
    """Returns what a reader sees of a text in the format of the Posts API."""
    return _TOKEN.sub(_shown_token, commentary)


def is_of(commentary: str, text: str) -> bool:
    """Returns whether a commentary that LinkedIn has returned is this text, as it was sent or as a reader sees it."""
    wanted = _trimmed(text)
    return wanted in (_trimmed(shown(commentary)), _trimmed(commentary))


def _is_hashtag(word: str, behind: str) -> bool:
    """Returns whether the word is a hashtag; `behind` is the character after it. Numbers alone are none."""
    if behind and (behind == "_" or unicodedata.category(behind).startswith("M")):
        return False  # the word goes on: a tag would be cut off in its middle
    return any(letter.isalpha() for letter in word)


def _escaped(text: str) -> str:
    return _RESERVED.sub(r"\\\g<0>", text)


def _shown_token(match: re.Match[str]) -> str:
    if match["escaped"] is not None:
        return match["escaped"]
    if match["tag"] is not None:
        return match["sign"] + shown(match["tag"])
    return shown(match["name"])


def _trimmed(text: str) -> str:
    """LinkedIn trims a text, and has one kind of line end."""
    return text.replace("\r\n", "\n").strip()
