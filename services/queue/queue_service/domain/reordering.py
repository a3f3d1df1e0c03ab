"""A new order of a queue, which gives the times of its SCHEDULED slots to them in that order."""

from collections.abc import Mapping
from dataclasses import dataclass

from queue_service.domain.arrangement import Arrangement, SeatedSlot, Snapshot, seated
from queue_service.domain.slot import MoveReason, SlotState
from servicekit.faults import InvalidField, InvalidRequest, NotFound, Refused


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Slots in a new order, named by their ids or by their drafts."""

    slot_ids: tuple[str, ...] = ()
    draft_ids: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return self.slot_ids or self.draft_ids

    @property
    def is_by_draft(self) -> bool:
        return bool(self.draft_ids)

    def name_of(self, slot: SeatedSlot) -> str:
        return slot.draft_id if self.is_by_draft else slot.slot_id


def check_order(order: Order) -> None:
    if order.slot_ids and order.draft_ids:
        raise InvalidField("draft_ids", "cannot be given together with slot_ids")


def reorder(snapshot: Snapshot, order: Order, ended: Mapping[str, SlotState]) -> Arrangement:
    """`ended` has the states of the account's ended slots that the order names."""
    slots = {order.name_of(slot): slot for slot in snapshot.slots}
    named: dict[str, SeatedSlot] = {}
    for name in order.names:
        slot = slots.get(name)
        if slot is None:
            raise _not_scheduled(order, name, ended[name]) if name in ended else _not_found(order, name)
        if name in named:
            raise _wrong("REORDER_REPEATED", f"slot {slot.slot_id} is named twice", slot)
        if slot.sent_job_id:
            continue  # it keeps its seat, and callers may not know yet
        if not slot.is_scheduled:
            raise _not_scheduled(order, name, slot.state, slot)
        named[name] = slot
    scheduled = snapshot.scheduled
    for slot in scheduled:
        if order.name_of(slot) not in named:
            raise _wrong("REORDER_INCOMPLETE", f"slot {slot.slot_id} of draft {slot.draft_id} is missing", slot)
    seats = [slot.seat for slot in scheduled]
    return Arrangement(moves=seated(zip(named.values(), seats, strict=True), MoveReason.REORDERED))


def _wrong(reason: str, message: str, slot: SeatedSlot) -> InvalidRequest:
    return InvalidRequest(reason, message, metadata={"slot_id": slot.slot_id, "draft_id": slot.draft_id})


def _not_found(order: Order, name: str) -> NotFound:
    if order.is_by_draft:
        return NotFound("SLOT_NOT_FOUND", f"draft {name} has no slot on the account", metadata={"draft_id": name})
    return NotFound("SLOT_NOT_FOUND", f"the account has no slot {name}", metadata={"slot_id": name})


def _not_scheduled(order: Order, name: str, state: SlotState, slot: SeatedSlot | None = None) -> Refused:
    named = {"draft_id": name} if order.is_by_draft else {"slot_id": name}
    found = {"slot_id": slot.slot_id, "draft_id": slot.draft_id} if slot else {}
    what = f"the slot of draft {name}" if order.is_by_draft else f"slot {name}"
    return Refused("SLOT_NOT_SCHEDULED", f"{what} is {state}", metadata={**named, **found, "state": state})
