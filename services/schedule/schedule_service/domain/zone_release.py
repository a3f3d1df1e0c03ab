"""Time zone data by tzdata release: which data a stored time was computed with."""

from typing import NamedTuple

UNRECORDED = ""
"""The tzdata release of rows saved before Schedule recorded releases."""


class ZoneRelease(NamedTuple):
    """A time zone as one tzdata release defines it."""

    tzdata_version: str
    time_zone: str
