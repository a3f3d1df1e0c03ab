"""The answer of a call that has rearranged a queue."""

from dataclasses import dataclass

from queue_service.domain.slot import QueueSlot

LISTED = 200
"""The most slots in an answer. A queue may have thousands, and its list shows them page by page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rearranged:
    """The queue's new etag, the slots that have moved, earliest first, and what belongs to a single call."""

    etag: str
    moved: tuple[QueueSlot, ...] = ()
    # The slot that the call named.
    slot: QueueSlot | None = None
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleared:
    """The number of slots that were canceled, and the slots for which it was too late."""

    etag: str
    canceled: int
    too_late: tuple[QueueSlot, ...] = ()
