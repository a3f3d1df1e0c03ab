"""Claim, look, request, settlement, put and release in every order: no request begins that an answer has not listed."""

import asyncio
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import combinations

import pytest

from publisher_service.adapters.providers.adapter import Post
from publisher_service.adapters.providers.provider import Providers
from publisher_service.application.hold_check import HoldCheck
from publisher_service.application.send_post import SendPost, Sent
from publisher_service.domain.claim import Claimed
from publisher_service.domain.hold import Scope
from publisher_service.domain.outcome import Accepted, NotBegun, Outcome
from servicekit.pg.clock import SteadyClock
from testkit.clocks import FrozenClock
from tests.usecase.publisher_service.replica import Replica, TrustingAdapter, a_command, a_draft, claims_in

SENDER = ("claim", "look", "request", "settle")
HOLDER = ("put", "release", "put")
IDS = {Scope.ORGANIZATION: "", Scope.PROVIDER: "sandbox", Scope.BRAND: "bakery", Scope.CAMPAIGN: "spring"}
FRESH, OLD = timedelta(milliseconds=10), timedelta(milliseconds=300)
"""Between two steps: as long as a look counts, and longer."""


def orders() -> Iterator[Sequence[str]]:
    """Yields every order of the steps that keeps each side's own order."""
    for places in combinations(range(len(SENDER) + len(HOLDER)), len(HOLDER)):
        sender, holder = iter(SENDER), iter(HOLDER)
        yield [next(holder) if place in places else next(sender) for place in range(len(SENDER) + len(HOLDER))]


class Witness(TrustingAdapter):
    """Notes the key of each request as it begins."""

    def __init__(self) -> None:
        self.began: list[str] = []

    async def send(self, post: Post) -> Outcome:
        self.began.append(post.idempotency_key)
        return Accepted(external_id=f"out-{len(self.began)}", external_url="")


@dataclass(kw_only=True)
class Side:
    """A post and a hold that covers it; `sender` claims and sends, `holder` is another replica."""

    name: str
    scope: Scope
    sender: Replica
    holder: Replica
    send: SendPost
    clock: FrozenClock
    witness: Witness
    listed: Sequence[str] | None = None
    claimed: Claimed | None = None
    claim_started: float = 0.0
    sent: Sent | None = None
    began_under_hold: bool = field(default=False, init=False)

    async def step(self, what: str) -> None:
        match what:
            case "claim":
                await self._claim()
            case "look":
                await self.send.look_ahead(self.claim_started)
            case "request" if self.claimed is not None:
                await self._request(self.claimed)
            case "settle" if self.sent is not None:
                await self.sender.settle([self.sent])
            case "put":
                self.listed = await self._put()
            case "release":
                await self.holder.release(self.name)
                self.listed = None

    async def _put(self) -> Sequence[str]:
        scope_id = f"page-{self.name}" if self.scope is Scope.ACCOUNT else IDS[self.scope]
        return (await self.holder.hold(scope_id, scope=self.scope, hold=self.name)).in_flight

    async def _claim(self) -> None:
        self.claim_started = self.clock.monotonic()
        self.claimed = next(iter(claims_in(await self.sender.claim([a_command(self.name)]))), None)
        assert self.claimed is None or self.listed is None, "a claim has passed a closed gate"

    async def _request(self, claimed: Claimed) -> None:
        before = len(self.witness.began)
        self.sent = await self.send(claimed, claim_started=self.claim_started)
        if len(self.witness.began) > before and self.listed is not None:
            assert claimed.job.id in self.listed
            self.began_under_hold = True


@pytest.fixture
async def send(replica: Replica) -> tuple[SendPost, FrozenClock, Witness]:
    clock, witness, steady = FrozenClock(), Witness(), SteadyClock(replica.system)
    await steady.start(replica.clock, replica.database)
    holds = HoldCheck(database=replica.database, clock=clock)
    providers = Providers([witness], clock)
    database = replica.database
    send = SendPost(
        providers=providers, vault=replica.vault, holds=holds, database=database, clock=clock, steady=steady
    )
    return send, clock, witness


@pytest.mark.parametrize("pause", [FRESH, OLD], ids=["fresh", "old"])
@pytest.mark.parametrize("scope", Scope)
async def test_no_order_starts_what_the_answer_does_not_list(
    replica: Replica, another: Replica, send: tuple[SendPost, FrozenClock, Witness], scope: Scope, pause: timedelta
) -> None:
    """Claimed before a hold and begun after it is only what the answer lists, and only while a look counts."""
    send_post, clock, witness = send
    every = list(orders())
    late = []
    for name, order in zip(await _posts(replica, len(every)), every, strict=True):
        side = Side(
            name=name, scope=scope, sender=replica, holder=another, send=send_post, clock=clock, witness=witness
        )
        # As behind the claim before: a process that has just seen a hold looks at each gate.
        clock.advance(OLD)
        await send_post.look_ahead(clock.monotonic())
        for what in order:
            clock.advance(pause)
            await side.step(what)
        late += [order] if side.began_under_hold else []
        # It would cover the posts of the next orders, too.
        await another.release(name)

    # A look that is older than the hold is used only for as long as it counts.
    assert all(order.index("look") < order.index("request") for order in late)
    assert bool(late) is (pause is FRESH)
    async with asyncio.timeout(30):
        while await replica.states() != {"PUBLISHED": len(every)}:
            await another.free()
            again = await replica.next_in_line()
            await replica.settle([await send_post(each, claim_started=clock.monotonic()) for each in again])
    assert len(witness.began) == len(set(witness.began)) == len(every)


async def _posts(replica: Replica, count: int) -> Sequence[str]:
    names = await replica.posts(count)
    await replica.save(*(a_draft(n, f"page-{n}", version=2, brand="bakery", campaign="spring") for n in names))
    return names


@pytest.mark.parametrize("scope", Scope)
async def test_nothing_begins_at_the_provider_after_a_hold_was_answered(
    database_url: str, another: Replica, scope: Scope
) -> None:
    """Takes the steps at random and at once, in two replicas and on the clock of the system."""
    witness = Witness()
    sender = Replica(database_url, adapter=witness)
    names = await _posts(sender, 120)
    listed: set[str] = set()
    held: set[str] = set()
    unlisted: list[str] = []

    async def publish(name: str) -> None:
        await asyncio.sleep(random.uniform(0, 0.02))
        started = sender.system.monotonic()
        for claimed in claims_in(await sender.claim([a_command(name)])):
            await sender.send_post.look_ahead(started)
            await asyncio.sleep(random.uniform(0, 0.02))
            was_held = name in held
            sent = await sender.send_post(claimed, claim_started=started)
            if was_held and not isinstance(sent.outcome, NotBegun) and claimed.job.id not in listed:
                unlisted.append(name)
            await sender.settle([sent])

    async def hold(covered: Sequence[str]) -> None:
        await asyncio.sleep(random.uniform(0, 0.04))
        scope_id = f"page-{covered[0]}" if scope is Scope.ACCOUNT else IDS[scope]
        listed.update((await another.hold(scope_id, scope=scope, hold=covered[0])).in_flight)
        held.update(covered)

    # Few holds: after each the process looks at those of every post, and would hide what an answer leaves out.
    for first in range(0, len(names), 3):
        some = names[first : first + 3]
        async with asyncio.TaskGroup() as group:
            for name in some:
                group.create_task(publish(name))
            group.create_task(hold(some[:1] if scope is Scope.ACCOUNT else some))
        if scope is not Scope.ACCOUNT:
            await another.release(some[0])
    assert unlisted == []
    states = await another.states()
    assert set(states) <= {"PUBLISHED", "PENDING", "READY IN_LINE", f"BLOCKED {scope}_ON_HOLD"}
    assert states["PUBLISHED"] == len(witness.began)
    async with asyncio.timeout(30):
        while scope is not Scope.ACCOUNT and await another.states() != {"PUBLISHED": len(names)}:
            await another.free()
            await sender.settle([await sender.send(each) for each in await sender.next_in_line()])
    assert len(witness.began) == len(set(witness.began))
    await sender.database.dispose()
