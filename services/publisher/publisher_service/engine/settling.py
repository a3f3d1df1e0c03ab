"""The last stage of the pipeline: records the answers of providers in batches, then replies to the stream."""

import asyncio
import itertools
import logging
from collections.abc import Collection, Mapping, Sequence

from publisher_service.application.send_post import Sent
from publisher_service.application.settle_posts import SettlePosts
from publisher_service.domain.post_job import PostJob
from publisher_service.domain.waits import carried_by_stream
from publisher_service.engine.held_command import HeldCommand
from publisher_service.engine.lane import ProviderLane
from publisher_service.engine.wake_up import WakeUp
from servicekit.failpoints import declare, failpoint
from servicekit.pg.clock import SteadyClock
from servicekit.run.loops import backoff
from servicekit.run.transient import is_transient

_log = logging.getLogger(__name__)

_ACKED = declare("publisher.settle.acked")
_BATCH = 250
# Settling is not urgent: a short wait makes batches of single answers, and under load full batches of small ones.
_LINGER = 0.005
_MOST_LINGERS = 4


class Settling:
    def __init__(
        self, settle: SettlePosts, *, steady: SteadyClock, lanes: Mapping[str, ProviderLane], wake_up: WakeUp
    ) -> None:
        """`lanes` are by the name of the provider."""
        self._settle_posts = settle
        self._steady = steady
        self._lanes = lanes
        self._wake_up = wake_up
        self._open: set[HeldCommand] = set()
        self._answered: list[tuple[HeldCommand, Sent]] = []
        self._some_answered = asyncio.Event()
        self._is_ending = False
        self.settled = 0

    def open(self, held: HeldCommand) -> None:
        """Counts a claimed command as open until its answer is recorded."""
        self._open.add(held)

    def add(self, held: HeldCommand, sent: Sent) -> None:
        """Takes the answer of a provider."""
        self._answered.append((held, sent))
        self._some_answered.set()

    @property
    def opened(self) -> Collection[HeldCommand]:
        """The commands that are claimed and not settled."""
        return self._open

    def end(self) -> None:
        """Lets `run` return once every answer is recorded; none is added after this."""
        self._is_ending = True
        self._some_answered.set()

    async def run(self) -> None:
        while not (self._is_ending and not self._answered):
            await self._some_answered.wait()
            await self._linger()
            batch, self._answered = self._answered[:_BATCH], self._answered[_BATCH:]
            if not self._answered:
                self._some_answered.clear()
            if batch:  # none if the end comes while nothing waits
                await self._settle(batch)

    async def _linger(self) -> None:
        """Waits for more answers: once, or for a batch of them while so many posts are open that it soon fills."""
        for lingered in range(_MOST_LINGERS):
            is_full = len(self._answered) >= min(len(self._open), _BATCH)
            if self._is_ending or is_full or (lingered and len(self._open) < _BATCH):
                return
            await asyncio.sleep(_LINGER)

    async def _settle(self, batch: Sequence[tuple[HeldCommand, Sent]]) -> None:
        jobs = await self._recorded([sent for _, sent in batch])
        self.settled += len(batch)
        now = self._steady.now()
        for (held, sent), job in zip(batch, jobs, strict=True):
            self._open.discard(held)
            self._lanes[sent.claimed.provider].leave()
            delay = carried_by_stream(job, now)
            await (held.done() if delay is None else held.retry_in(delay))
        await failpoint(_ACKED)
        self._wake_up.wake()

    async def _recorded(self, batch: Sequence[Sent]) -> list[PostJob]:
        """Repeats until the batch is recorded: a provider's answer must not be lost while the database is down."""
        for failures in itertools.count():
            try:
                return await self._settle_posts(batch)
            except Exception as error:
                if not is_transient(error):
                    raise
                _log.warning("settling waits, the database is unreachable: %r", error)
                await asyncio.sleep(backoff(failures))
        raise AssertionError("unreachable")
