"""Generates identifiers: UUIDv7 (RFC 9562), so that rows created together are stored together."""

import os
from typing import Protocol

from servicekit import clock

_RANDOM_AT_ONCE = 4096  # bytes; a system call per id would be half of its cost


class IdSource(Protocol):
    def new(self) -> str: ...


class Uuid7Source:
    """Generates ids that strictly grow within a process.

    A 12-bit counter orders the ids of a millisecond; when it is full, it continues in the next.
    """

    def __init__(self) -> None:
        self._last = 0
        self._random = memoryview(b"")

    def new(self) -> str:
        ticks = max(clock.wall_nanoseconds() // 1_000_000 << 12, self._last + 1)
        self._last = ticks
        if not self._random:
            self._random = memoryview(os.urandom(_RANDOM_AT_ONCE))
        random, self._random = int.from_bytes(self._random[:8]) & 0x3FFF_FFFF_FFFF_FFFF, self._random[8:]
        value = (ticks >> 12) << 80 | 0x7 << 76 | (ticks & 0xFFF) << 64 | 0b10 << 62 | random
        text = f"{value:032x}"
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
