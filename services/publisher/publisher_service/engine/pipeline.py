"""The way of a due command through this process: claim, send, settle, reply.

Each stage takes what the stage before has left for it, so batches form by themselves under load, and a single post
waits for nothing. What cannot go at once waits in the line of its account, in the database, and is claimed from there:
no account, organization or provider can fill the places here that another needs.
"""

import asyncio
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta

from publisher_service.application.announce_started import AnnounceStarted
from publisher_service.application.claim_jobs import Claim, ClaimJobs, Done, Retry
from publisher_service.application.disown_claims import DisownClaims
from publisher_service.application.send_post import SendPost, Sent
from publisher_service.application.settle_posts import SettlePosts
from publisher_service.domain.claim import Claimed, Command, Lane
from publisher_service.domain.outcome import NotBegun
from publisher_service.engine.due_timer import DueTimer
from publisher_service.engine.handed_on import HandedOn
from publisher_service.engine.held_command import HeldCommand
from publisher_service.engine.intake import CommandIntake
from publisher_service.engine.lane import ProviderLane
from publisher_service.engine.settling import Settling
from publisher_service.engine.started import Started
from publisher_service.engine.turn_queue import TurnQueue
from publisher_service.engine.wake_up import WakeUp
from servicekit.clock import Clock
from servicekit.pg.clock import SteadyClock
from servicekit.run.loops import wait
from servicekit.run.transient import is_transient

_log = logging.getLogger(__name__)

_CLAIM_BATCH = 250
# Above this, due commands go into the lines even while their provider has no room: other commands need the places.
_MOST_DUE = 15_000
_LOOK_PERIOD = 0.25
_SLOW_PERIOD = 0.5
# A provider that got a post within this is taken to get more.
_BUSY = 10.0
_DATABASE_DOWN = timedelta(seconds=1)
_AT_ONCE = timedelta(milliseconds=1)
# A command of the sweep comes back by itself for so short a wait: a later sweep would find it seconds later.
_SOON = timedelta(seconds=1)


class PublishPipeline:
    def __init__(
        self,
        *,
        intake: CommandIntake,
        wake_up: WakeUp,
        claim: ClaimJobs,
        send: SendPost,
        settle: SettlePosts,
        announce_started: AnnounceStarted,
        disown: DisownClaims,
        clock: Clock,
        steady: SteadyClock,
        lanes: Mapping[str, ProviderLane],
        answers_again: Callable[[str], None] = lambda provider: None,
    ) -> None:
        """`lanes` are by the name of the provider; `answers_again` is called when one does after it did not."""
        self._answers_again = answers_again
        self.name = "publish pipeline"
        self._intake = intake
        self._wake_up = wake_up
        self._claim_jobs = claim
        self._send_post = send
        self._settling = Settling(settle, steady=steady, lanes=lanes, wake_up=wake_up)
        self._announce_started = announce_started
        self._started = Started(lanes)
        self._disown_claims = disown
        self._clock = clock
        self._steady = steady
        self._lanes = lanes
        # When each provider got its last post.
        self._claimed: dict[str, float] = {}
        self._due = TurnQueue[HeldCommand](lambda held: held.account)
        self._handed_on = HandedOn()
        self._again: DueTimer[HeldCommand] = DueTimer(steady, self.submit)
        self._is_ending = False
        self._lines_went_first = False
        self._next_look = 0.0

    def submit(self, commands: Sequence[HeldCommand]) -> None:
        """Takes commands that are due, but for the moment by which the claim runs ahead."""
        for held in commands:
            self._due.add(held)
        self._wake_up.wake()

    def submit_commands(self, commands: Sequence[Command]) -> None:
        """Takes commands from the sweep. Drops duplicates and overflow: the next sweep finds them again."""
        self.submit(self._handed_on.take(commands, since=self._clock.monotonic()))

    async def run(self, stop: asyncio.Event) -> None:
        """Publishes until `stop`, then gives back what is not claimed and settles what is sent."""
        async with asyncio.TaskGroup() as group:
            feeding = [
                group.create_task(self._intake.run(stop, self.submit)),
                group.create_task(self._claim(stop)),
            ]
            senders = [group.create_task(lane.run(self._send, self._clock.monotonic)) for lane in self._lanes.values()]
            group.create_task(self._settling.run())
            group.create_task(self._watch_slow(stop))
            # Only now: the intake may submit commands until its very end.
            await asyncio.wait(feeding)
            await self._disown()
            await self._give_back()
            self._is_ending = True
            for lane in self._lanes.values():
                lane.end()
            await asyncio.wait(senders)
            self._settling.end()

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
        """Returns how many to claim: as many as there is room for, or a full batch when too many wait here."""
        return _CLAIM_BATCH if len(self._due) > _MOST_DUE else min(self._room(), _CLAIM_BATCH)

    def _may_look(self) -> bool:
        return self._room() > 0 and (self._wake_up.has_lines or self._clock.monotonic() >= self._next_look)

    def _lines_go_first(self) -> bool:
        """Alternates while the due commands would take all the room, so that the lines get every other turn."""
        if (room := self._room()) == 0:
            return False
        self._lines_went_first = not self._lines_went_first and self._may_look() and len(self._due) >= room
        return self._lines_went_first

    def _room(self) -> int:
        """Returns the room of the provider that has most, of those that get posts at present.

        What a claim finds no room for goes into a line, which costs as much as another claim. So the room of providers
        that get no posts counts only once nothing was claimed for a moment: what is due may be theirs.
        """
        now = self._clock.monotonic()
        busy = [lane.now.room for name, lane in self._lanes.items() if now < self._claimed.get(name, -math.inf) + _BUSY]
        room = max(busy, default=0)
        if room or now < max(self._claimed.values(), default=-math.inf) + _LOOK_PERIOD:
            return room
        return max((lane.now.room for lane in self._lanes.values()), default=0)

    async def _give_back(self) -> None:
        """Returns what has not been claimed, so that another process gets it at once."""
        for held in [*self._due.take_all(), *self._again.release_all()]:
            await held.retry_in(_AT_ONCE)

    async def _claim_batch(self, batch: Sequence[HeldCommand]) -> None:
        for held in batch:
            held.is_being_claimed = True
        started = self._clock.monotonic()
        lanes = [lane.now for lane in self._lanes.values()]
        try:
            answers = await self._claim_jobs([held.command for held in batch], lanes)
        except Exception as error:
            if not is_transient(error):
                raise
            _log.warning("claiming waits, the database is unreachable: %r", error)
            answers = [Retry(_DATABASE_DOWN)] * len(batch)
        if any(isinstance(answer, Claimed) for answer in answers):
            await self._send_post.look_ahead(started)
        for held, answer in zip(batch, answers, strict=True):
            await self._proceed(held, answer, started)

    async def _disown(self) -> None:
        """Takes back the attempts of failed claims that were committed after all.

        None of them was sent, and only this process knows that.
        """
        failed = self._claim_jobs.failed
        try:
            while failed:
                taken_back = await self._disown_claims(failed[0])
                failed.popleft()
                _log.info("a failed claim had opened %d attempts; none was sent", len(taken_back))
        except Exception as error:
            if not is_transient(error):
                raise

    async def _proceed(self, held: HeldCommand, answer: Claim, started: float) -> None:
        match answer:
            case Claimed():
                self._enter(held, answer, started)
            case Retry(delay) if held.delivery is None and delay <= _SOON:
                self._again.hold(self._steady.now() + delay, held)
            case Retry(delay):
                await held.retry_in(delay)
            case Done():
                await held.done()

    def _enter(self, held: HeldCommand, claimed: Claimed, started: float) -> None:
        held.claimed, held.claim_started = claimed, started
        self._settling.open(held)
        self._claimed[claimed.provider] = self._clock.monotonic()
        self._lanes[claimed.provider].enter(held)

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
            _log.warning("the lines wait, the database is unreachable: %r", error)
            self._next_look = self._clock.monotonic() + _DATABASE_DOWN.total_seconds()

    async def _has_turn(self) -> bool:
        """Returns whether a line has its turn; brings the next look forward to the turn that comes first."""
        due, now = await self._claim_jobs.next_turn(self._with_room())
        if due is not None and due > now:
            self._next_look = min(self._next_look, self._clock.monotonic() + (due - now).total_seconds())
        return due is not None and due <= now

    async def _claim_from_lines(self, started: float) -> None:
        turns = await self._claim_jobs.from_lines(self._with_room(), most=_CLAIM_BATCH)
        if turns.claimed:
            await self._send_post.look_ahead(started)
        for command, claimed in turns.claimed:
            self._enter(HeldCommand(command=command, since=started), claimed, started)
        # Otherwise a line whose first post another transaction has locked waits for the next look.
        if turns.more:
            self._wake_up.wake_lines()

    def _with_room(self) -> list[Lane]:
        return [lane.now for lane in self._lanes.values() if lane.now.room > 0]

    async def _send(self, held: HeldCommand) -> bool:
        """Returns whether a request was made."""
        assert held.claimed is not None
        early = (held.command.schedule_time - self._steady.now()).total_seconds()
        while early > 0 and not self._is_ending:
            await asyncio.sleep(early)
            early = (held.command.schedule_time - self._steady.now()).total_seconds()
        if self._is_ending:
            stopping = NotBegun(reason="STOPPING", message="the process was stopped before it sent the post")
            sent = Sent(claimed=held.claimed, outcome=stopping, time=self._steady.now())
        elif not self._lanes[held.claimed.provider].may_send(held):
            down = NotBegun(reason="PROVIDER_DOWN", message="the provider cannot be reached, or takes nothing more now")
            sent = Sent(claimed=held.claimed, outcome=down, time=self._steady.now())
        else:
            sent = await self._send_post(held.claimed, claim_started=held.claim_started)
        if self._lanes[held.claimed.provider].note(held, sent.outcome):
            self._answers_again(held.claimed.provider)
        self._settling.add(held, sent)
        return not isinstance(sent.outcome, NotBegun)

    async def _watch_slow(self, stop: asyncio.Event) -> None:
        """Announces attempts that stay open; most end before anyone could have looked."""
        while not stop.is_set():
            await wait(stop, _SLOW_PERIOD)
            now = self._clock.monotonic()
            slow = self._started.choose(self._settling.opened, settled=self._settling.settled, now=now)
            if slow:
                for held in slow:
                    held.is_announced = True
                await self._announce_started([held.claimed.job for held in slow if held.claimed])
