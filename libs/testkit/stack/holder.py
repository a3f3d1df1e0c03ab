"""A holder, who holds the whole organization, a provider or a brand for a moment, again and again."""

import asyncio
from random import Random

from testkit.stack.posting import Posting
from testkit.stack.stops import EVERYTHING, Scope

BRANDS = ("", "bakery", "dairy")
"""Brands of drafts; some have none."""
HELD = {
    "all": EVERYTHING,
    "sandbox": Scope(provider="sandbox"),
    "container": Scope(provider="sandbox-container"),
    "bakery": Scope(brand_id="bakery"),
    "dairy": Scope(brand_id="dairy"),
}


class Holder:
    """Holds under ids of its own, so that the holds of several holders may cover the same posts."""

    def __init__(self, posting: Posting, name: str, chance: Random) -> None:
        self._posting = posting
        self._name = name
        self._chance = chance

    async def rage(self, until: asyncio.Event) -> None:
        while not until.is_set():
            await asyncio.sleep(self._chance.uniform(1, 5))
            thing = self._chance.choice(list(HELD))
            hold_id = f"{self._name}-{thing}"
            await self._posting.stopping.hold(hold_id, self._posting.new_request_id(), HELD[thing])
            await asyncio.sleep(self._chance.uniform(0.2, 1.5))
            await self._posting.stopping.release(hold_id, self._posting.new_request_id())
