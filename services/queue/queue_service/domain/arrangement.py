"""Rearrangements of one account's queue: which slots get which seats, and which are canceled.

A slot stays its draft's forever; seats change hands. The functions that decide take a snapshot and return an
arrangement. They neither read nor write, so that a plan shows what the change itself would do.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

from queue_service.domain.account import AccountKey, AccountQueue
from queue_service.domain.allocation import reopened_by
from queue_service.domain.seat import Seat
from queue_service.domain.slot import CancelReason, MoveReason, SlotOrigin, SlotState


class SeatedSlot(NamedTuple):
    """A live slot on its seat."""

    slot_id: str
    draft_id: str
    state: SlotState
    seat: Seat
    category_id: str = ""
    # The post job of the slot that PublishNow sends: it is too late for any change of the slot. Empty as a rule.
    sent_job_id: str = ""

    @property
    def time(self) -> datetime:
        return self.seat.time

    @property
    def is_scheduled(self) -> bool:
        return self.state is SlotState.SCHEDULED and not self.sent_job_id

    @property
    def is_pinned(self) -> bool:
        """Returns whether a caller or the draft chose its time."""
        return self.seat.origin is not SlotOrigin.QUEUE

    @property
    def can_shift(self) -> bool:
        """Returns whether it may move when others do."""
        return self.is_scheduled and not self.is_pinned


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The queue of an account with its live slots, earliest first."""

    account: AccountKey
    queue: AccountQueue
    slots: tuple[SeatedSlot, ...] = ()
    # The times of ended slots that use up the daily cap, from two days ago on; none are needed without a cap.
    counted: tuple[datetime, ...] = ()

    @property
    def scheduled(self) -> list[SeatedSlot]:
        return [slot for slot in self.slots if slot.is_scheduled]

    @property
    def shiftable(self) -> list[SeatedSlot]:
        return [slot for slot in self.slots if slot.can_shift]

    def taken_back(self, slot_ids: Collection[str] | None = None) -> "Snapshot":
        """Returns the queue once Publisher has given back its dispatched slots, or these of them."""
        slots = tuple(
            slot._replace(state=SlotState.SCHEDULED) if slot_ids is None or slot.slot_id in slot_ids else slot
            for slot in self.slots
        )
        return replace(self, slots=slots)

    def find(self, slot_id: str) -> SeatedSlot | None:
        return next((slot for slot in self.slots if slot.slot_id == slot_id), None)


class Move(NamedTuple):
    slot: SeatedSlot
    seat: Seat
    reason: MoveReason


class Cancellation(NamedTuple):
    slot: SeatedSlot
    reason: CancelReason


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrangement:
    """The slots that get other seats, those that are canceled, and seats for new slots."""

    moves: tuple[Move, ...] = ()
    cancellations: tuple[Cancellation, ...] = ()
    additions: tuple[Seat, ...] = ()

    @property
    def changes_anything(self) -> bool:
        return bool(self.moves or self.cancellations or self.additions)

    @property
    def freed_times(self) -> list[datetime]:
        """Returns the times that had a slot and have none now, in order. A permutation frees none."""
        had = Counter([*(move.slot.time for move in self.moves), *(each.slot.time for each in self.cancellations)])
        have = Counter([*(move.seat.time for move in self.moves), *(seat.time for seat in self.additions)])
        return sorted(had - have)


NO_CHANGE = Arrangement()


@dataclass(frozen=True, slots=True, kw_only=True)
class CanceledSlot:
    """A canceled slot with everything that is announced about it."""

    organization_id: str
    id: str
    revision: int
    draft_id: str
    social_account_id: str
    sequence: int
    schedule_time: datetime
    traceparent: str
    reason: CancelReason
    # As (channel, destination).
    targets: tuple[tuple[str, str], ...]


def seated(slots: Iterable[tuple[SeatedSlot, Seat]], reason: MoveReason) -> tuple[Move, ...]:
    """Returns the moves that give each slot its seat; a slot that has it already does not move."""
    return tuple(Move(slot, seat, reason) for slot, seat in slots if slot.seat != seat)


def freed_stretches(
    queue: AccountQueue, freed: Iterable[datetime], *, earliest: datetime
) -> list[tuple[datetime, datetime]]:
    """Returns where slot times may be free again, as `AccountQueue.reopened` takes them; none before `earliest`."""
    stretches = (
        reopened_by(
            time, SlotState.SCHEDULED, SlotState.CANCELED, cap=queue.max_posts_per_day, time_zone=queue.time_zone
        )
        for time in freed
    )
    return [each for each in stretches if each and each[1] > earliest]


def slots_from(slots: list[SeatedSlot], time: datetime) -> list[SeatedSlot]:
    """Returns the slots, which are in order, from that time on."""
    return slots[bisect_left(slots, time, key=lambda slot: slot.time) :]
