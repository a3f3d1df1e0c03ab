"""The delays between attempts."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobkit.retry import RetryPolicy

# The first answer for a zone and year is slow.
SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
PATIENT = settings(deadline=None)


@PATIENT
@given(st.integers(min_value=1, max_value=10_000), st.floats(min_value=0, max_value=1, exclude_max=True))
def test_a_back_off_is_jitter_below_a_doubling_bound(attempts: int, draw: float) -> None:
    policy = RetryPolicy(first=5 * SECOND, cap=15 * MINUTE)
    delay = policy.delay(attempts, draw)
    bound = min(5 * 2 ** min(attempts - 1, 20), 900)
    assert timedelta(0) <= delay <= timedelta(seconds=bound)
    assert delay == timedelta(seconds=bound) * draw


@pytest.mark.parametrize(
    "settings", [{"max_attempts": 0}, {"first": timedelta(0)}, {"first": HOUR, "cap": MINUTE}], ids=str
)
def test_an_invalid_retry_policy_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="at least one attempt"):
        RetryPolicy(**settings)
