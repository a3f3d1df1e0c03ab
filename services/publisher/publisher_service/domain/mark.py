"""Marks: how far each process of Publisher has come on the database, kept outside of it.

A process counts its claims and heartbeats in a row of its own. A database that lacks what a mark names is older than
the one on which the process has worked.
"""

from collections.abc import Iterable
from datetime import datetime

from servicekit.record import record


@record(frozen=True, slots=True, kw_only=True)
class Mark:
    process: str
    number: int
    # When that was committed, by the database's clock.
    time: datetime


def highest(marks: Iterable[Mark]) -> dict[str, Mark]:
    """Returns the highest mark of each process."""
    found: dict[str, Mark] = {}
    for mark in marks:
        known = found.get(mark.process)
        if known is None or known.number < mark.number:
            found[mark.process] = mark
    return found
