"""Making, storing and announcing new slots in the caller's transaction; dispatch is woken after the commit
if a slot is due soon."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta

from queue_service.adapters.postgres.slots import insert_slots
from queue_service.domain.booking import Place, book
from queue_service.domain.draft import Draft
from queue_service.domain.policy import Policy
from queue_service.domain.slot import QueueSlot
from queue_service.wire.announcements import slot_scheduled
from servicekit.ids import IdSource
from servicekit.pg.database import Transaction
from servicekit.pg.outbox import Outbox

# The dispatcher looks by itself every second, so it finds a slot in time that is due later. The rest is for a busy
# machine.
_LOOP_PERIOD = timedelta(seconds=5)


class SlotRecorder:
    def __init__(self, *, outbox: Outbox, ids: IdSource, policy: Policy, on_slots: Callable[[], None]) -> None:
        """`on_slots` is called when new slots have been committed that are to be dispatched soon."""
        self._outbox = outbox
        self._ids = ids
        self._policy = policy
        self._on_slots = on_slots

    def book(self, draft: Draft, places: Iterable[Place], *, traceparent: str, now: datetime) -> list[QueueSlot]:
        """Makes one slot of the draft for each place. The places' accounts are locked."""
        return [
            book(
                draft,
                place,
                slot_id=self._ids.new(),
                not_after=place.queue.latest(place.schedule_time, self._policy.late_limit),
                traceparent=traceparent,
                now=now,
            )
            for place in places
        ]

    async def store(self, tx: Transaction, slots: Sequence[QueueSlot], now: datetime) -> None:
        if slots:
            await insert_slots(tx, slots, now=now)
            await self._outbox.append(tx, [slot_scheduled(slot) for slot in slots], now=now)
            if min(slot.schedule_time for slot in slots) < now + self._policy.lead + _LOOP_PERIOD:
                tx.after_commit(self._on_slots)
