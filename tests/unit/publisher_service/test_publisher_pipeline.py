"""The way of commands that come from the database, without a database."""

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from publisher_service.application.claim_jobs import Claim, Over, Turns
from publisher_service.application.disown_claims import FailedClaim
from publisher_service.application.send_post import Sent
from publisher_service.domain.claim import Claimed, Command, Lane
from publisher_service.domain.outcome import Accepted
from publisher_service.domain.post_job import JobState, PostJob, Target
from publisher_service.engine.lanes import ProviderLane
from publisher_service.engine.pipeline import PublishPipeline
from publisher_service.engine.turns import TurnQueue
from publisher_service.engine.wake_up import WakeUp
from publisher_service.engine.work import Work
from servicekit.clock import SystemClock
from servicekit.pg.clock import SteadyClock
from testkit.eventually import eventually

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
UNUSED = cast(Any, None)


class NoIntake:
    async def run(self, stop: asyncio.Event, due: Callable[[list[Work]], None]) -> None:
        await stop.wait()


class Claims:
    """Says that there is nothing to do, as soon as it may."""

    def __init__(self, *, looks: int = 0) -> None:
        """`looks` at the lines say that there is more."""
        self.looks = looks
        self.asked: Counter[str] = Counter()
        self.may_answer = asyncio.Event()
        self.failed: deque[FailedClaim] = deque()

    async def __call__(self, commands: Sequence[Command], lanes: Sequence[Lane]) -> list[Claim]:
        self.asked.update(command.draft_id for command in commands)
        await self.may_answer.wait()
        return [Over() for _ in commands]

    async def next_turn(self, lanes: Sequence[Lane]) -> tuple[datetime | None, datetime]:
        return None, NOW

    async def from_lines(self, lanes: Sequence[Lane], *, most: int) -> Turns:
        self.looks -= 1
        return Turns(claimed=[], more=self.looks >= 0)


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
    """Claims whatever is asked for, and finds a post in line whenever it looks. Notes which of them came."""

    def __init__(self) -> None:
        super().__init__()
        self.order: list[str] = []

    async def __call__(self, commands: Sequence[Command], lanes: Sequence[Lane]) -> list[Claim]:
        self.asked.update(command.draft_id for command in commands)
        self.order += ["due"] * len(commands)
        return [_claimed(command) for command in commands]

    async def next_turn(self, lanes: Sequence[Lane]) -> tuple[datetime | None, datetime]:
        return NOW, NOW

    async def from_lines(self, lanes: Sequence[Lane], *, most: int) -> Turns:
        self.order.append("line")
        (command,) = commands(1, first=1000 + len(self.order))
        return Turns(claimed=[(command, _claimed(command))], more=True)


def _claimed(command: Command) -> Claimed:
    job = PostJob(
        organization_id=command.organization_id,
        id=command.post_job_id,
        draft_id=command.draft_id,
        target=command.target,
        state=JobState.SENDING,
        create_time=NOW,
        update_time=NOW,
    )
    return Claimed(
        job=job,
        provider="sandbox",
        external_account_id="",
        credentials=b"",
        content=b"",
        content_digest="",
        idempotency_key="",
    )


class Narrow:
    """A lane with room for one post."""

    def __init__(self) -> None:
        self.when_full: Callable[[], None] = lambda: None
        self._room = 1
        self._waiting: asyncio.Queue[Work | None] = asyncio.Queue()

    @property
    def now(self) -> Lane:
        return Lane(provider="sandbox", room=self._room, lease=timedelta(seconds=15))

    def enter(self, work: Work) -> None:
        self._room -= 1
        self._waiting.put_nowait(work)
        self.when_full()

    def leave(self) -> None:
        self._room += 1

    def show(self) -> None:
        pass

    async def run(self, send: Callable[[Work], Awaitable[None]], seconds: Callable[[], float]) -> None:
        while (work := await self._waiting.get()) is not None:
            await send(work)

    def end(self) -> None:
        self._waiting.put_nowait(None)


async def _send(claimed: Claimed, *, claim_started: float) -> Sent:
    return Sent(claimed=claimed, outcome=Accepted(external_id="", external_url=""), time=NOW)


async def _settle(batch: Sequence[Sent]) -> list[PostJob]:
    return [sent.claimed.job for sent in batch]


def a_pipeline(claims: Claims, lane: Any = None, wake_up: WakeUp | None = None) -> PublishPipeline:
    system = SystemClock()
    steady = SteadyClock(system)
    steady.learn(system.now(), asked=system.monotonic(), answered=system.monotonic())
    return PublishPipeline(
        intake=cast(Any, NoIntake()),
        wake_up=wake_up or WakeUp(),
        claim=cast(Any, claims),
        send=cast(Any, _send),
        settle=cast(Any, _settle),
        tell_started=UNUSED,
        disown=UNUSED,
        clock=system,
        steady=steady,
        lanes={"sandbox": lane or ProviderLane("sandbox", senders=1, lease=timedelta(seconds=15))},
    )


async def test_what_the_sweep_hands_on_again_while_it_waits_is_not_done_twice() -> None:
    claims = Claims()
    pipeline = a_pipeline(claims)
    for _ in range(5):
        pipeline.submit_commands(commands(100))
    pipeline.submit_commands(commands(1, first=100))
    claims.may_answer.set()
    await _run(pipeline, claims, done=101)
    assert claims.asked == Counter(f"d{number}" for number in range(101))


async def test_what_is_over_can_be_handed_on_again() -> None:
    claims = Claims()
    claims.may_answer.set()
    pipeline = a_pipeline(claims)
    for times in (1, 2):
        pipeline.submit_commands(commands(3))
        await _run(pipeline, claims, done=3 * times)
    assert claims.asked == Counter(["d0", "d1", "d2"] * 2)


async def test_lines_are_looked_at_again_at_once_while_there_is_more() -> None:
    """No look in between says that a line has its turn."""
    claims = Claims(looks=200)
    claims.may_answer.set()
    pipeline = a_pipeline(claims)
    pipeline.submit_commands(commands(1))
    await _run(pipeline, claims, done=1)
    assert claims.looks < 0


async def test_while_there_is_too_little_room_commands_and_lines_take_turns() -> None:
    claims, lane, wake_up = Competing(), Narrow(), WakeUp()
    pipeline = a_pipeline(claims, lane, wake_up)
    # Something is due, or has its turn, while there is no room.
    lane.when_full = wake_up.wake_lines
    pipeline.submit_commands(commands(20))
    await _run(pipeline, claims, done=20)
    assert claims.order[:20].count("line") == 10
    assert claims.order[:20].count("due") == 10


async def test_of_very_many_only_so_many_are_kept() -> None:
    claims = Claims()
    claims.may_answer.set()
    pipeline = a_pipeline(claims)
    pipeline.submit_commands(commands(5000))
    await _run(pipeline, claims, done=2000)
    assert claims.asked.total() == 2000


async def test_however_many_of_an_organization_are_kept_another_finds_a_place() -> None:
    claims = Claims()
    claims.may_answer.set()
    pipeline = a_pipeline(claims)
    pipeline.submit_commands(commands(5000))
    pipeline.submit_commands([replace(each, organization_id="another") for each in commands(1, first=5000)])
    await _run(pipeline, claims, done=2001)
    assert claims.asked["d5000"] == 1


def a_work(organization: str, account: str, name: str) -> Work:
    (command,) = commands(1)
    target = Target(social_account_id=account, channel="facebook")
    return Work(command=replace(command, organization_id=organization, draft_id=name, target=target), since=0)


def test_turns_go_round_organizations_and_their_accounts() -> None:
    queue = TurnQueue[Work](lambda work: work.account)
    for number in range(3):
        queue.add(a_work("big", "one", f"one-{number}"))
    queue.add(a_work("big", "two", "two-0"))
    queue.add(a_work("small", "page", "page-0"))
    taken = [work.command.draft_id for work in queue.take(4)]
    assert taken == ["one-0", "page-0", "two-0", "one-1"]
    assert [work.command.draft_id for work in queue.take_all()] == ["one-2"]
    assert not queue


def test_a_lane_takes_as_many_as_its_senders_finish_soon() -> None:
    lane = ProviderLane("sandbox", senders=4, lease=timedelta(seconds=15))
    assert lane.now.room > 100
    for _ in range(lane.now.room):
        lane.enter(a_work("acme", "page", "d"))
    assert lane.now.room == 0
    lane.leave()
    assert lane.now.room == 0  # it has not been sent yet


async def test_a_slow_provider_is_given_no_more_than_its_senders_take() -> None:
    lane = ProviderLane("sandbox", senders=4, lease=timedelta(seconds=15))
    times = iter(range(0, 1000, 10))

    async def send(work: Work) -> None:
        lane.leave()

    lane.enter(a_work("acme", "page", "d"))
    lane.end()
    await lane.run(send, lambda: float(next(times)))
    assert lane.now.room == 4
