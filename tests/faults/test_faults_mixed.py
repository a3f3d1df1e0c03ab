"""The mixed run: authors edit drafts while something breaks every second; then every promise is checked.

Prints its seed, and POSTFLOW_FAULTS_SEED repeats it. `make faults` runs many seeds with more posts.
"""

import os
import random
from pathlib import Path

from testkit.stack.mixed_run import mixed_run, proxied_stack

POSTS = 120


async def test_every_promise_is_kept_while_everything_breaks(tmp_path: Path) -> None:
    seed = int(os.environ.get("POSTFLOW_FAULTS_SEED", random.randrange(2**32)))
    print(f"POSTFLOW_FAULTS_SEED={seed}")  # noqa: T201 - shown when the test fails
    async with proxied_stack(tmp_path / "state") as proxied:
        outcome = await mixed_run(proxied, seed=seed, posts=POSTS)
    print(dict(outcome.faults), dict(outcome.states))  # noqa: T201 - as above
    assert outcome.ended_by_themselves == []
    # A few posts may fail for good: their provider was down five times, or refused two texts.
    assert outcome.states["PUBLISHED"] >= POSTS * 0.9, outcome.states
