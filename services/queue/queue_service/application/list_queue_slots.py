"""Listing slots in the order of their times, page by page."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncConnection

from queue_service.adapters.postgres.slots import list_slots
from queue_service.domain.listing import Filter, Position, check_span
from queue_service.domain.policy import MOST_LEAD
from queue_service.domain.slot import QueueSlot, SlotState
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotPage:
    slots: tuple[QueueSlot, ...]
    # Where the next page begins; None on the last one.
    last: Position | None


class ListQueueSlots:
    def __init__(self, database: Database, clock: DatabaseClock) -> None:
        self._database = database
        self._clock = clock

    async def __call__(self, wanted: Filter, *, after: Position, size: int) -> SlotPage:
        check_span(wanted)
        async with self._database.read() as connection:
            until = await self._dispatched_until(connection, wanted)
            slots = await list_slots(connection, wanted, after=after, size=size + 1, dispatched_until=until)
        shown = tuple(slots[:size])
        has_more = len(slots) > size
        last = Position(schedule_time=shown[-1].schedule_time, slot_id=shown[-1].id) if has_more else None
        return SlotPage(slots=shown, last=last)

    async def _dispatched_until(self, connection: AsyncConnection, wanted: Filter) -> datetime | None:
        """Returns the latest time that a dispatched slot can have; None if the list has SCHEDULED slots, too."""
        if not wanted.states or SlotState.SCHEDULED in wanted.states:
            return None
        return await self._clock.now(connection) + MOST_LEAD
