"""The slots that a list shows, and where a page of it begins."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from queue_service.domain.frontier import EPOCH
from queue_service.domain.slot import LIVE, SlotState
from servicekit.faults import InvalidField


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Selects slots. An empty field, or no state, selects all."""

    organization_id: str
    social_account_id: str = ""
    draft_id: str = ""
    states: tuple[SlotState, ...] = ()
    # Slots from `start_time` on, up to those before `end_time`.
    start_time: datetime | None = None
    end_time: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """The place of a slot in a list, which is ordered by time, then id."""

    schedule_time: datetime = EPOCH
    slot_id: str = ""

    def within(self, wanted: Filter) -> "Position":
        """Returns the later of this place and the one just before the first slot that is wanted."""
        if wanted.start_time is None or wanted.start_time <= self.schedule_time:
            return self
        return Position(schedule_time=wanted.start_time)


def check_span(wanted: Filter) -> None:
    """Refuses instants in the wrong order, which would select nothing."""
    if wanted.start_time is not None and wanted.end_time is not None and wanted.end_time < wanted.start_time:
        raise InvalidField("end_time", "is before the start_time")


def list_states(states: Iterable[SlotState]) -> list[str]:
    """Returns the states as lists of slots are indexed: those of live slots are one."""
    return sorted({"LIVE" if state in LIVE else state.value for state in states})
