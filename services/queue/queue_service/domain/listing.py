"""Which slots a list has, and where a page of it begins."""

from dataclasses import dataclass
from datetime import datetime

from queue_service.domain.frontier import EPOCH
from queue_service.domain.slot import SlotState


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """An empty field, or no state, chooses all."""

    organization_id: str
    social_account_id: str = ""
    draft_id: str = ""
    states: tuple[SlotState, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """Of a slot in a list, which is in the order of times, then ids."""

    schedule_time: datetime = EPOCH
    slot_id: str = ""
