"""Times and numbers in sentences."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

_UNITS = (("day", timedelta(days=1)), ("hour", timedelta(hours=1)), ("minute", timedelta(minutes=1)))


def instant(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def duration(length: timedelta) -> str:
    """Writes a length of time in its largest unit, rounded down."""
    for unit, size in _UNITS:
        if length >= size:
            return counted(length // size, unit)
    return counted(length // timedelta(seconds=1), "second")


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def listed(parts: Sequence[str]) -> str:
    """Joins parts as in "a, b and c"."""
    return " and ".join(filter(None, [", ".join(parts[:-1]), parts[-1]])) if parts else ""


def sentence(text: str) -> str:
    """Makes a sentence of a clause, which may end with a full stop already."""
    return text[:1].upper() + text[1:].removesuffix(".") + "."
