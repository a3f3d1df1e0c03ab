"""Addresses and header lines of e-mails: ASCII, and on one line, so that nothing begins another header."""

import re
from typing import Final

_LONGEST_ADDRESS: Final = 254
_LONGEST_LOCAL_PART: Final = 64

# The dot-atom of RFC 5322 at a name with a dot: no quoted local parts, no literal addresses, no comments.
ADDRESS_PATTERN: Final = (
    r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*"
    r"@([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
)
_ADDRESS: Final = re.compile(ADDRESS_PATTERN)
# C0, DEL, C1, and what Unicode calls a line's end: a mail program may take any of them for one.
_LINE_BREAKING: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def is_address(text: str) -> bool:
    """Returns whether the text is a plain e-mail address."""
    if len(text) > _LONGEST_ADDRESS or not _ADDRESS.fullmatch(text):
        return False
    return len(text.partition("@")[0]) <= _LONGEST_LOCAL_PART


def domain_of(address: str) -> str:
    return address.rpartition("@")[2].lower()


def is_one_line(text: str) -> bool:
    """Returns whether the text may stand in a header."""
    return not _LINE_BREAKING.search(text)
