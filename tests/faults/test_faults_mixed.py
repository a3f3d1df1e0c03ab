"""Everything at once: authors who change their minds, and something breaks every second. Then it is healed, and held to
its word.

The seed is printed; POSTFLOW_FAULTS_SEED takes it again. `make faults` runs many seeds with more posts.
"""

import os
import random
from pathlib import Path

from testkit.stack.mixed_run import mixed_run, proxied_stack

POSTS = 120


async def test_whatever_breaks_every_promise_is_kept(tmp_path: Path) -> None:
    seed = int(os.environ.get("POSTFLOW_FAULTS_SEED", random.randrange(2**32)))
    print(f"POSTFLOW_FAULTS_SEED={seed}")  # noqa: T201 - shown when the test fails
    async with proxied_stack(tmp_path / "state") as proxied:
        outcome = await mixed_run(proxied, seed=seed, posts=POSTS)
    print(dict(outcome.faults), dict(outcome.states))  # noqa: T201 - as above
    assert outcome.ended_by_themselves == []
    # A post may fail for good: its provider was away five times, or refused two texts. That is no rule.
    assert outcome.states["PUBLISHED"] >= POSTS * 0.9, outcome.states
