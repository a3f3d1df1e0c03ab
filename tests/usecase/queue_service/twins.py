"""Comparing two organizations that got the same orders: one together, the other one by one.

A draft's id is the organization, a point, and its name.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from postflow.queue.v1.queue_slot_pb2 import QueueSlot
from servicekit.faults import Fault

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue


async def stored(queue: "Queue", organization: str) -> list[Any]:
    """Returns what is stored of slots and accounts, without what differs by name."""
    slots = await queue.rows(
        """
        select split_part(draft_id, '.', 2), social_account_id, schedule_time, state, sequence, revision, channel
        from slot s join slot_target t on t.organization_id = s.organization_id and t.slot_id = s.id
        where s.organization_id = :organization order by sequence, social_account_id, channel
        """,
        organization=organization,
    )
    accounts = await queue.rows(
        """
        select social_account_id, next_due_time, last_sequence, search_from, full_from, full_until from account_queue
        where organization_id = :organization and last_sequence > 0 order by 1
        """,
        organization=organization,
    )
    return [*map(tuple, slots), *map(tuple, accounts)]


def comparable(outcomes: Sequence[Any]) -> list[Any]:
    """Names slots by their drafts and accounts, because their ids are different."""
    slots = {
        slot.id: (slot.draft_id.split(".")[1], slot.social_account_id)
        for outcome in outcomes
        if not isinstance(outcome, Fault)
        for slot in outcome
    }
    return [_refusal(each, slots) if isinstance(each, Fault) else [*map(_slot, each)] for each in outcomes]


def _slot(slot: QueueSlot) -> tuple[Any, ...]:
    targets = [each.target.channel for each in slot.targets]
    return slot.draft_id.split(".")[1], slot.social_account_id, slot.schedule_time.ToMicroseconds(), targets


def _refusal(fault: Fault, slots: dict[str, tuple[str, str]]) -> tuple[Any, ...]:
    metadata = dict(fault.metadata)
    if "queue_slot_id" in metadata:
        # The id of a slot that was there before is unknown here: its time and account identify it.
        metadata["queue_slot_id"] = str(slots.get(metadata["queue_slot_id"], "earlier"))
    metadata["draft_id"] = metadata.get("draft_id", "").rpartition(".")[2]
    return type(fault).__name__, fault.reason, tuple(sorted(metadata.items()))
