"""Listing slots in the order of their times, page by page."""

from dataclasses import dataclass

from queue_service.adapters.postgres.slots import list_slots
from queue_service.domain.listing import Filter, Position
from queue_service.domain.slot import QueueSlot
from servicekit.pg.database import Database


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotPage:
    slots: tuple[QueueSlot, ...]
    # Where the next page begins; None on the last one.
    last: Position | None


class ListQueueSlots:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def __call__(self, wanted: Filter, *, after: Position, size: int) -> SlotPage:
        async with self._database.read() as connection:
            slots = await list_slots(connection, wanted, after=after, size=size + 1)
        shown = tuple(slots[:size])
        has_more = len(slots) > size
        last = Position(schedule_time=shown[-1].schedule_time, slot_id=shown[-1].id) if has_more else None
        return SlotPage(slots=shown, last=last)
