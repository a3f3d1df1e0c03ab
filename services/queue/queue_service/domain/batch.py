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


Chunk = list[int]
"""The places, in the batch, of the items of a transaction."""


def lines(items: Sequence[Item]) -> list[list[Chunk]]:
    """Splits items into chunks, which depend on nothing but the items.

    The chunks of a line are carried out in their order, which is that of the items of each account. Lines share no
    account, so they may be carried out at the same time. An account's items come together, to lock it as seldom as
    possible.
    """
    by_account = defaultdict[str, Chunk](list)
    for place, item in enumerate(items):
        by_account[item.social_account_id].append(place)
    found: list[list[Chunk]] = []
    for _, places in sorted(by_account.items()):
        if found and len(found[-1][-1]) + len(places) <= CHUNK:
            found[-1][-1].extend(places)
        else:
            found.append([places[first : first + CHUNK] for first in range(0, len(places), CHUNK)])
    return found
