"""Random histories with PublishNow and RetryPostJob among commands, holds, withdrawals and take-backs."""

import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from publisher_service.domain.claim import Claimed
from publisher_service.domain.plan import SavedDraft
from servicekit.faults import InvalidField, Refused
from testkit.database_clocks import FrozenDatabaseClock
from tests.usecase.publisher_service.histories import LEASE, MOST, POLICY, Author
from tests.usecase.publisher_service.random_provider import RandomAdapter, RandomProvider
from tests.usecase.publisher_service.replica import Replica
from tests.usecase.publisher_service.test_put_hold_histories import StoppedHistory

OF_CONTENT = {"REVISION_OUTDATED", "NOT_APPROVED", "CONTENT_WITHDRAWN"}
OF_JOBS = {"ACCOUNT_NOT_CONNECTED", "ATTEMPT_OPEN", "NEEDS_ATTENTION", "ALREADY_PUBLISHED"}
WAITING = ("READY", "WAITING", "BLOCKED")


class CalledHistory(StoppedHistory):
    """Adds the calls that begin runs, and checks that no slot disturbs these, and that what stops posts stops them."""

    def __init__(self, *parts: Any, drafts: int) -> None:
        super().__init__(*parts, drafts=drafts)
        # The revision below which nothing of a draft may start.
        self.withdrawn: dict[str, int] = {}
        self.begun = 0

    @property
    def actions(self) -> Mapping[Callable[[Author], Awaitable[None]], int]:
        return {**super().actions, self.publish_now: 12, self.retry: 6, self.edit: 3}

    async def publish_now(self, author: Author) -> None:
        """Sends a draft at once: as it is announced, before it is announced, or as it was before its last change."""
        kind = self.dice.choice(["known", "known", "newer", "older"])
        if kind == "newer":
            author.revision, author.version = author.revision + 1, author.version + 1
            author.said = f"text {author.revision}"
        draft = self.announced(author)
        if kind == "older":
            draft = replace(draft, version=max(author.version - 1, 1), revision=max(author.revision - 1, 1))
        before = await self.job_of(author)
        until = self.clock.moment + timedelta(minutes=20)
        replica = self.dice.choice([self.replica, self.other])
        try:
            (result,) = await replica.publish(draft, not_after=until)
        except InvalidField:
            # The text of an older revision, or a target that the draft has lost.
            return await self._check_contradiction(draft)
        except Refused as refused:
            return self._check_refusal(refused.reason in OF_CONTENT, refused)
        is_held = self.is_held(author.account, *self.ids_of(author))
        assert not result.reason or result.reason in OF_JOBS or (result.reason.endswith("_ON_HOLD") and is_held)
        assert bool(result.reason) or not is_held
        assert (result.reason == "ALREADY_PUBLISHED") == (before.state == "PUBLISHED")
        if not result.reason:
            self.begun += 1
            assert (result.job.state, result.job.not_after) == ("READY", until)
        if self.dice.random() < 0.5:
            await self.sweep(author)
        return None

    async def retry(self, author: Author) -> None:
        job = await self.job_of(author)
        try:
            # An account that is refused again at the end stays disconnected until then.
            retried = await self.replica.retry(job.id, not_after=self.clock.moment + timedelta(minutes=20))
        except Refused as refused:
            is_ended = job.state in ("FAILED", "MISSED")
            return self._check_refusal((refused.reason == "TARGET_REMOVED") == is_ended, refused)
        assert (retried.run, retried.state) == (job.run + 1, "READY")
        return None

    async def edit(self, author: Author) -> None:
        below = author.revision + 1
        withdrawal = await self.replica.withdraw("acme", author.name, below)
        if not withdrawal.published:
            self.withdrawn[author.name] = below
        if self.dice.random() < 0.7:
            await self.save(author)

    async def take_back(self, author: Author) -> None:
        await self._undisturbed(author, super().take_back)

    async def cancel_slot(self, author: Author) -> None:
        await self._undisturbed(author, super().cancel_slot)

    async def new_slot(self, author: Author) -> None:
        await self._undisturbed(author, super().new_slot)

    async def send(self, claimed: Claimed) -> None:
        job = claimed.job
        is_allowed = job.in_doubt or job.content_revision >= self.withdrawn.get(job.draft_id, 0)
        assert is_allowed, "a withdrawn text starts"
        await super().send(claimed)

    async def _undisturbed(self, author: Author, act: Callable[[Author], Awaitable[None]]) -> None:
        """Checks that a run that a call began keeps its state and its times, or starts, no matter what slots do."""
        before = await self.replica.rows("select * from post_job where id = :id", id=author.job_id)
        await act(author)
        if not before or before[0].called_run != before[0].run or before[0].state not in WAITING:
            return
        after = await self.job_of(author)
        assert after.run == before[0].run
        assert after.not_after == before[0].not_after or after.state not in WAITING
        assert after.state not in ("PENDING", "SCHEDULED", "CANCELED")

    async def _check_contradiction(self, draft: SavedDraft) -> None:
        rows = await self.replica.rows("select * from content where draft_id = :id", id=draft.draft_id)
        (known,) = [(row.revision, row.content_digest, {*row.post_job_ids}) for row in rows]
        assert known[0] == draft.revision
        assert known[1:] != (draft.content_digest, {*draft.post_job_ids})

    @staticmethod
    def _check_refusal(is_expected: bool, refused: Refused) -> None:
        assert is_expected, refused


@pytest.mark.parametrize("seed", range(40, 46))
async def test_no_slot_disturbs_what_a_call_began_in_any_history(database_url: str, seed: int) -> None:
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
    history = CalledHistory(replica, other, clock, provider, drafts=6)
    try:
        await history.run(250)
        assert history.begun
    finally:
        await replica.database.dispose()
        await other.database.dispose()
