"""The idempotency key that is sent is the one that is stored and looked up."""

from collections.abc import Mapping
from datetime import timedelta

import pytest

from publisher_service.adapters.postgres.jobs import lock_jobs
from publisher_service.adapters.providers.adapter import Limits, Post, Proof
from publisher_service.adapters.providers.sandbox_rules import SANDBOX_RULES
from publisher_service.domain.credentials import Credentials
from publisher_service.domain.outcome import Ambiguous, Finding, Found, Outcome
from publisher_service.domain.post_job import JobState
from tests.usecase.publisher_service.replica import Replica, a_command, claims_in

NEXT_RUN = "update post_job set state = 'FAILED', run = 3, attempts = 5, fence = 9, error_reason = 'E'"


class RecordingAdapter:
    """Loses every answer and finds every post."""

    name = "sandbox"
    rules = SANDBOX_RULES
    proof = Proof.KEYED
    limits = Limits(request_timeout=timedelta(seconds=5))

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.looked_up: list[str] = []

    async def verify(
        self, organization_id: str, external_account_id: str, credentials: Credentials, settings: Mapping[str, str]
    ) -> None:
        raise AssertionError("nothing is connected here")

    async def send(self, post: Post) -> Outcome:
        self.sent.append(post.idempotency_key)
        return Ambiguous(reason="LOST", message="the answer was lost")

    async def look(self, post: Post) -> Finding:
        self.looked_up.append(post.idempotency_key)
        return Found(external_id="x", external_url="")


@pytest.mark.parametrize(("change", "run"), [("", 1), (NEXT_RUN, 4)], ids=["first run", "next run"])
async def test_the_key_that_is_sent_is_stored_and_looked_up(database_url: str, change: str, run: int) -> None:
    adapter = RecordingAdapter()
    replica = Replica(database_url, adapter=adapter)
    (name,) = await replica.posts(1)
    if change:
        await replica.write(change)
    (claimed,) = claims_in(await replica.claim([a_command(name)]))
    await replica.settle([await replica.send(claimed)])
    async with replica.database.transaction() as tx:
        (unknown,) = await lock_jobs(tx.connection, [("acme", claimed.job.id)])
    assert unknown.state is JobState.UNKNOWN
    await replica.look_up(unknown)
    stored = [row.idempotency_key for row in await replica.rows("select idempotency_key from attempt")]
    assert adapter.sent == adapter.looked_up == stored == [f"{claimed.job.id}-{run}"]
    await replica.database.dispose()
