"""Places for work that users cause: bounded in all and per organization, and given out in turns."""

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Crowded(Exception):
    """Too many wait already."""


class Places:
    """`total` places, of which one organization has `share` at most.

    Those that wait take turns over organizations, so that a flood waits behind itself. At most `waiting` of an
    organization wait.
    """

    def __init__(self, total: int, *, share: int, waiting: int = 100) -> None:
        self._free = total
        self._share = share
        self._waiting = waiting
        self._taken: Counter[str] = Counter()
        self._lines: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @asynccontextmanager
    async def place(self, organization_id: str) -> AsyncIterator[None]:
        await self.take(organization_id)
        try:
            yield
        finally:
            self.give_back(organization_id)

    async def take(self, organization_id: str) -> None:
        """Waits for a place; the caller bounds the wait. Raises Crowded."""
        line = self._lines.get(organization_id, ())
        if not line and self._free and self._taken[organization_id] < self._share:
            self._grant(organization_id)
            return
        if len(line) >= self._waiting:
            raise Crowded
        turn = asyncio.get_running_loop().create_future()
        self._lines.setdefault(organization_id, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.give_back(organization_id)
            else:
                self._leave(organization_id, turn)
            raise

    def give_back(self, organization_id: str) -> None:
        self._free += 1
        self._taken[organization_id] -= 1
        if not self._taken[organization_id]:
            del self._taken[organization_id]
        while self._free and (next_one := self._next()) is not None:
            turn = self._lines[next_one].popleft()
            self._lines.move_to_end(next_one)
            self._drop_empty(next_one)
            if not turn.cancelled():  # its task has not run since, and still has to leave
                self._grant(next_one)
                turn.set_result(None)

    def _next(self) -> str | None:
        return next((each for each in self._lines if self._taken[each] < self._share), None)

    def _grant(self, organization_id: str) -> None:
        self._free -= 1
        self._taken[organization_id] += 1

    def _leave(self, organization_id: str, turn: "asyncio.Future[None]") -> None:
        if turn in self._lines.get(organization_id, ()):
            self._lines[organization_id].remove(turn)
            self._drop_empty(organization_id)

    def _drop_empty(self, organization_id: str) -> None:
        if not self._lines[organization_id]:
            del self._lines[organization_id]
