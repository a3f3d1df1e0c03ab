"""Makes compiled zones (RFC 9636) with rules of our choice, for tests of changes in the time zone data."""

import struct
from collections.abc import Sequence
from datetime import datetime, timedelta

_HEADER = struct.Struct(">4sc15x6l")
_LETTERS = b"LMT\0"


def compiled_zone(
    rule: str, *, offset: timedelta = timedelta(), changes: Sequence[tuple[datetime, timedelta]] = ()
) -> bytes:
    """Compiles a zone that begins with `offset`, changes to others at `changes`, and then follows `rule` forever.

    The rule has the syntax of POSIX TZ, such as `PST8PDT,M3.2.0,M11.1.0`.
    """
    offsets = list(dict.fromkeys([offset, *(changed for _, changed in changes)]))
    instants = [int(at.timestamp()) for at, _ in changes]
    kinds = [offsets.index(changed) for _, changed in changes]
    body = struct.pack(f">{len(instants)}q", *instants) + bytes(kinds)
    body += b"".join(struct.pack(">lBB", int(each.total_seconds()), 0, 0) for each in offsets) + _LETTERS
    empty = _HEADER.pack(b"TZif", b"2", 0, 0, 0, 0, 1, len(_LETTERS)) + struct.pack(">lBB", 0, 0, 0) + _LETTERS
    header = _HEADER.pack(b"TZif", b"2", 0, 0, 0, len(instants), len(offsets), len(_LETTERS))
    return empty + header + body + f"\n{rule}\n".encode()
