"""Values as text for a terminal."""

from datetime import timedelta


def printable(value: object) -> str:
    """Returns the value as text that a terminal does not obey: a producer may have written anything."""
    return str(value) if str(value).isprintable() else ascii(value)


def size(count: int) -> str:
    return f"{count / 1_000_000:.1f} MB" if count >= 1_000_000 else f"{count / 1000:.1f} kB"


def age(time: timedelta) -> str:
    return str(timedelta(seconds=round(time.total_seconds())))
