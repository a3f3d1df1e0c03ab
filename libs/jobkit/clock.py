"""The time of this machine, for stores that have no clock of their own."""

from datetime import UTC, datetime


def system_now() -> datetime:
    return datetime.now(UTC)
