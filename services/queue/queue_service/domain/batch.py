"""Batches of drafts that are added to queues: the items, and how they are split into transactions."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime

from servicekit.record import record

CHUNK = 250
"""The most items in a transaction: its locks are held for some ten milliseconds."""


@record(frozen=True, slots=True, kw_only=True)
class Item:
    """A draft on one account, at the next free slot time or at a time of the caller's choice."""

    draft_id: str
    social_account_id: str
    schedule_time: datetime | None = None


def chunks(items: Sequence[Item]) -> list[list[int]]:
    """Splits items into transactions, each a list of places in the batch; it depends on nothing but the items.

    The items of an account stay in their order. Those of different accounts do not concern each other, so an account's
    items come together, to lock it as seldom as possible.
    """
    by_account = defaultdict[str, list[int]](list)
    for place, item in enumerate(items):
        by_account[item.social_account_id].append(place)
    places = [place for account in sorted(by_account) for place in by_account[account]]
    return [places[first : first + CHUNK] for first in range(0, len(places), CHUNK)]
