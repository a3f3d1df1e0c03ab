"""Random histories of posts: every run ends, and ends in the right state."""

import random

import pytest

from testkit.database_clocks import FrozenDatabaseClock
from tests.usecase.publisher_service.histories import LEASE, MOST, POLICY, History
from tests.usecase.publisher_service.random_provider import RandomAdapter, RandomProvider
from tests.usecase.publisher_service.replica import Replica


@pytest.mark.parametrize("seed", range(6, 14))
async def test_every_run_ends_in_the_right_state_in_any_history(database_url: str, seed: int) -> None:
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
        await History(replica, clock, provider, drafts=6).run(250)
    finally:
        await replica.database.dispose()
