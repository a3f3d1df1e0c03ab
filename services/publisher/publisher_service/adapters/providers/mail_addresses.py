"""Addresses and header lines of e-mails: ASCII, and on one line, so that nothing begins another header."""

import re
from typing import Final

# The dot-atom of RFC 5322 at a name with a dot: no quoted local parts, no literal addresses, no comments. The lengths
# are those of RFC 5321. What follows "=?" may be read as an encoded word, and so as another name.
ADDRESS_PATTERN: Final = (
    r"(?=.{3,254}$)(?=[^@]{1,64}@)(?![^@]*=\?)"
    r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*"
    r"@([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
)
_ADDRESS: Final = re.compile(ADDRESS_PATTERN)
# C0, DEL, C1, and what Unicode calls a line's end: a mail program may take any of them for one.
_LINE_BREAKING: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def is_address(text: str) -> bool:
    """Returns whether the text is a plain e-mail address."""
    return _ADDRESS.fullmatch(text) is not None


def domain_of(address: str) -> str:
    return address.rpartition("@")[2].lower()


def is_one_line(text: str) -> bool:
    """Returns whether the text may stand in a header."""
    return not _LINE_BREAKING.search(text)
