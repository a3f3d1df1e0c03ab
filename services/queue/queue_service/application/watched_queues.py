"""Looking at all queues that are watched in this process, for changes that no event announces: pauses, settings, skips,
schedules, connections and dispatches. One query serves all watchers."""

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from opentelemetry import metrics

from queue_service.adapters.postgres.watching import read_states
from queue_service.domain.account import AccountKey
from queue_service.domain.watching import QueueState
from servicekit.faults import LimitReached
from servicekit.pg.database import Database
from servicekit.run.levels import Level

_AT_ONCE = 500

_meter = metrics.get_meter(__name__)
_watchers = _meter.create_gauge("postflow.queue.watchers", description="Calls of WatchQueue that are in flight")


class Pulse:
    """Tells one watcher that the state of its queue is not the one that it has `seen`."""

    def __init__(self, wake: asyncio.Event) -> None:
        self._wake = wake
        self._has_changed = False
        self.seen: QueueState | None = None

    def compare(self, state: QueueState) -> None:
        if state != self.seen:
            self._has_changed = True
            self._wake.set()

    def take(self) -> bool:
        """Returns whether the queue has changed since the last call."""
        changed, self._has_changed = self._has_changed, False
        return changed


class WatchedQueues:
    def __init__(self, database: Database, *, most_per_organization: int) -> None:
        self._database = database
        self._most = most_per_organization
        self._pulses: dict[AccountKey, set[Pulse]] = defaultdict(set)
        self._counts: dict[str, int] = defaultdict(int)
        self._level = Level(_watchers)

    @property
    def count(self) -> int:
        return sum(self._counts.values())

    @contextmanager
    def admitted(self, organization: str) -> Iterator[None]:
        """Counts a watcher of the organization, which has a share of all watchers at most."""
        if self._counts[organization] >= self._most:
            message = f"the organization has {self._most} watchers on this server, its share of them"
            raise LimitReached("TOO_MANY_WATCHERS", message, retry_after=timedelta(seconds=1))
        self._counts[organization] += 1
        try:
            yield
        finally:
            self._counts[organization] -= 1
            if not self._counts[organization]:
                del self._counts[organization]

    @contextmanager
    def watched(self, account: AccountKey, wake: asyncio.Event) -> Iterator[Pulse]:
        """Yields a pulse that sets `wake` when the queue has changed."""
        pulse = Pulse(wake)
        self._pulses[account].add(pulse)
        try:
            yield pulse
        finally:
            self._pulses[account].discard(pulse)
            if not self._pulses[account]:
                del self._pulses[account]

    async def look(self) -> None:
        self._level.set(self.count)
        accounts = list(self._pulses)
        for begin in range(0, len(accounts), _AT_ONCE):
            async with self._database.read_session() as session:
                states = await read_states(session, accounts[begin : begin + _AT_ONCE])
            for account, state in states.items():
                for pulse in self._pulses.get(account, ()):
                    pulse.compare(state)
