"""Random histories with holds, take-backs and late commands: nothing starts that was stopped, and all else ends."""

import random
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import timedelta

import pytest

from publisher_service.application.send_post import Sent
from publisher_service.domain.claim import Claimed
from publisher_service.domain.hold import Scope
from publisher_service.domain.outcome import NotBegun
from publisher_service.domain.plan import Slot
from publisher_service.domain.post_job import Reason
from publisher_service.domain.take_back import CancelOutcome, SlotPost
from testkit.database_clocks import FrozenDatabaseClock
from tests.usecase.publisher_service.histories import LEASE, MOST, POLICY, Author, History, a_command_of
from tests.usecase.publisher_service.random_provider import RandomAdapter, RandomProvider
from tests.usecase.publisher_service.replica import Replica

MAY_BE_OUT = ("SENDING", "UNKNOWN", "NEEDS_ATTENTION", "PUBLISHED")


class StoppedHistory(History):
    """Adds what stops posts, and checks each claim and each request against what was stopped."""

    def __init__(
        self,
        replica: Replica,
        other: Replica,
        clock: FrozenDatabaseClock,
        provider: RandomProvider,
        *,
        drafts: int,
    ) -> None:
        """`other` puts, releases and frees, too."""
        super().__init__(replica, clock, provider, drafts=drafts)
        self.other = other
        # What the answers listed, by the id of the hold, which names its scope and what it covers.
        self.held: dict[str, set[str]] = {}
        self.slots: defaultdict[str, list[Slot]] = defaultdict(list)
        # The greatest revision of each slot that was taken back, by job.
        self.taken_back: dict[tuple[str, str], int] = {}

    @property
    def actions(self) -> Mapping[Callable[[Author], Awaitable[None]], int]:
        mine: dict[Callable[[Author], Awaitable[None]], int] = {
            self.put_hold: 4,
            self.release_hold: 10,
            self.free: 8,
            self.take_back: 6,
            self.cancel_slot: 2,
            self.move_unheard: 4,
            self.late_command: 10,
        }
        return {**super().actions, **mine}

    async def put_hold(self, author: Author) -> None:
        await self.put(self.dice.choice(_holds_of(author)))

    async def put(self, hold: str) -> None:
        """Puts the hold by one of two replicas."""
        scope, _, scope_id = hold.partition("-")
        replica = self.dice.choice([self.replica, self.other])
        self.held[hold] = set((await replica.hold(scope_id, scope=Scope(scope), hold=hold)).in_flight)

    async def release_hold(self, author: Author) -> None:
        hold = self.dice.choice(_holds_of(author))
        if hold in self.held:
            del self.held[hold]
            await self.dice.choice([self.replica, self.other]).release(hold)

    async def free(self, author: Author) -> None:
        await self.dice.choice([self.replica, self.other]).free()

    def is_held(self, account: str, brand: str, campaign: str) -> bool:
        return any(hold in self.held for hold in _holds(account, brand, campaign))

    def ids_of(self, author: Author) -> tuple[str, str]:
        return _brands(author)

    async def new_slot(self, author: Author) -> None:
        await super().new_slot(author)
        self._remember(author)

    async def move(self, author: Author) -> None:
        await super().move(author)
        self._remember(author)

    async def move_unheard(self, author: Author) -> None:
        """Moves the slot; its command, or its take-back, comes before the event, which is lost."""
        assert author.slot is not None
        author.slot = replace(author.slot, revision=author.slot.revision + 1, schedule_time=self.clock.moment)
        self._remember(author)

    async def late_command(self, author: Author) -> None:
        """Delivers a command of any of the draft's slots once more."""
        await self.claim([a_command_of(author, self.dice.choice(self.slots[author.name]))])

    async def take_back(self, author: Author) -> None:
        slot = self.dice.choice(self.slots[author.name][-3:])
        post = _post(author, slot)
        (result,) = await self.replica.take_back(post)
        match result.outcome:
            case CancelOutcome.CANCELED:
                key = result.job.id, post.slot_id
                self.taken_back[key] = max(self.taken_back.get(key, 0), post.slot_revision)
                assert (result.job.state, result.job.state_reason) == ("CANCELED", "TAKEN_BACK")
            case CancelOutcome.TOO_LATE:
                assert result.job.in_doubt or result.job.state in MAY_BE_OUT or result.job.is_called
        if self.dice.random() < 0.5:
            await self.claim([a_command_of(author, slot)])

    async def cancel_slot(self, author: Author) -> None:
        """Cancels the draft's newest slot, as Queue does with one that it has not dispatched."""
        assert author.slot is not None
        author.slot = replace(author.slot, revision=author.slot.revision + 1)
        await self.replica.drop(_post(author, author.slot), now=self.clock.moment)
        self._remember(author)

    async def send(self, claimed: Claimed) -> None:
        job = claimed.job
        account = job.target.social_account_id
        # Another post of the same batch of claims may have met the hold, whose answer then lists this one.
        is_listed = any(job.id in listed for listed in self.held.values())
        assert is_listed or not self.is_held(account, job.brand_id, job.campaign_id), "a claim has passed a hold"
        was_taken_back = job.slot_revision <= self.taken_back.get((job.id, job.slot_id), 0)
        assert job.is_called or not was_taken_back, "a post that was taken back starts"
        if self.dice.random() > 0.15:
            await super().send(claimed)
            return
        hold = self.dice.choice(_holds(account, job.brand_id, job.campaign_id))
        await self.put(hold)
        assert job.id in self.held[hold]
        if self.dice.random() < 0.3:
            await super().send(claimed)
            return
        scope, _, _ = hold.partition("-")
        unsent = NotBegun(reason=Reason(f"{scope}_ON_HOLD"), message="")
        sent = Sent(claimed=claimed, outcome=unsent, time=self.clock.moment)
        if self.dice.random() < 0.5:
            self.late.append(sent)
        else:
            await self.replica.settle([sent])

    async def check(self) -> None:
        await super().check()
        moving = await self.replica.rows(
            "select id, social_account_id, brand_id, campaign_id from post_job where state in ('SENDING', 'UNKNOWN')"
        )
        for row in moving:
            for hold in _holds(row.social_account_id, row.brand_id, row.campaign_id):
                assert row.id in self.held.get(hold, {row.id})
        closed = await self.replica.rows("select social_account_id from account_gate where held")
        assert {f"ACCOUNT-{row.social_account_id}" for row in closed} == {
            hold for hold in self.held if hold.startswith("ACCOUNT")
        }

    async def end(self) -> None:
        for hold in list(self.held):
            await self.replica.release(hold)
        self.held.clear()
        while await self.replica.rows("select 1 from hold_release"):
            self.clock.moment += timedelta(seconds=1)
            await self.other.free()
        assert await self.replica.rows("select 1 from account_gate where frozen <> ''") == []
        await super().end()

    def _remember(self, author: Author) -> None:
        assert author.slot is not None
        self.slots[author.name].append(author.slot)


def _brands(author: Author) -> tuple[str, str]:
    """Returns the brand and the campaign of a draft; some have none."""
    number = int(author.name[1:])
    return ("", "bakery", "florist")[number % 3], ("", "spring")[number % 2]


def _holds(account: str, brand: str, campaign: str) -> list[str]:
    """Returns the ids of the holds that would cover a post."""
    holds = [f"ACCOUNT-{account}", "ORGANIZATION-", "PROVIDER-sandbox"]
    return holds + [f"BRAND-{brand}"] * bool(brand) + [f"CAMPAIGN-{campaign}"] * bool(campaign)


def _holds_of(author: Author) -> list[str]:
    return _holds(author.account, *_brands(author))


def _post(author: Author, slot: Slot) -> SlotPost:
    return SlotPost(
        organization_id="acme",
        draft_id=author.name,
        target=author.target,
        slot_id=slot.slot_id,
        slot_revision=slot.revision,
        slot_sequence=slot.sequence,
    )


@pytest.mark.parametrize("seed", range(20, 26))
async def test_what_was_stopped_does_not_start_in_any_history(database_url: str, seed: int) -> None:
    provider, clock = RandomProvider(random.Random(seed), MOST), FrozenDatabaseClock()
    replica = Replica(
        database_url,
        lease=LEASE,
        clock=clock,
        adapter=RandomAdapter(provider),
        policy=POLICY,
        draw=provider.dice.random,
    )
    other = Replica(database_url, clock=clock)
    try:
        await StoppedHistory(replica, other, clock, provider, drafts=6).run(250)
    finally:
        await replica.database.dispose()
        await other.database.dispose()
