"""Identifiers made here: UUIDv7 (RFC 9562), so that rows made together lie together."""

import os
import time
from typing import Protocol


class IdSource(Protocol):
    def new(self) -> str: ...


class Uuid7Source:
    """Strictly growing in a process: within one millisecond the 12-bit counter orders; full, it borrows the next."""

    def __init__(self) -> None:
        self._last = 0

    def new(self) -> str:
        ticks = max(time.time_ns() // 1_000_000 << 12, self._last + 1)
        self._last = ticks
        random = int.from_bytes(os.urandom(8)) & 0x3FFF_FFFF_FFFF_FFFF
        value = (ticks >> 12) << 80 | 0x7 << 76 | (ticks & 0xFFF) << 64 | 0b10 << 62 | random
        text = f"{value:032x}"
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
