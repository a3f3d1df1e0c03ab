"""Validates compiled time zones (RFC 9636): zoneinfo hangs on some damaged files and crashes on others."""

import struct
from itertools import pairwise
from typing import NamedTuple

_HEADER = struct.Struct(">4sc15x6L")
_KIND = struct.Struct(">lBB")
_DAY = 86_400


class _Counts(NamedTuple):
    utc: int
    standard: int
    leaps: int
    changes: int
    kinds: int
    letters: int

    def size(self, bytes_of_time: int) -> int:
        times = self.changes * (bytes_of_time + 1) + self.leaps * (bytes_of_time + 4)
        return times + self.kinds * _KIND.size + self.letters + self.standard + self.utc


def require_compiled_zone(data: bytes) -> None:
    """Raises ValueError unless the data is one complete zone, of version 2 or later and without leap seconds."""
    short = _counts(data, 0)
    body = 2 * _HEADER.size + short.size(4)
    counts = _counts(data, body - _HEADER.size)
    footer = body + counts.size(8)
    _require(len(data) > footer and counts.kinds > 0 and counts.leaps == 0, "lengths")
    _require({counts.utc, counts.standard} <= {0, counts.kinds}, "indicators")
    instants = struct.unpack_from(f">{counts.changes}q", data, body)
    _require(all(earlier < later for earlier, later in pairwise(instants)), "order of changes")
    kinds_of_changes = body + counts.changes * 8
    kinds = kinds_of_changes + counts.changes
    _require(all(kind < counts.kinds for kind in data[kinds_of_changes:kinds]), "kinds of changes")
    letters = kinds + counts.kinds * _KIND.size
    for offset, is_summer, letter in _KIND.iter_unpack(data[kinds:letters]):
        _require(abs(offset) < _DAY and is_summer <= 1 and letter < counts.letters, "kinds of time")
    names = data[letters : letters + counts.letters]
    _require(names.isascii() and names.endswith(b"\0"), "abbreviations")
    rule = data[footer:]
    lines = rule.isascii() and rule.startswith(b"\n") and rule.endswith(b"\n") and rule.count(b"\n") == 2
    _require(lines and b"\0" not in rule, "rule for later")


def _counts(data: bytes, at: int) -> _Counts:
    _require(len(data) >= at + _HEADER.size, "length of the header")
    magic, version, *counts = _HEADER.unpack_from(data, at)
    _require(magic == b"TZif" and version in {b"2", b"3", b"4"}, "beginning")
    return _Counts(*counts)


def _require(right: bool, what: str) -> None:
    if not right:
        raise ValueError(f"not a compiled time zone: wrong {what}")
