"""Commands that the sweep submits, claimed and sent without a database."""

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, cast

from publisher_service.application.claim_jobs import Claim, Done, Retry, Turns
from publisher_service.application.disown_claims import FailedClaim
from publisher_service.application.send_post import Sent
from publisher_service.domain.claim import Claimed, Command, Lane
from publisher_service.domain.outcome import Accepted
from publisher_service.domain.post_job import PostJob, Target
from publisher_service.engine.held_command import HeldCommand
from publisher_service.engine.lane import ProviderLane
from publisher_service.engine.pipeline import PublishPipeline
from publisher_service.engine.wake_up import WakeUp
from servicekit.clock import SystemClock
from servicekit.pg.clock import SteadyClock
from testkit.clocks import FrozenClock
from testkit.eventually import eventually
from tests.unit.publisher_service.engine_parts import a_claimed
from tests.unit.publisher_service.post_jobs import NOW

UNUSED = cast(Any, None)


class NoIntake:
    async def run(self, stop: asyncio.Event, due: Callable[[list[HeldCommand]], None]) -> None:
        await stop.wait()


class Claims:
    """Answers that nothing is left to do, once `may_answer` is set."""

    def __init__(self, *, pages: int = 0) -> None:
        """The first `pages` of lines answer that there is more."""
        self.pages = pages
        self.asked: Counter[str] = Counter()
        self.may_answer = asyncio.Event()
        self.failed: deque[FailedClaim] = deque()

    async def __call__(self, commands: Sequence[Command], lanes: Sequence[Lane]) -> list[Claim]:
        self.asked.update(command.draft_id for command in commands)
        await self.may_answer.wait()
        return [Done() for _ in commands]

    async def next_turn(self, lanes: Sequence[Lane]) -> tuple[datetime | None, datetime]:
        return None, NOW

    async def from_lines(self, lanes: Sequence[Lane], *, most: int) -> Turns:
        self.pages -= 1
        return Turns(claimed=[], more=self.pages >= 0)


def commands(count: int, *, first: int = 0, accounts: int = 7) -> list[Command]:
    return [
        Command(
            organization_id="acme",
            draft_id=f"d{number}",
            target=Target(social_account_id=f"page-{number % accounts}", channel="facebook"),
            slot_id=f"slot-{number}",
            slot_revision=1,
            emission=0,
            schedule_time=NOW,
            not_after=NOW + timedelta(hours=1),
            content_revision=0,
            max_attempts=5,
            traceparent="",
        )
        for number in range(first, first + count)
    ]


async def _run(pipeline: PublishPipeline, claims: Claims, done: int) -> None:
    stop = asyncio.Event()
    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        group.create_task(pipeline.run(stop))
        await eventually(lambda: claims.asked.total() >= done)
        stop.set()


class Competing(Claims):
    """Claims every command, always finds a post in line, and notes the order of both."""

    def __init__(self) -> None:
        super().__init__()
        self.order: list[str] = []

    async def __call__(self, commands: Sequence[Command], lanes: Sequence[Lane]) -> list[Claim]:
        self.asked.update(command.draft_id for command in commands)
        self.order += ["due"] * len(commands)
        return [a_claimed(command) for command in commands]

    async def next_turn(self, lanes: Sequence[Lane]) -> tuple[datetime | None, datetime]:
        return NOW, NOW

    async def from_lines(self, lanes: Sequence[Lane], *, most: int) -> Turns:
        self.order.append("line")
        (command,) = commands(1, first=1000 + len(self.order))
        return Turns(claimed=[(command, a_claimed(command))], more=True)


class Narrow:
    """A lane with room for one post."""

    seconds = 0.0

    def __init__(self) -> None:
        self.when_full: Callable[[], None] = lambda: None
        self._room = 1
        self._waiting: asyncio.Queue[HeldCommand | None] = asyncio.Queue()

    @property
    def now(self) -> Lane:
        return Lane(provider="sandbox", room=self._room, lease=timedelta(seconds=15))

    def enter(self, work: HeldCommand) -> None:
        self._room -= 1
        self._waiting.put_nowait(work)
        self.when_full()

    def may_send(self, work: HeldCommand) -> bool:
        return True

    def note(self, work: HeldCommand, outcome: object) -> bool:
        return False

    def leave(self) -> None:
        self._room += 1

    def show(self) -> None:
        pass

    async def run(self, send: Callable[[HeldCommand], Awaitable[None]], seconds: Callable[[], float]) -> None:
        while (work := await self._waiting.get()) is not None:
            await send(work)

    def end(self) -> None:
        self._waiting.put_nowait(None)


class Sends:
    """Accepts every post, and requires that its claim was followed by a look at holds."""

    def __init__(self) -> None:
        self._looked: set[float] = set()

    async def look_ahead(self, claim_started: float) -> None:
        self._looked.add(claim_started)

    async def __call__(self, claimed: Claimed, *, claim_started: float) -> Sent:
        assert claim_started in self._looked
        return Sent(claimed=claimed, outcome=Accepted(external_id="", external_url=""), time=NOW)


async def _settle(batch: Sequence[Sent]) -> list[PostJob]:
    return [sent.claimed.job for sent in batch]


def a_pipeline(
    claims: Claims, lane: Any = None, wake_up: WakeUp | None = None, *, clock: Any = None, others: Any = None
) -> PublishPipeline:
    system = clock or SystemClock()
    steady = SteadyClock(system)
    steady.learn(system.now(), asked=system.monotonic(), answered=system.monotonic())
    return PublishPipeline(
        intake=cast(Any, NoIntake()),
        wake_up=wake_up or WakeUp(),
        claim=cast(Any, claims),
        send=cast(Any, Sends()),
        settle=cast(Any, _settle),
        announce_started=UNUSED,
        disown=UNUSED,
        clock=system,
        steady=steady,
        lanes={"sandbox": lane or ProviderLane("sandbox", senders=1, lease=timedelta(seconds=15)), **(others or {})},
    )


async def test_a_command_submitted_again_while_it_waits_is_claimed_once() -> None:
    claims = Claims()
    pipeline = a_pipeline(claims)
    for _ in range(5):
        pipeline.submit_commands(commands(100))
    pipeline.submit_commands(commands(1, first=100))
    claims.may_answer.set()
    await _run(pipeline, claims, done=101)
    assert claims.asked == Counter(f"d{number}" for number in range(101))


async def test_a_command_that_is_over_can_be_submitted_again() -> None:
    claims = Claims()
    claims.may_answer.set()
    pipeline = a_pipeline(claims)
    for times in (1, 2):
        pipeline.submit_commands(commands(3))
        await _run(pipeline, claims, done=3 * times)
    assert claims.asked == Counter(["d0", "d1", "d2"] * 2)


class Reluctant(Claims):
    """Puts off each command once, by `delay`."""

    def __init__(self, delay: timedelta) -> None:
        super().__init__()
        self._delay = delay

    async def __call__(self, commands: Sequence[Command], lanes: Sequence[Lane]) -> list[Claim]:
        self.asked.update(command.draft_id for command in commands)
        return [Retry(self._delay) if self.asked[command.draft_id] == 1 else Done() for command in commands]


async def test_a_command_of_the_sweep_that_is_put_off_shortly_comes_back() -> None:
    claims = Reluctant(timedelta(milliseconds=250))
    pipeline = a_pipeline(claims)
    pipeline.submit_commands(commands(3))
    await _run(pipeline, claims, done=6)
    assert claims.asked == Counter({"d0": 2, "d1": 2, "d2": 2})


async def test_a_command_of_the_sweep_that_is_put_off_for_long_is_found_again() -> None:
    claims = Reluctant(timedelta(seconds=2))
    pipeline = a_pipeline(claims)
    for times in (1, 2):
        pipeline.submit_commands(commands(3))
        await _run(pipeline, claims, done=3 * times)
    assert claims.asked == Counter({"d0": 2, "d1": 2, "d2": 2})


async def test_lines_are_claimed_again_at_once_while_there_is_more() -> None:
    """Nothing else wakes the lines in between."""
    claims = Claims(pages=200)
    claims.may_answer.set()
    pipeline = a_pipeline(claims)
    pipeline.submit_commands(commands(1))
    await _run(pipeline, claims, done=1)
    assert claims.pages < 0


async def test_commands_and_lines_take_turns_when_room_is_short() -> None:
    claims, lane, wake_up = Competing(), Narrow(), WakeUp()
    pipeline = a_pipeline(claims, lane, wake_up)
    # Something is due, or has its turn, while there is no room.
    lane.when_full = wake_up.wake_lines
    pipeline.submit_commands(commands(20))
    await _run(pipeline, claims, done=20)
    assert claims.order[:20].count("line") == 10
    assert claims.order[:20].count("due") == 10


async def test_room_of_a_provider_that_gets_no_posts_counts_after_a_moment() -> None:
    """Otherwise what comes while the others are full would go into lines, at the cost of another claim each."""
    clock, idle = FrozenClock(), ProviderLane("idle", senders=8, lease=timedelta(seconds=15))
    pipeline = a_pipeline(Claims(), Narrow(), clock=clock, others={"idle": idle})
    (command,) = commands(1)
    assert pipeline._room() == 8
    pipeline._enter(HeldCommand(command=command, since=0), a_claimed(command), 0.0)
    assert pipeline._room() == 0
    clock.advance(timedelta(seconds=0.3))
    assert pipeline._room() == 8


async def test_no_more_than_2000_submitted_commands_are_kept() -> None:
    claims = Claims()
    claims.may_answer.set()
    pipeline = a_pipeline(claims)
    pipeline.submit_commands(commands(5000))
    await _run(pipeline, claims, done=2000)
    assert claims.asked.total() == 2000


async def test_a_full_organization_leaves_room_for_another() -> None:
    claims = Claims()
    claims.may_answer.set()
    pipeline = a_pipeline(claims)
    pipeline.submit_commands(commands(5000))
    pipeline.submit_commands([replace(each, organization_id="another") for each in commands(1, first=5000)])
    await _run(pipeline, claims, done=2001)
    assert claims.asked["d5000"] == 1
