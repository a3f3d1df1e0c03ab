"""Generates identifiers: UUIDv7 (RFC 9562), so that rows created together are stored together."""

import os
from typing import Protocol

from servicekit import clock

_RANDOM_AT_ONCE = 4096  # bytes; a system call per id would be half of its cost
# The first digit of the tail carries the variant (0b10) and two random bits.
_VARIANTS = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}


class IdSource(Protocol):
    def new(self) -> str: ...


class Uuid7Source:
    """Generates ids that strictly grow within a process.

    A 12-bit counter orders the ids of a millisecond; when it is full, it continues in the next.
    """

    def __init__(self) -> None:
        self._last = 0
        self._tails: list[str] = []

    def new(self) -> str:
        ticks = max(clock.wall_nanoseconds() // 1_000_000 << 12, self._last + 1)
        self._last = ticks
        if not self._tails:
            self._tails = _random_tails()
        time = f"{ticks >> 12:012x}"
        return f"{time[:8]}-{time[8:]}-7{ticks & 0xFFF:03x}-{self._tails.pop()}"


def _random_tails() -> list[str]:
    """Returns the last 64 bits of many ids: the variant, and 62 random bits."""
    random = os.urandom(_RANDOM_AT_ONCE).hex()
    return [
        f"{_VARIANTS[random[at]]}{random[at + 1 : at + 4]}-{random[at + 4 : at + 16]}"
        for at in range(0, len(random), 16)
    ]
