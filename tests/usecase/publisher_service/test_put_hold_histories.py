"""Random histories with holds, take-backs and late commands: nothing starts that was stopped, and all else ends."""

import random
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

import pytest

from publisher_service.application.send_post import Sent
from publisher_service.domain.claim import Claimed
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

    def __init__(self, replica: Replica, clock: FrozenDatabaseClock, provider: RandomProvider, *, drafts: int) -> None:
        super().__init__(replica, clock, provider, drafts=drafts)
        self.held: dict[str, set[str]] = {}
        self.slots: defaultdict[str, list[Slot]] = defaultdict(list)
        # The greatest revision of each slot that was taken back, by job.
        self.taken_back: dict[tuple[str, str], int] = {}

    @property
    def actions(self) -> Mapping[Callable[[Author], Awaitable[None]], int]:
        mine: dict[Callable[[Author], Awaitable[None]], int] = {
            self.put_hold: 4,
            self.release_hold: 8,
            self.take_back: 6,
            self.cancel_slot: 2,
            self.move_unheard: 4,
            self.late_command: 10,
        }
        return {**super().actions, **mine}

    async def put_hold(self, author: Author) -> None:
        self.held[author.account] = set((await self.replica.hold(author.account, hold=author.account)).in_flight)

    async def release_hold(self, author: Author) -> None:
        if author.account in self.held:
            await self.replica.release(author.account)
            del self.held[author.account]

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
                assert result.job.in_doubt or result.job.state in MAY_BE_OUT
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
        assert job.target.social_account_id not in self.held, "a claim has passed a closed gate"
        assert job.slot_revision > self.taken_back.get((job.id, job.slot_id), 0), "a post that was taken back starts"
        if self.dice.random() > 0.15:
            await super().send(claimed)
            return
        holding = await self.replica.hold(job.target.social_account_id, hold=job.target.social_account_id)
        assert job.id in holding.in_flight
        self.held[job.target.social_account_id] = set(holding.in_flight)
        if self.dice.random() < 0.3:
            await super().send(claimed)
            return
        unsent = NotBegun(reason=Reason.ACCOUNT_ON_HOLD, message="")
        sent = Sent(claimed=claimed, outcome=unsent, time=self.clock.moment)
        if self.dice.random() < 0.5:
            self.late.append(sent)
        else:
            await self.replica.settle([sent])

    async def check(self) -> None:
        await super().check()
        for account, listed in self.held.items():
            moving = await self.replica.rows(
                "select id from post_job where social_account_id = :account and state in ('SENDING', 'UNKNOWN')",
                account=account,
            )
            assert {row.id for row in moving} <= listed
        closed = await self.replica.rows("select social_account_id from account_gate where held")
        assert {row.social_account_id for row in closed} == set(self.held)

    async def end(self) -> None:
        for account in list(self.held):
            await self.replica.release(account)
        self.held.clear()
        await super().end()

    def _remember(self, author: Author) -> None:
        assert author.slot is not None
        self.slots[author.name].append(author.slot)


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
    try:
        await StoppedHistory(replica, clock, provider, drafts=6).run(250)
    finally:
        await replica.database.dispose()
