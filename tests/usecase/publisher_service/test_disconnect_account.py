"""DisconnectAccount: nothing begins with erased credentials, and what waits goes out once they are replaced."""

import asyncio
import logging
import random
from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import combinations

import pytest

from postflow.bus.v1 import bus_pb2
from postflow.publisher.v1 import publisher_events_pb2
from publisher_service.adapters.providers.adapter import Post
from publisher_service.adapters.providers.provider import Providers
from publisher_service.application.hold_check import HoldCheck
from publisher_service.application.reseal_credentials import ResealCredentials
from publisher_service.application.send_post import SendPost, Sent
from publisher_service.domain.account import AccountState
from publisher_service.domain.claim import Claimed
from publisher_service.domain.credentials import ERASED
from publisher_service.domain.outcome import Accepted, Ambiguous, AuthRefused, Finding, Found, NotBegun, Outcome
from publisher_service.domain.policy import Policy
from servicekit.faults import NotFound
from servicekit.pg.clock import SteadyClock
from testkit.clocks import FrozenClock
from tests.usecase.publisher_service.disconnecting import disconnect
from tests.usecase.publisher_service.replica import AT_ONCE, Replica, TrustingAdapter, a_command, a_sent, claims_in

SENDER = ("claim", "look", "request", "settle")
OWNER = ("disconnect", "connect", "disconnect")
FRESH, OLD = timedelta(milliseconds=10), timedelta(milliseconds=300)
"""Between two steps: as long as a look counts, and longer."""


class Witness(TrustingAdapter):
    """Notes the token of each request as it begins."""

    def __init__(self) -> None:
        self.tokens: list[str] = []

    async def send(self, post: Post) -> Outcome:
        self.tokens.append(post.access_token)
        return Accepted(external_id=f"out-{len(self.tokens)}", external_url="")

    async def look(self, post: Post) -> Finding:
        return Found(external_id="found", external_url="")


def orders() -> Iterator[Sequence[str]]:
    """Yields every order of the steps that keeps each side's own order."""
    for places in combinations(range(len(SENDER) + len(OWNER)), len(OWNER)):
        sender, owner = iter(SENDER), iter(OWNER)
        yield [next(owner) if place in places else next(sender) for place in range(len(SENDER) + len(OWNER))]


async def events(replica: Replica) -> list[tuple[str, int, str]]:
    """Returns the account events: their kind, version and reason."""
    found = [
        event
        for row in await replica.rows("select payload from outbox order by position")
        for event in bus_pb2.Envelope.FromString(row.payload).events
    ]
    kinds = {
        kind.DESCRIPTOR.full_name: kind
        for kind in (publisher_events_pb2.SocialAccountConnected, publisher_events_pb2.SocialAccountDisconnected)
    }
    decoded = [(event.type, kinds[event.type].FromString(event.payload)) for event in found if event.type in kinds]
    return [
        (name.rpartition(".")[2], message.social_account.version, message.social_account.state_reason)
        for name, message in decoded
    ]


async def test_a_disconnected_account_says_why_and_keeps_no_secret(replica: Replica) -> None:
    await replica.connect("page", token="canary-1")
    gone = (await disconnect(replica, "page", note="left the agency")).account
    assert (gone.state, gone.state_reason, gone.error_message) == (
        AccountState.DISCONNECTED,
        "DISCONNECTED_BY_REQUEST",
        "left the agency",
    )
    assert (gone.version, gone.disconnect_time is None) == (2, False)
    (row,) = await replica.rows("select credentials from social_account")
    assert replica.vault.open(row.credentials, organization_id="acme", account_id="page") == ERASED
    assert await events(replica) == [
        ("SocialAccountConnected", 1, ""),
        ("SocialAccountDisconnected", 2, "DISCONNECTED_BY_REQUEST"),
    ]


async def test_erased_credentials_are_not_taken_for_unreadable_ones(
    replica: Replica, caplog: pytest.LogCaptureFixture
) -> None:
    await replica.connect("page")
    await disconnect(replica, "page", note="canary-2")
    reseal = ResealCredentials(replica.database, replica.vault)
    while await reseal.step():
        pass
    assert "canary-2" not in caplog.text
    assert [each for each in caplog.records if each.levelno >= logging.ERROR] == []


async def test_posts_wait_for_the_account_and_go_out_once_it_is_connected(replica: Replica) -> None:
    names = await replica.posts(3, account="page")
    await replica.claim([a_command(name, "page") for name in names[1:]])
    (out,) = await replica.rows("select id from post_job where state = 'SENDING'")
    gone = await disconnect(replica, "page")
    assert gone.in_flight == (out.id,)
    while await replica.relabel():
        pass
    await replica.claim([a_command(names[0], "page")])
    assert await replica.states() == {"SENDING": 1, "BLOCKED ACCOUNT_NOT_CONNECTED": 2}
    assert await replica.next_in_line() == []
    known = gone.account
    again = await replica.connect("page", token="another")
    assert (again.id, again.create_time, again.state, again.version) == (known.id, known.create_time, "CONNECTED", 3)
    assert (again.state_reason, again.error_message, again.disconnect_time) == ("", "", None)


async def test_an_unknown_account_is_refused(replica: Replica) -> None:
    with pytest.raises(NotFound) as refusal:
        await disconnect(replica, "page")
    assert refusal.value.reason == "ACCOUNT_NOT_FOUND"
    assert await replica.rows("select 1 from account_gate") == []


async def test_of_a_refused_account_only_the_credentials_are_erased(replica: Replica) -> None:
    (name,) = await replica.posts(1)
    (claimed,) = claims_in(await replica.claim([a_command(name)]))
    await replica.settle([a_sent(claimed, AuthRefused(message="revoked"))])
    gone = (await disconnect(replica, f"page-{name}", note="never mind")).account
    assert (gone.state_reason, gone.error_message, gone.version) == ("CREDENTIALS_REFUSED", "revoked", 2)
    (row,) = await replica.rows("select credentials from social_account")
    assert replica.vault.open(row.credentials, organization_id="acme", account_id=f"page-{name}") == ERASED
    assert len(await events(replica)) == 1


async def test_a_late_refusal_of_the_old_credentials_leaves_the_new_ones(replica: Replica) -> None:
    (name,) = await replica.posts(1)
    (claimed,) = claims_in(await replica.claim([a_command(name)]))
    await disconnect(replica, f"page-{name}")
    await replica.connect(f"page-{name}", token="another")
    await replica.settle([a_sent(claimed, AuthRefused(message="revoked"))])
    (row,) = await replica.rows("select state from social_account")
    assert row.state == "CONNECTED"
    assert len(await replica.next_in_line()) == 1


@pytest.mark.parametrize("reconnects", [True, False])
async def test_an_unknown_outcome_waits_for_credentials_or_a_person(database_url: str, reconnects: bool) -> None:
    policy = (
        AT_ONCE
        if reconnects
        else Policy(unknown_settle=timedelta(0), lookup_again=timedelta(0), unknown_deadline=timedelta(0))
    )
    replica = Replica(database_url, adapter=Witness(), policy=policy)
    (name,) = await replica.posts(1)
    (claimed,) = claims_in(await replica.claim([a_command(name)]))
    await replica.settle([a_sent(claimed, Ambiguous(reason="TIMEOUT", message=""))])
    assert (await disconnect(replica, f"page-{name}")).in_flight == (claimed.job.id,)
    if reconnects:
        (question,) = (await replica.recover()).questions
        await replica.look_up(question.job)
        assert await replica.states() == {"UNKNOWN": 1}
        await replica.connect(f"page-{name}", token="another")
        await replica.look_up(question.job)
        assert await replica.states() == {"PUBLISHED": 1}
    else:
        (question,) = (await replica.recover()).questions
        await replica.look_up(question.job)
        (job,) = await replica.rows("select * from post_job")
        assert job.state == "NEEDS_ATTENTION"
        assert "credentials are erased" in job.error_message
    await replica.database.dispose()


class Race:
    """One post and its account; the sender claims and sends, the owner is another replica."""

    def __init__(self, name: str, sender: Replica, owner: Replica, send: SendPost, clock: FrozenClock) -> None:
        self.name, self.account = name, f"page-{name}"
        self.sender, self.owner, self.send, self.clock = sender, owner, send, clock
        self.claimed: Claimed | None = None
        self.claim_started = 0.0
        self.sent: Sent | None = None
        self.is_gone = self.has_left = self.began_late = False
        self.listed: set[str] = set()

    async def step(self, what: str, witness: Witness) -> None:
        match what:
            case "claim":
                self.claim_started = self.clock.monotonic()
                self.claimed = next(iter(claims_in(await self.sender.claim([a_command(self.name)]))), None)
                assert self.claimed is None or not self.is_gone, "a claim has passed a closed gate"
            case "look":
                await self.send.look_ahead(self.claim_started)
            case "request" if self.claimed is not None:
                before = len(witness.tokens)
                self.sent = await self.send(self.claimed, claim_started=self.claim_started)
                if "token" in witness.tokens[before:] and self.has_left:
                    assert self.claimed.job.id in self.listed, "erased credentials, and not listed"
                    self.began_late = True
            case "settle" if self.sent is not None:
                await self.sender.settle([self.sent])
            case "disconnect":
                self.listed |= {*(await disconnect(self.owner, self.account)).in_flight}
                self.is_gone = self.has_left = True
            case "connect":
                await self.owner.connect(self.account, token="another")
                self.is_gone = False


@pytest.mark.parametrize("pause", [FRESH, OLD], ids=["fresh", "old"])
async def test_no_order_starts_what_the_answer_does_not_list(
    database_url: str, another: Replica, pause: timedelta
) -> None:
    witness, clock = Witness(), FrozenClock()
    replica = Replica(database_url, adapter=witness)
    steady = SteadyClock(replica.system)
    await steady.start(replica.clock, replica.database)
    holds = HoldCheck(database=replica.database, clock=clock)
    send = SendPost(
        providers=Providers([witness], clock),
        vault=replica.vault,
        holds=holds,
        database=replica.database,
        clock=clock,
        steady=steady,
    )
    every, late = list(orders()), []
    for name, order in zip(await replica.posts(len(every)), every, strict=True):
        race = Race(name, replica, another, send, clock)
        clock.advance(OLD)
        await send.look_ahead(clock.monotonic())
        for what in order:
            clock.advance(pause)
            await race.step(what, witness)
        late += [order] if race.began_late else []

    # A look that is older than the disconnection is used only for as long as it counts.
    assert all(order.index("look") < order.index("request") for order in late)
    assert bool(late) is (pause is FRESH)
    for name in (f"page-d{number}" for number in range(len(every))):
        await another.connect(name, token="another")
    while await replica.relabel():
        pass
    while again := await replica.next_in_line():
        await replica.settle([await send(each, claim_started=clock.monotonic()) for each in again])
    assert set(await replica.states()) <= {"PUBLISHED", "PENDING"}
    assert ERASED.access_token not in witness.tokens
    await replica.database.dispose()


async def test_nothing_begins_after_the_answer_with_two_publishers(database_url: str, another: Replica) -> None:
    """Takes the steps at random and at once; what the answer does not list never reaches the provider."""
    witness = Witness()
    sender = Replica(database_url, adapter=witness)
    names = await sender.posts(90)
    listed: set[str] = set()
    gone: set[str] = set()
    unlisted: list[str] = []

    async def publish(mine: Replica, name: str) -> None:
        await asyncio.sleep(random.uniform(0, 0.02))
        started = sender.system.monotonic()
        for claimed in claims_in(await mine.claim([a_command(name)])):
            await sender.send_post.look_ahead(started)
            await asyncio.sleep(random.uniform(0, 0.02))
            was_gone = name in gone
            sent = await sender.send_post(claimed, claim_started=started)
            if was_gone and not isinstance(sent.outcome, NotBegun) and claimed.job.id not in listed:
                unlisted.append(name)
            await mine.settle([sent])

    async def leave(name: str) -> None:
        await asyncio.sleep(random.uniform(0, 0.04))
        listed.update((await disconnect(another, f"page-{name}")).in_flight)
        gone.add(name)

    for first in range(0, len(names), 3):
        async with asyncio.TaskGroup() as group:
            for number, name in enumerate(names[first : first + 3]):
                group.create_task(publish((sender, another)[number % 2], name))
            group.create_task(leave(names[first]))
    await sender.database.dispose()
    assert unlisted == []
    states = await another.states()
    assert set(states) <= {"PUBLISHED", "PENDING", "BLOCKED ACCOUNT_NOT_CONNECTED"}
    assert states["PUBLISHED"] == len(witness.tokens)
