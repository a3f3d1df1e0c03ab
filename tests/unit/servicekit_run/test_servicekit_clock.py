import time

import pytest

from servicekit.clock import SystemClock


@pytest.mark.skipif(not hasattr(time, "CLOCK_BOOTTIME"), reason="this system has no such clock")
def test_time_that_the_machine_was_suspended_for_counts() -> None:
    before = time.clock_gettime(time.CLOCK_BOOTTIME)
    seen = SystemClock().monotonic()
    assert before <= seen <= time.clock_gettime(time.CLOCK_BOOTTIME)
