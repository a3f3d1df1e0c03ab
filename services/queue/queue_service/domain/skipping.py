"""Leaving the next free slot time of a queue empty, and taking that back."""

from dataclasses import replace
from datetime import datetime

from queue_service.domain.account import AccountQueue
from queue_service.domain.slot import SPACING
from servicekit.faults import Refused


def skip(queue: AccountQueue, now: datetime) -> AccountQueue:
    """Makes the next draft that is added to the end leave a time empty. Skipping twice skips one time."""
    return replace(queue, skip_next=True, skipped_times=_future(queue, now))


def undo(queue: AccountQueue, now: datetime) -> AccountQueue:
    """Takes back the skip or, if a draft has used it, frees the time that was skipped last."""
    skipped = _future(queue, now)
    if queue.skip_next:
        return replace(queue, skip_next=False, skipped_times=skipped)
    if not skipped:
        raise Refused("NOTHING_SKIPPED", "no time is skipped", metadata={"social_account_id": queue.social_account_id})
    return replace(queue, skipped_times=skipped[:-1]).reopened(skipped[-1], skipped[-1] + SPACING)


def _future(queue: AccountQueue, now: datetime) -> tuple[datetime, ...]:
    return tuple(time for time in queue.skipped_times if time > now)
