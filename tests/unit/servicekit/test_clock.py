import time
from collections.abc import Iterator
from datetime import timedelta

import pytest

from servicekit import clock
from servicekit.clock import SkewRefused, SystemClock, skew
from servicekit.ids import Uuid7Source


@pytest.fixture
def right_again() -> Iterator[None]:
    yield
    skew(timedelta(0), "development")


@pytest.mark.usefixtures("right_again")
def test_a_shifted_clock_shows_in_ids_too() -> None:
    right, right_id = SystemClock().now(), Uuid7Source().new()
    skew(timedelta(seconds=-60), "development")
    assert SystemClock().now() < right - timedelta(seconds=50)
    assert Uuid7Source().new() < right_id


def test_production_refuses_a_shifted_clock() -> None:
    with pytest.raises(SkewRefused, match="refused in production"):
        skew(timedelta(seconds=1), "production")
    skew(timedelta(0), "production")


@pytest.mark.skipif(not hasattr(time, "CLOCK_BOOTTIME"), reason="this system has no such clock")
def test_monotonic_time_counts_suspends() -> None:
    before = time.clock_gettime(time.CLOCK_BOOTTIME)
    seen = SystemClock().monotonic()
    assert before <= seen <= time.clock_gettime(time.CLOCK_BOOTTIME)
    assert clock._MONOTONIC == time.CLOCK_BOOTTIME, "on a machine that never slept the others show the same"
