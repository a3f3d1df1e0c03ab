"""A bounded view of a file for parsers: each reads what it needs, and none can be made to read without end."""

import os
from typing import Final

_PAGE: Final = 64 * 1024
# A file that needs more is hostile: 500 pages are 32 MB, and a tag of a parser is one step.
_MOST_PAGES: Final = 500
_MOST_STEPS: Final = 50_000


class Unreadable(Exception):
    """The file is cut off, or is not what its first bytes say."""


class Window:
    def __init__(self, file: int, size: int) -> None:
        self._file = file
        self.size = size
        self._page = b""
        self._start = 0
        self._pages = 0
        self._steps = 0

    def at(self, offset: int, length: int) -> bytes:
        """Returns so many bytes, at most a page. Raises Unreadable if the file ends before, or has led us too far."""
        assert 0 <= length <= _PAGE
        self._steps += 1
        if not 0 <= offset <= self.size - length:
            raise Unreadable("it is cut off")
        if self._steps > _MOST_STEPS:
            raise Unreadable("it has too many parts")
        if not self._start <= offset <= self._start + len(self._page) - length:
            self._load(offset)
        begin = offset - self._start
        found = self._page[begin : begin + length]
        if len(found) < length:
            raise Unreadable("it is cut off")
        return found

    @property
    def has_led_far(self) -> bool:
        """Tells if a parser was stopped because it had read too much."""
        return self._steps > _MOST_STEPS or self._pages > _MOST_PAGES

    def number(self, offset: int, length: int, order: str = "big") -> int:
        return int.from_bytes(self.at(offset, length), "little" if order == "little" else "big")

    def _load(self, offset: int) -> None:
        self._pages += 1
        if self._pages > _MOST_PAGES:
            raise Unreadable("it has too many parts")
        self._page = os.pread(self._file, _PAGE, offset)
        self._start = offset
