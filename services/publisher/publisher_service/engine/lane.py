"""The lane of a provider: its own senders and its own room, so that a provider that hangs blocks only itself.

One organization has half of the senders at most: the servers of one tenant that hang block only its own posts.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta

from opentelemetry import metrics

from publisher_service.domain.claim import Lane
from publisher_service.domain.outcome import Outcome
from publisher_service.engine.breaker import Breaker
from publisher_service.engine.held_command import HeldCommand
from servicekit.run.levels import Level

# Posts that are claimed and not settled: enough to keep every sender busy while batches are settled.
_MOST_OPEN = 500
# Claims that are worth a transaction while every sender has more to do: in batches of 50 a claim and a settlement cost
# twice as much a post as in batches of 250.
_WORTH_A_CLAIM = 200
# Claims no more than the senders begin within this time, judged by recent requests: a post that waited here for most of
# its lease would have to be claimed again. An organization whose posts wait longer for its own senders gets no more.
_AHEAD = 2.0
_SHARE_OF_NEWEST = 0.2

_meter = metrics.get_meter(__name__)
_open = _meter.create_gauge("postflow.publish.open", description="Posts that are claimed and not settled, by provider")


class ProviderLane:
    def __init__(
        self,
        provider: str,
        *,
        senders: int,
        lease: timedelta,
        prepares: bool = False,
        seconds: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """`seconds` is the monotonic clock of the breaker."""
        self.breaker = Breaker(provider, seconds)
        self._probe: HeldCommand | None = None
        self._provider = provider
        self._senders = senders
        self._share = max(senders // 2, 1)
        self._lease = lease
        self._prepares = prepares
        self._waiting: asyncio.Queue[HeldCommand | None] = asyncio.Queue()
        # By organization: posts that are not sent, and those of them that are; those that wait for its own senders.
        self._unsent: Counter[str] = Counter()
        self._sending: Counter[str] = Counter()
        self._held_back: dict[str, deque[HeldCommand]] = {}
        self._clock = seconds
        self._open = 0
        self._shown = Level(_open, {"provider": provider})
        # The time that a request takes at present; None before the first has ended.
        self._seconds: float | None = None
        self.show()

    @property
    def now(self) -> Lane:
        """The room that the provider has at this moment."""
        crowded = self._crowded() if self._held_back else ()
        return Lane(
            provider=self._provider,
            room=self._room(crowded),
            lease=self._lease,
            prepares=self._prepares,
            crowded=crowded,
        )

    @property
    def seconds(self) -> float:
        """Returns the time that a request takes at present; 0 before the first has ended."""
        return self._seconds or 0.0

    def enter(self, held: HeldCommand) -> None:
        """Takes a claimed post, to be sent as soon as a sender is free."""
        self._open += 1
        self._unsent[held.command.organization_id] += 1
        if self.breaker.is_open:
            self._probe = held
            self.breaker.begin_probe()
        self._waiting.put_nowait(held)

    def may_send(self, held: HeldCommand) -> bool:
        """Returns whether a claimed post may be sent now: while the provider cannot be reached, only the probe."""
        return not self.breaker.is_closed and (held is self._probe or not self.breaker.is_open)

    def note(self, held: HeldCommand, outcome: Outcome) -> bool:
        """Counts the outcome of a request. Returns whether the provider answers again after it did not."""
        is_probe = held is self._probe
        if is_probe:
            self._probe = None
        return self.breaker.note(outcome, is_probe=is_probe)

    def leave(self) -> None:
        """Makes room: a post was settled."""
        self._open -= 1

    def show(self) -> None:
        self._shown.set(self._open)

    async def run(self, send: Callable[[HeldCommand], Awaitable[bool]], seconds: Callable[[], float]) -> None:
        """Runs the senders until `end`. `send` returns whether it has made a request."""

        async def sender() -> None:
            while (held := await self._waiting.get()) is not None:
                organization_id = held.command.organization_id
                if self._sending[organization_id] == self._share:
                    self._held_back.setdefault(organization_id, deque()).append(held)
                    continue
                self._sending[organization_id] += 1
                # What was held back is older than what waits here: so each post has a sender before its lease ends.
                each: HeldCommand | None = held
                while each is not None:
                    begun = seconds()
                    # A post that outlived its lease here ends at once: that says nothing about the provider.
                    if await send(each):
                        self._count(seconds() - begun)
                    _count_down(self._unsent, organization_id)
                    each = self._next_of(organization_id)
                _count_down(self._sending, organization_id)

        async with asyncio.TaskGroup() as group:
            for _ in range(self._senders):
                group.create_task(sender())

    def end(self) -> None:
        """Lets the senders end once everything that has entered is sent."""
        for _ in range(self._senders):
            self._waiting.put_nowait(None)

    def _next_of(self, organization_id: str) -> HeldCommand | None:
        """Takes the oldest post of an organization that was held back."""
        if not (waiting := self._held_back.get(organization_id)):
            return None
        held = waiting.popleft()
        if not waiting:
            del self._held_back[organization_id]
        return held

    def _count(self, seconds: float) -> None:
        before = self._seconds
        self._seconds = seconds if before is None else before + _SHARE_OF_NEWEST * (seconds - before)

    def _crowded(self) -> tuple[str, ...]:
        """Returns the organizations whose own requests keep their next posts waiting for too long."""
        since = self._clock() - _AHEAD
        return tuple(each for each, waiting in self._held_back.items() if waiting[0].claim_started < since)

    def _room(self, crowded: Sequence[str]) -> int:
        admitted = self.breaker.room
        if admitted is not None:
            return admitted
        # What a crowded organization has here keeps nobody else from a sender.
        held_back = sum(map(len, self._held_back.values()))
        aside = sum(len(self._held_back[each]) for each in crowded)
        waiting = self._waiting.qsize() + held_back - aside
        room = max(min(_MOST_OPEN - (self._open - aside), self._ahead() - waiting), 0)
        return 0 if room < _WORTH_A_CLAIM and waiting >= self._able() else room

    def _ahead(self) -> int:
        """Returns how many posts may wait for a sender: as many as begin in time, and one for each sender."""
        if self._seconds is None:
            # The provider may be slow: of 500 posts claimed at once, those that 64 senders do not begin within the
            # lease would have to be claimed again.
            return self._able()
        in_time = _AHEAD * self._able() / max(self._seconds, 0.001)
        return max(min(_MOST_OPEN, int(in_time)), self._able())

    def _able(self) -> int:
        """Returns how many senders the organizations that have posts here may use; all if there are none."""
        return min(self._share * len(self._unsent) or self._senders, self._senders)


def _count_down(counter: Counter[str], organization_id: str) -> None:
    counter[organization_id] -= 1
    if not counter[organization_id]:
        del counter[organization_id]
