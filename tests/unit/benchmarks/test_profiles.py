from pathlib import Path

import pytest

from benchmarks.profiles import attached

NOBODY = 2**22 + 1  # more than the largest process id of Linux


async def test_a_process_that_cannot_be_traced_ends_the_run_with_a_reason(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"py-spy could not attach .*root"):
        await attached(NOBODY, tmp_path / "flames.svg")
