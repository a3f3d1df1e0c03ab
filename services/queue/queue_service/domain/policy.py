"""Limits and periods that an operator can set; they are explained in `settings`."""

from dataclasses import dataclass
from datetime import timedelta

MOST_LEAD = timedelta(days=1)
"""No slot is dispatched longer before its time, so a list of dispatched slots reads none that are later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    notice: timedelta = timedelta(seconds=60)
    lead: timedelta = timedelta(seconds=30)
    late_limit: timedelta = timedelta(hours=24)
    batch: int = 500
    pool: int = 2000
    per_account: int = 4
    open_slots: int = 100
