"""The slots that a list shows, and where a page of it begins."""

from dataclasses import dataclass
from datetime import datetime

from queue_service.domain.frontier import EPOCH
from queue_service.domain.slot import SlotState


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
