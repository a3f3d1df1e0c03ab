"""Refuses calls for the first seconds of a safe mode, while nobody knows which posts may be out."""

from collections.abc import Mapping, Sequence

from publisher_service.adapters.postgres.keys import Key
from publisher_service.adapters.postgres.safe_modes import active_safe_mode
from publisher_service.domain.post_job import PostJob
from publisher_service.domain.restored import lacks_slot
from publisher_service.domain.safe_mode import SafeMode, Step
from publisher_service.domain.take_back import SlotPost
from servicekit.faults import Unavailable
from servicekit.pg.database import Transaction


async def require_reconciled(tx: Transaction) -> SafeMode | None:
    """Raises Unavailable until what may be out is in doubt: an answer would rest on what the copy shows.

    Returns the safe mode while it is on.
    """
    mode = await active_safe_mode(tx)
    if mode is not None and mode.step is not Step.LOOKS:
        raise Unavailable("RECONCILING", "Publisher's database was restored: it is not known yet what may be out")
    return mode


def require_slots(jobs: Mapping[Key, PostJob], posts: Sequence[SlotPost]) -> None:
    """Raises Unavailable if the copy lacks the slot of a post: its next command brings the slot, and what it knows."""
    for post in posts:
        job = jobs.get((post.organization_id, post.post_job_id))
        if job is None or lacks_slot(job, *post.order):
            raise Unavailable("RECONCILING", "Publisher's database was restored, and lacks the slot of a post")
