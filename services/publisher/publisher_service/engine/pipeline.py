"""The way of a due command through this process: claim, send, settle, acknowledge.

Each stage takes what the one before has left for it: batches form by themselves under load, and a single post waits
for nothing. Only the send is urgent; settling may wait a moment for company. What cannot go at once waits in the line
of its account, in the database, and is claimed from there: however much of one account, organization or provider is
due, it fills no place here that another needs.
"""

import asyncio
import itertools
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta

from publisher_service.application.claim_jobs import Again, Claim, ClaimJobs, Over, carried_by_stream
from publisher_service.application.disown_claims import DisownClaims
from publisher_service.application.send_post import SendPost, Sent
from publisher_service.application.settle_posts import SettlePosts
from publisher_service.application.tell_started import TellStarted
from publisher_service.domain.claim import Claimed, Command, Lane
from publisher_service.domain.outcome import NotTried
from publisher_service.domain.post_job import PostJob
from publisher_service.engine.commands import CommandIntake
from publisher_service.engine.lanes import ProviderLane
from publisher_service.engine.turns import TurnQueue
from publisher_service.engine.wake_up import WakeUp
from publisher_service.engine.work import Wish, Work
from servicekit.clock import Clock
from servicekit.pg.clock import SteadyClock
from servicekit.run.loops import backoff, wait
from servicekit.run.transient import is_transient

log = logging.getLogger(__name__)

_CLAIM_BATCH = 200
_SETTLE_BATCH = 250
_SETTLE_LINGER = 0.005
# From so many on what is due here goes into the lines even while its provider has no room: others need the places.
_MOST_DUE = 15_000
# What the sweep hands on and this does not take, a later sweep finds again.
_MOST_HANDED_ON = 4000
_MOST_OF_AN_ORGANIZATION = 2000
_LOOK_PERIOD = 0.25
_STARTED_AFTER = 1.0
_AWAY = timedelta(seconds=1)
_AT_ONCE = timedelta(milliseconds=1)


class PublishPipeline:
    def __init__(
        self,
        *,
        intake: CommandIntake,
        wake_up: WakeUp,
        claim: ClaimJobs,
        send: SendPost,
        settle: SettlePosts,
        tell_started: TellStarted,
        disown: DisownClaims,
        clock: Clock,
        steady: SteadyClock,
        lanes: Mapping[str, ProviderLane],
    ) -> None:
        """`lanes` by the name of the provider."""
        self.name = "publish pipeline"
        self._intake = intake
        self._wake_up = wake_up
        self._claim_jobs = claim
        self._send_post = send
        self._settle_posts = settle
        self._tell_started = tell_started
        self._disown_claims = disown
        self._is_ending = False
        self._clock = clock
        self._steady = steady
        self._lanes = lanes
        self._due = TurnQueue[Work](lambda work: work.account)
        self._handed_on: set[Wish] = set()
        self._handed_on_of: Counter[str] = Counter()
        self._open: set[Work] = set()
        self._answered: list[tuple[Work, Sent]] = []
        self._some_answered = asyncio.Event()
        self._lines_went_first = False
        self._next_look = 0.0
        self._sent_all = False

    def submit(self, works: Sequence[Work]) -> None:
        """Takes work that is due, but for the moment by which the claim runs ahead."""
        for work in works:
            self._due.add(work)
        self._wake_up.wake()

    def submit_commands(self, commands: Sequence[Command]) -> None:
        """Takes commands from the sweep. Duplicates and overflow are dropped: the next sweep finds them again."""
        fresh: list[Work] = []
        for command in commands:
            work = Work(command=command, since=self._clock.monotonic(), left=self._left)
            if work.wish not in self._handed_on and self._has_place(command.organization_id):
                self._handed_on.add(work.wish)
                self._handed_on_of[command.organization_id] += 1
                fresh.append(work)
        self.submit(fresh)

    def _has_place(self, organization_id: str) -> bool:
        is_full = len(self._handed_on) >= _MOST_HANDED_ON
        return not is_full and self._handed_on_of[organization_id] < _MOST_OF_AN_ORGANIZATION

    def _left(self, work: Work) -> None:
        self._handed_on.discard(work.wish)
        organization_id = work.command.organization_id
        self._handed_on_of[organization_id] -= 1
        if not self._handed_on_of[organization_id]:
            del self._handed_on_of[organization_id]

    async def run(self, stop: asyncio.Event) -> None:
        async with asyncio.TaskGroup() as group:
            feeding = [
                group.create_task(self._intake.run(stop, self.submit)),
                group.create_task(self._claim(stop)),
            ]
            senders = [group.create_task(lane.run(self._send, self._clock.monotonic)) for lane in self._lanes.values()]
            group.create_task(self._settle())
            group.create_task(self._watch_slow(stop))
            # Only then: the intake may hand on something until its very end.
            await asyncio.wait(feeding)
            await self._disown()
            await self._give_back()
            self._is_ending = True
            for lane in self._lanes.values():
                lane.end()
            await asyncio.wait(senders)
            self._sent_all = True
            self._some_answered.set()

    async def _claim(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            if not self._has_work():
                await self._wake_up.wait(_LOOK_PERIOD)
            self._wake_up.clear()
            if self._lines_go_first():
                await self._take_turns()
            if batch := self._due.take(self._batch_size()):
                await self._claim_batch(batch)
            if self._may_look():
                await self._take_turns()
            await self._disown()
            for lane in self._lanes.values():
                lane.show()

    def _has_work(self) -> bool:
        return (bool(self._due) and self._batch_size() > 0) or self._may_look()

    def _batch_size(self) -> int:
        """As many as there is room for; when too many wait here, the ones without room go into the lines."""
        return _CLAIM_BATCH if len(self._due) > _MOST_DUE else min(self._room(), _CLAIM_BATCH)

    def _may_look(self) -> bool:
        return self._room() > 0 and (self._wake_up.has_lines or self._clock.monotonic() >= self._next_look)

    def _lines_go_first(self) -> bool:
        """Every other time that what is due here would take all the room: nothing would be left for the lines."""
        if (room := self._room()) == 0:
            return False
        self._lines_went_first = not self._lines_went_first and self._may_look() and len(self._due) >= room
        return self._lines_went_first

    def _room(self) -> int:
        return max((lane.now.room for lane in self._lanes.values()), default=0)

    async def _give_back(self) -> None:
        """What has not been claimed: another process gets it at once."""
        for work in self._due.take_all():
            await work.again(_AT_ONCE)

    async def _claim_batch(self, batch: Sequence[Work]) -> None:
        for work in batch:
            work.is_taken = True
        started = self._clock.monotonic()
        lanes = [lane.now for lane in self._lanes.values()]
        try:
            answers = await self._claim_jobs([work.command for work in batch], lanes)
        except Exception as error:
            if not is_transient(error):
                raise
            log.warning("claiming waits, the database is away: %r", error)
            answers = [Again(_AWAY)] * len(batch)
        for work, answer in zip(batch, answers, strict=True):
            await self._proceed(work, answer, started)

    async def _disown(self) -> None:
        """Settles what failed claims may have committed: none of it was sent, which nobody else can know."""
        failed = self._claim_jobs.failed
        try:
            while failed:
                taken_back = await self._disown_claims(failed[0])
                failed.popleft()
                log.info("a failed claim had opened %d attempts; none was sent", len(taken_back))
        except Exception as error:
            if not is_transient(error):
                raise

    async def _proceed(self, work: Work, answer: Claim, started: float) -> None:
        match answer:
            case Claimed():
                self._enter(work, answer, started)
            case Again(delay):
                await work.again(delay)
            case Over():
                await work.over()

    def _enter(self, work: Work, claimed: Claimed, started: float) -> None:
        work.claimed, work.claim_started = claimed, started
        self._open.add(work)
        self._lanes[claimed.provider].enter(work)

    async def _take_turns(self) -> None:
        """Claims the next post of every line that has its turn, as far as there is room."""
        is_certain = self._wake_up.take_lines()
        self._next_look = self._clock.monotonic() + _LOOK_PERIOD
        started = self._clock.monotonic()
        try:
            if is_certain or await self._has_turn():
                await self._claim_from_lines(started)
        except Exception as error:
            if not is_transient(error):
                raise
            log.warning("the lines wait, the database is away: %r", error)
            self._next_look = self._clock.monotonic() + _AWAY.total_seconds()

    async def _has_turn(self) -> bool:
        """Whether a line has its turn; one that has it soon is looked at in time."""
        due, now = await self._claim_jobs.next_turn(self._with_room())
        if due is not None and due > now:
            self._next_look = min(self._next_look, self._clock.monotonic() + (due - now).total_seconds())
        return due is not None and due <= now

    async def _claim_from_lines(self, started: float) -> None:
        turns = await self._claim_jobs.from_lines(self._with_room(), most=_CLAIM_BATCH)
        for command, claimed in turns.claimed:
            self._enter(Work(command=command, since=started), claimed, started)
        # A line whose first post is locked by another transaction is looked at again a little later.
        if turns.more:
            self._wake_up.wake_lines()

    def _with_room(self) -> list[Lane]:
        return [lane.now for lane in self._lanes.values() if lane.now.room > 0]

    async def _send(self, work: Work) -> None:
        assert work.claimed is not None
        early = (work.command.schedule_time - self._steady.now()).total_seconds()
        while early > 0 and not self._is_ending:
            await asyncio.sleep(early)
            early = (work.command.schedule_time - self._steady.now()).total_seconds()
        if self._is_ending:
            stopping = NotTried(reason="STOPPING", message="the process was told to stop before it sent")
            sent = Sent(claimed=work.claimed, outcome=stopping, time=self._steady.now())
        else:
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
        for (work, sent), job in zip(batch, jobs, strict=True):
            self._open.discard(work)
            self._lanes[sent.claimed.provider].leave()
            delay = carried_by_stream(job, now)
            await (work.over() if delay is None else work.again(delay))
        self._wake_up.wake()

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
