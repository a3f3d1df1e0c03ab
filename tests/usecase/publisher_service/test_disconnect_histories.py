"""Random histories of two publishers with disconnections and dead destinations: what was stopped does not start."""

import random
from collections.abc import Awaitable, Callable, Mapping

import pytest

from publisher_service.application.send_post import Sent
from publisher_service.domain.claim import Claimed
from publisher_service.domain.credentials import ERASED
from publisher_service.domain.destination import DestinationState
from publisher_service.domain.outcome import NotBegun
from publisher_service.domain.post_job import Reason, Target
from testkit.database_clocks import FrozenDatabaseClock
from tests.usecase.publisher_service.addressees import releasing, switch
from tests.usecase.publisher_service.disconnecting import disconnect
from tests.usecase.publisher_service.histories import LEASE, MOST, POLICY, Author, History
from tests.usecase.publisher_service.random_provider import RandomAdapter, RandomProvider
from tests.usecase.publisher_service.replica import Replica


class LeavingHistory(History):
    """Adds people who disconnect accounts and switch destinations, and checks each claim against what they did."""

    def __init__(
        self, replicas: tuple[Replica, Replica], clock: FrozenDatabaseClock, provider: RandomProvider, *, drafts: int
    ) -> None:
        super().__init__(replicas[0], clock, provider, drafts=drafts)
        self.replicas = replicas
        # What the answers have listed, by account.
        self.gone: dict[str, set[str]] = {}
        self.inactive: set[Target] = set()

    @property
    def actions(self) -> Mapping[Callable[[Author], Awaitable[None]], int]:
        mine: dict[Callable[[Author], Awaitable[None]], int] = {
            self.leave: 4,
            self.deactivate: 4,
            self.activate: 6,
            self.release: 10,
        }
        return {**super().actions, **mine}

    async def leave(self, author: Author) -> None:
        gone = await disconnect(self.replica, author.account)
        self.gone.setdefault(author.account, set()).update(gone.in_flight)
        assert gone.account.state == "DISCONNECTED"

    async def reconnect(self, author: Author) -> None:
        await super().reconnect(author)
        self.gone.pop(author.account, None)

    async def deactivate(self, author: Author) -> None:
        await switch(self.replica, author.target, DestinationState.INACTIVE)
        self.inactive.add(author.target)

    async def activate(self, author: Author) -> None:
        if author.target in self.inactive:
            await switch(self.replica, author.target, DestinationState.ACTIVE)
            self.inactive.remove(author.target)

    async def release(self, author: Author) -> None:
        await releasing(self.replica)()

    async def begin(self) -> Author:
        author = Addressed(f"d{next(self.numbers)}", self.dice.choice(self.accounts))
        await self.save(author)
        await self.new_slot(author)
        return author

    async def send(self, claimed: Claimed) -> None:
        job = claimed.job
        account = job.target.social_account_id
        assert account not in self.gone, "a claim has passed a closed gate"
        assert job.target not in self.inactive, "a claim has passed an inactive destination"
        token = self.replica.vault.open(claimed.credentials, organization_id="acme", account_id=account)
        assert token != ERASED
        if self.dice.random() > 0.15:
            await super().send(claimed)
            return
        self.gone[account] = set((await disconnect(self.replicas[1], account)).in_flight)
        assert job.id in self.gone[account]
        if self.dice.random() < 0.3:
            await super().send(claimed)
            return
        sent = Sent(
            claimed=claimed,
            outcome=NotBegun(reason=Reason.ACCOUNT_NOT_CONNECTED, message=""),
            time=self.clock.moment,
        )
        if self.dice.random() < 0.5:
            self.late.append(sent)
        else:
            await self.replica.settle([sent])

    async def check(self) -> None:
        await super().check()
        self.replica = self.dice.choice(self.replicas)
        for account, listed in self.gone.items():
            moving = await self.replica.rows(
                "select id from post_job where social_account_id = :account and state in ('SENDING', 'UNKNOWN')",
                account=account,
            )
            assert {row.id for row in moving} <= listed
            (row,) = await self.replica.rows("select state, credentials from social_account where id = :id", id=account)
            token = self.replica.vault.open(row.credentials, organization_id="acme", account_id=account)
            assert (row.state, token) == ("DISCONNECTED", ERASED)

    async def end(self) -> None:
        self.gone.clear()
        for target in self.inactive:
            await switch(self.replica, target, DestinationState.ACTIVE)
        self.inactive.clear()
        while await releasing(self.replica)():
            pass
        await super().end()
        blocked = await self.replica.rows("select 1 from post_job where state_reason = 'DESTINATION_INACTIVE'")
        assert blocked == []


class Addressed(Author):
    """A draft whose target is a page inside the account."""

    @property
    def target(self) -> Target:
        feed = super().target
        return Target(social_account_id=feed.social_account_id, channel=feed.channel, destination=f"of-{feed.channel}")


@pytest.mark.parametrize("seed", range(40, 46))
async def test_what_was_switched_off_does_not_start_in_any_history(database_url: str, seed: int) -> None:
    provider, clock = RandomProvider(random.Random(seed), MOST), FrozenDatabaseClock()
    replicas = tuple(
        Replica(
            database_url,
            lease=LEASE,
            clock=clock,
            adapter=RandomAdapter(provider),
            policy=POLICY,
            draw=provider.dice.random,
        )
        for _ in range(2)
    )
    try:
        await LeavingHistory((replicas[0], replicas[1]), clock, provider, drafts=6).run(250)
    finally:
        for replica in replicas:
            await replica.database.dispose()
