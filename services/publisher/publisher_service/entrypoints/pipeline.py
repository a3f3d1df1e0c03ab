"""The way of a due command through this process: claim, send, settle, acknowledge.

Each stage takes what the one before has left for it: batches form by themselves under load, and a single post waits
for nothing. Only the send is urgent; settling may wait a moment for company.
"""

import asyncio
import itertools
import logging
from collections import deque
from collections.abc import Sequence
from datetime import timedelta

from opentelemetry import metrics

from publisher_service.application.claim_jobs import Again, Claim, ClaimJobs, Over, carried_by_stream
from publisher_service.application.send_post import SendPost, Sent
from publisher_service.application.settle_posts import SettlePosts
from publisher_service.application.tell_started import TellStarted
from publisher_service.domain.claim import Claimed, Command
from publisher_service.domain.post_job import PostJob
from publisher_service.entrypoints.commands import CommandIntake
from publisher_service.entrypoints.work import Wish, Work
from servicekit.clock import Clock
from servicekit.pg.clock import SteadyClock
from servicekit.run.loops import backoff, wait
from servicekit.run.transient import is_transient

log = logging.getLogger(__name__)

_CLAIM_BATCH = 200
_SETTLE_BATCH = 250
_SETTLE_LINGER = 0.005
# Claimed and not settled: enough to keep every sender busy. When a provider is so slow that a lease runs out in the
# line, the post goes round once more, at the cost of no attempt.
_MOST_OPEN = 500
_MOST_HANDED_ON = 2000
_STARTED_AFTER = 1.0
_AWAY = timedelta(seconds=1)
_AT_ONCE = timedelta(milliseconds=1)

_open = metrics.get_meter(__name__).create_gauge(
    "postflow.publish.open", description="Posts that are claimed and not settled"
)


class PublishPipeline:
    def __init__(
        self,
        *,
        claim: ClaimJobs,
        send: SendPost,
        settle: SettlePosts,
        tell_started: TellStarted,
        clock: Clock,
        steady: SteadyClock,
        senders: int,
    ) -> None:
        self.name = "publish pipeline"
        self.intake: CommandIntake | None = None
        self._claim_jobs = claim
        self._send_post = send
        self._settle_posts = settle
        self._tell_started = tell_started
        self._clock = clock
        self._steady = steady
        self._senders = senders
        self._due: deque[Work] = deque()
        self._handed_on: set[Wish] = set()
        # One post at a time per account: those behind it wait here, in their order.
        self._behind: dict[tuple[str, str], deque[Work]] = {}
        self._to_send: asyncio.Queue[Work | None] = asyncio.Queue()
        self._open: set[Work] = set()
        self._answered: list[tuple[Work, Sent]] = []
        self._some_due = asyncio.Event()
        self._some_answered = asyncio.Event()
        self._sent_all = False

    def submit(self, works: Sequence[Work]) -> None:
        """Work that is due, but for the moment by which the claim runs ahead."""
        self._due.extend(works)
        self._some_due.set()

    def submit_commands(self, commands: Sequence[Command]) -> None:
        """From the sweep, which finds again what waits here for long, and what finds no room."""
        works = [Work(command=command, since=self._clock.monotonic(), left=self._left) for command in commands]
        fresh: list[Work] = []
        for work in works:
            if work.wish not in self._handed_on and len(self._handed_on) < _MOST_HANDED_ON:
                self._handed_on.add(work.wish)
                fresh.append(work)
        self.submit(fresh)

    def _left(self, work: Work) -> None:
        self._handed_on.discard(work.wish)

    async def run(self, stop: asyncio.Event) -> None:
        assert self.intake is not None, "the pipeline has no intake"
        async with asyncio.TaskGroup() as group:
            feeding = [
                group.create_task(self.intake.run(stop)),
                group.create_task(self._claim(stop)),
            ]
            senders = [group.create_task(self._send()) for _ in range(self._senders)]
            group.create_task(self._settle())
            group.create_task(self._watch_slow(stop))
            # Only then: the intake may hand on something until its very end.
            await asyncio.wait(feeding)
            await self._give_back()
            for _ in senders:
                self._to_send.put_nowait(None)
            await asyncio.wait(senders)
            self._sent_all = True
            self._some_answered.set()

    async def _claim(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            if not self._due or len(self._open) >= _MOST_OPEN:
                await wait(self._some_due, 0.25)
            self._some_due.clear()
            batch = self._next_batch()
            if batch:
                await self._claim_batch(batch)
            _open.set(len(self._open))

    async def _give_back(self) -> None:
        """What has not been claimed: another process gets it at once."""
        waiting = [*self._due, *(work for line in self._behind.values() for work in line)]
        self._due.clear()
        for line in self._behind.values():
            line.clear()
        for work in waiting:
            await work.again(_AT_ONCE)

    def _next_batch(self) -> list[Work]:
        """At most one work per account, as many as there is room for."""
        batch: list[Work] = []
        room = min(_CLAIM_BATCH, _MOST_OPEN - len(self._open))
        while self._due and len(batch) < room:
            work = self._due.popleft()
            if not work.has_turn:
                line = self._behind.get(work.account)
                if line is not None:
                    line.append(work)
                    continue
                self._behind[work.account] = deque()
                work.has_turn = True
            batch.append(work)
        return batch

    async def _claim_batch(self, batch: Sequence[Work]) -> None:
        started = self._clock.monotonic()
        try:
            answers = await self._claim_jobs([work.command for work in batch])
        except Exception as error:
            if not is_transient(error):
                raise
            log.warning("claiming waits, the database is away: %r", error)
            answers = [Again(_AWAY)] * len(batch)
        for work, answer in zip(batch, answers, strict=True):
            await self._proceed(work, answer, started)

    async def _proceed(self, work: Work, answer: Claim, started: float) -> None:
        match answer:
            case Claimed():
                work.claimed, work.claim_started = answer, started
                self._open.add(work)
                self._to_send.put_nowait(work)
            case Again(delay):
                await work.again(delay)
                self._give_way(work)
            case Over():
                await work.over()
                self._give_way(work)

    def _give_way(self, work: Work) -> None:
        """The next of the account may come."""
        line = self._behind[work.account]
        if line:
            following = line.popleft()
            following.has_turn = True
            self._due.appendleft(following)
        else:
            del self._behind[work.account]
        self._some_due.set()

    async def _send(self) -> None:
        while (work := await self._to_send.get()) is not None:
            assert work.claimed is not None
            early = (work.command.schedule_time - self._steady.now()).total_seconds()
            while early > 0:
                await asyncio.sleep(early)
                early = (work.command.schedule_time - self._steady.now()).total_seconds()
            sent = await self._send_post(work.claimed, claim_started=work.claim_started)
            self._answered.append((work, sent))
            self._some_answered.set()

    async def _settle(self) -> None:
        while not (self._sent_all and not self._answered):
            await self._some_answered.wait()
            if not self._sent_all:
                await asyncio.sleep(_SETTLE_LINGER)
            self._some_answered.clear()
            while self._answered:
                batch, self._answered = self._answered[:_SETTLE_BATCH], self._answered[_SETTLE_BATCH:]
                await self._settle_batch(batch)

    async def _settle_batch(self, batch: Sequence[tuple[Work, Sent]]) -> None:
        jobs = await self._recorded([sent for _, sent in batch])
        now = self._steady.now()
        for (work, _), job in zip(batch, jobs, strict=True):
            self._open.discard(work)
            delay = carried_by_stream(job, now)
            await (work.over() if delay is None else work.again(delay))
            self._give_way(work)

    async def _recorded(self, batch: Sequence[Sent]) -> list[PostJob]:
        """Until it is: what a provider has answered must not be lost while the database is away."""
        for failures in itertools.count():
            try:
                return await self._settle_posts(batch)
            except Exception as error:
                if not is_transient(error):
                    raise
                log.warning("settling waits, the database is away: %r", error)
                await asyncio.sleep(backoff(failures))
        raise AssertionError("unreachable")

    async def _watch_slow(self, stop: asyncio.Event) -> None:
        """A try that stays open is announced; most are over before anybody could have looked."""
        while not stop.is_set():
            await wait(stop, _STARTED_AFTER / 2)
            old = self._clock.monotonic() - _STARTED_AFTER
            slow = [work for work in self._open if not work.told and work.claim_started < old]
            if slow:
                for work in slow:
                    work.told = True
                await self._tell_started([work.claimed.job for work in slow if work.claimed])
