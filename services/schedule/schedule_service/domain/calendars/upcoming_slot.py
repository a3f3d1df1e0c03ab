"""The slots that Queue has allocated, as far as Schedule needs them: a schedule with upcoming slots is not deleted."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from civil.wall_clock import resolve
from civil.zones import find_zone, zone_names
from servicekit import versions
from servicekit.faults import Refused

MOST_COUNTED = 1000
"""Counting stops here: a larger number would tell the caller no more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpcomingSlot:
    organization_id: str
    slot_id: str
    social_account_id: str
    revision: int  # orders the events of one slot
    schedule_time: datetime
    time_zone: str = ""  # empty: Queue did not send it, or the account had no schedule
    nominal: datetime | None = None  # the wall-clock time of its weekly slot; None: it comes from no weekly slot
    is_canceled: bool = False


class NominalSlot(NamedTuple):
    """A slot that has to keep a wall-clock time."""

    schedule_time: datetime
    time_zone: str
    nominal: datetime

    @property
    def has_moved(self) -> bool:
        """Returns whether the current tzdata moves the slot; False if tzdata lacks the zone."""
        if self.time_zone not in zone_names():
            return False
        resolved = resolve(self.nominal, find_zone(self.time_zone))
        return resolved is not None and resolved.instant != self.schedule_time


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotsAhead:
    """The upcoming slots of one account."""

    count: int  # MOST_COUNTED stands for that many or more
    last_time: datetime | None


def newest(received: Iterable[UpcomingSlot]) -> list[UpcomingSlot]:
    """Returns each slot once, at its highest revision, sorted by organization and id.

    Of two events with one revision, a cancellation is the newer.
    """
    canceled_last = sorted(received, key=lambda slot: slot.is_canceled, reverse=True)
    return sorted(versions.newest(canceled_last, key=_key, version=lambda slot: slot.revision), key=_key)


def _key(slot: UpcomingSlot) -> tuple[str, str]:
    return (slot.organization_id, slot.slot_id)


def require_none_ahead(ahead: SlotsAhead, social_account_id: str) -> None:
    if ahead.last_time is None:
        return
    last_time = ahead.last_time.isoformat().replace("+00:00", "Z")
    raise Refused(
        "SCHEDULE_HAS_SLOTS",
        f"the account has {_counted(ahead.count)} ahead, the last at {last_time}; "
        "allocated slots keep their times when the schedule is deleted with force",
        metadata={
            "social_account_id": social_account_id,
            "slot_count": str(ahead.count),
            "latest_schedule_time": last_time,
        },
    )


def _counted(count: int) -> str:
    if count == 1:
        return "1 slot"
    return f"{count} or more slots" if count == MOST_COUNTED else f"{count} slots"
