"""Delays before a retry."""

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.publisher_service.post_jobs import POLICY


@given(st.integers(0, 10_000), st.floats(0, 1, exclude_max=True))
def test_a_retry_is_never_immediate_and_waits_at_most_the_cap(attempts: int, draw: float) -> None:
    delay = POLICY.retry_delay(attempts, draw=draw)
    assert POLICY.retry_first / 20 <= delay <= POLICY.retry_cap


@given(st.integers(1, 8))
def test_the_bound_of_a_retry_doubles_with_each_attempt(attempts: int) -> None:
    bound = min(POLICY.retry_first * 2 ** (attempts - 1), POLICY.retry_cap)
    assert POLICY.retry_delay(attempts, draw=0.0) == bound / 10
    assert POLICY.retry_delay(attempts, draw=0.5) == bound * 0.55
