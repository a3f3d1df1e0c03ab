"""The clock of the machine, for stores that have none of their own."""

from datetime import UTC, datetime


def system_now() -> datetime:
    return datetime.now(UTC)
