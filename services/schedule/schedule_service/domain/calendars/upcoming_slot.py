"""The slots that Queue has given out, as far as Schedule must know of them: a schedule with slots ahead is kept."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from civil.wall_clock import resolve
from civil.zones import find_zone, zone_names
from servicekit.faults import Refused

MOST_COUNTED = 1000
"""Beyond this many slots the number makes no difference to anybody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpcomingSlot:
    organization_id: str
    slot_id: str
    social_account_id: str
    revision: int  # orders what is heard of one slot
    schedule_time: datetime
    time_zone: str = ""  # empty: Queue did not say, or the account had no schedule
    nominal: datetime | None = None  # what its weekly slot asked for on the wall; None: it is no weekly slot's


class Meant(NamedTuple):
    """A slot that has a time on the wall to keep."""

    schedule_time: datetime
    time_zone: str
    nominal: datetime

    @property
    def has_moved(self) -> bool:
        """By the law in force it would stand elsewhere. Of a zone that is not known here a newer release can tell."""
        if self.time_zone not in zone_names():
            return False
        resolved = resolve(self.nominal, find_zone(self.time_zone))
        return resolved is not None and resolved.instant != self.schedule_time


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotsAhead:
    """Those of one account whose time has not come."""

    count: int  # MOST_COUNTED stands for that many or more
    last_time: datetime | None


def newest(heard: Iterable[UpcomingSlot]) -> list[UpcomingSlot]:
    """Each slot as its highest revision tells it, whatever the order in which they were heard."""
    slots: dict[tuple[str, str], UpcomingSlot] = {}
    for slot in heard:
        key = (slot.organization_id, slot.slot_id)
        if key not in slots or slots[key].revision < slot.revision:
            slots[key] = slot
    return [slots[key] for key in sorted(slots)]


def require_none_ahead(ahead: SlotsAhead, social_account_id: str) -> None:
    if ahead.last_time is None:
        return
    last_time = ahead.last_time.isoformat().replace("+00:00", "Z")
    raise Refused(
        "SCHEDULE_HAS_SLOTS",
        f"the account has {_counted(ahead.count)} ahead, the last at {last_time}; "
        "what was given out keeps its time when the schedule is deleted with force",
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
