"""One of two publishers is broken at each of its failpoints, in each way: every post is out once, or left to a person.

`make faults ARGS="--failpoints kill raise drop stall"` does the same and checks behind each failpoint, not at the end.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from testkit.stack.boundaries import BOUNDARIES
from testkit.stack.failpoint_matrix import ACTIONS, Matrix, matrix


@pytest.fixture(scope="module")
async def broken(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Matrix]:
    folder: Path = tmp_path_factory.mktemp("matrix")
    async with matrix(folder) as made:
        yield made


@pytest.mark.parametrize("action", sorted(ACTIONS))
async def test_a_publisher_broken_at_any_boundary_loses_and_doubles_no_post(broken: Matrix, action: str) -> None:
    for place in BOUNDARIES:
        await broken.break_at(place, action)
    await broken.check()
