"""Gathers what arrives at the same time: items that come while earlier ones are in flight are carried out in one batch.

An idle server carries out an item at once, with those that come in the same tick of the loop. Under load a batch holds
what has arrived meanwhile, so that the cost of a round trip, a transaction and a commit is shared, the more so the
busier the server is.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Sequence
from contextvars import Context
from datetime import timedelta
from typing import Generic, TypeVar

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")

PATIENCE = timedelta(milliseconds=25)
"""How long a batch is waited for before a second one begins beside it: it may wait for a lock.

Two at any time would make small batches: the sooner one ends, the fewer have arrived for the next. With 32 callers that
was 3 calls in a batch.
"""


class Gathering(Generic[Item, Outcome]):
    """Carries out items in batches of at most `most`, one batch at a time, or up to `at_once` if
    those in flight are slow.

    `work` gets a batch and returns an outcome for each item. It runs in a task and a context of its own, so nothing of
    one caller's context (request id, trace, deadline) reaches the others, and a caller that is cancelled ends only its
    own wait. The items of a `share` take turns with those of other shares, so a flood waits behind itself. Items
    with an equal `apart`, other than None, are carried out one after another.

    If a batch raises, its items are carried out again, each alone, so that one's failure is nobody else's. `is_shared`
    says which errors all items of the batch get instead.
    """

    def __init__(
        self,
        work: Callable[[Sequence[Item]], Awaitable[Sequence[Outcome]]],
        *,
        share: Callable[[Item], str],
        apart: Callable[[Item], Hashable] = lambda _: None,
        is_shared: Callable[[Sequence[Item], BaseException], bool] = lambda _items, _error: False,
        most: int = 100,
        at_once: int = 2,
        patience: timedelta = PATIENCE,
    ) -> None:
        self._work = work
        self._share = share
        self._apart = apart
        self._is_shared = is_shared
        self._most = most
        self._at_once = at_once
        self._patience = patience.total_seconds()
        self._line: _Line[Item, Outcome] = _Line()
        self._alone: _Line[Item, Outcome] = _Line()  # items of a batch that has raised
        self._behind: dict[Hashable, deque[_Entry[Item, Outcome]]] = {}  # a key that is busy: who waits for it
        self._running: set[_Batch[Item, Outcome]] = set()
        self._is_beginning = False

    async def __call__(self, item: Item) -> Outcome:
        entry = _Entry(item, self._share(item), self._apart(item), asyncio.get_running_loop().create_future())
        self._arrive(entry)
        self._begin_soon()
        outcome: Outcome = await entry.outcome
        return outcome

    def _arrive(self, entry: "_Entry[Item, Outcome]") -> None:
        if entry.apart is None:
            self._line.add(entry)
        elif entry.apart in self._behind:
            self._behind[entry.apart].append(entry)
        else:
            self._behind[entry.apart] = deque()
            self._line.add(entry)

    def _begin_soon(self) -> None:
        """Begins once all tasks that are ready have run: the callers of a batch that has ended come back together."""
        if not self._is_beginning:
            self._is_beginning = True
            asyncio.get_running_loop().call_soon(self._begin)

    def _begin(self) -> None:
        """Begins what may begin: one batch, a second beside a slow one, an item that runs alone beside either."""
        self._is_beginning = False
        if len(self._running) < self._at_once and not any(batch.is_alone for batch in self._running):
            self._run(self._taken(self._alone, 1), is_alone=True)
        if len(self._running) < self._at_once and all(batch.is_alone or batch.is_slow for batch in self._running):
            self._run(self._taken(self._line, self._most), is_alone=False)

    def _run(self, entries: Sequence["_Entry[Item, Outcome]"], *, is_alone: bool) -> None:
        if not entries:
            return
        loop = asyncio.get_running_loop()
        batch = _Batch(entries, is_alone=is_alone)
        # The loop refers to a task only weakly: the set holds it. An empty context: see the class.
        batch.task = loop.create_task(self._carry_out(entries), context=Context())
        batch.task.add_done_callback(lambda _: self._ended(batch))
        batch.alarm = loop.call_later(self._patience, self._is_slow, batch)
        self._running.add(batch)

    def _is_slow(self, batch: "_Batch[Item, Outcome]") -> None:
        batch.is_slow = True
        self._begin()

    def _taken(self, line: "_Line[Item, Outcome]", most: int) -> list["_Entry[Item, Outcome]"]:
        """Takes items from the line. Drops those whose caller has gone: nothing was begun for them."""
        taken: list[_Entry[Item, Outcome]] = []
        while line and len(taken) < most:
            entry = line.take()
            if entry.outcome.done():
                self._release(entry)
            else:
                taken.append(entry)
        return taken

    async def _carry_out(self, batch: Sequence["_Entry[Item, Outcome]"]) -> Sequence[Outcome]:
        outcomes = await self._work([entry.item for entry in batch])
        assert len(outcomes) == len(batch)
        return outcomes

    def _ended(self, batch: "_Batch[Item, Outcome]") -> None:
        self._running.discard(batch)
        batch.alarm.cancel()
        if batch.task.cancelled():
            for entry in batch.entries:
                entry.outcome.cancel()
        elif error := batch.task.exception():
            self._failed(batch.entries, error)
        else:
            for entry, outcome in zip(batch.entries, batch.task.result(), strict=True):
                if not entry.outcome.done():
                    entry.outcome.set_result(outcome)
        for entry in batch.entries:
            if entry.outcome.done():
                self._release(entry)
        self._begin_soon()

    def _failed(self, batch: Sequence["_Entry[Item, Outcome]"], error: BaseException) -> None:
        if len(batch) > 1 and not self._is_shared([entry.item for entry in batch], error):
            for entry in batch:
                if not entry.outcome.done():
                    self._alone.add(entry)
            return
        for entry in batch:
            if not entry.outcome.done():
                entry.outcome.set_exception(error)

    def _release(self, entry: "_Entry[Item, Outcome]") -> None:
        """Lets the next item with the same key into the line."""
        if entry.apart is None:
            return
        behind = self._behind[entry.apart]
        while behind:
            following = behind.popleft()
            if not following.outcome.done():
                self._line.add(following)
                return
        del self._behind[entry.apart]


class _Entry(Generic[Item, Outcome]):
    """An item that waits or is in flight. Its future is done once the caller has its outcome, or has gone."""

    __slots__ = ("apart", "item", "outcome", "share")

    def __init__(self, item: Item, share: str, apart: Hashable, outcome: asyncio.Future[Outcome]) -> None:
        self.item = item
        self.share = share
        self.apart = apart
        self.outcome = outcome


class _Batch(Generic[Item, Outcome]):
    """Entries in flight."""

    __slots__ = ("alarm", "entries", "is_alone", "is_slow", "task")

    def __init__(self, entries: Sequence[_Entry[Item, Outcome]], *, is_alone: bool) -> None:
        self.entries = entries
        self.is_alone = is_alone
        self.is_slow = False
        self.task: asyncio.Task[Sequence[Outcome]]
        self.alarm: asyncio.TimerHandle


class _Line(Generic[Item, Outcome]):
    """Items that wait: first come, first served within a share; the shares take turns."""

    def __init__(self) -> None:
        self._shares: dict[str, deque[_Entry[Item, Outcome]]] = {}
        self._turns: deque[str] = deque()

    def __bool__(self) -> bool:
        return bool(self._turns)

    def add(self, entry: _Entry[Item, Outcome]) -> None:
        if entry.share not in self._shares:
            self._shares[entry.share] = deque()
            self._turns.append(entry.share)
        self._shares[entry.share].append(entry)

    def take(self) -> _Entry[Item, Outcome]:
        share = self._turns.popleft()
        entries = self._shares[share]
        entry = entries.popleft()
        if entries:
            self._turns.append(share)
        else:
            del self._shares[share]
        return entry
