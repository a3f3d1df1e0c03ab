"""The slots that a list shows, and where a page of it begins."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from queue_service.domain.frontier import EPOCH
from queue_service.domain.slot import LIVE, SlotState


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Selects slots. An empty field, or no state, selects all."""

    organization_id: str
    social_account_id: str = ""
    draft_id: str = ""
    states: tuple[SlotState, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """The place of a slot in a list, which is ordered by time, then id."""

    schedule_time: datetime = EPOCH
    slot_id: str = ""


def list_states(states: Iterable[SlotState]) -> list[str]:
    """Returns the states as lists of slots are indexed: those of live slots are one."""
    return sorted({"LIVE" if state in LIVE else state.value for state in states})
