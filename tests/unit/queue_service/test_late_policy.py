"""Limits of how late a post may be."""

from datetime import timedelta

import pytest

from queue_service.domain.late_policy import LateAction, LatePolicy

DAY = timedelta(days=1)
GRACE = timedelta(minutes=3)


@pytest.mark.parametrize(
    ("action", "limit"), [(LateAction.PUBLISH, DAY), (LateAction.RESLOT, DAY), (LateAction.MISS, GRACE)]
)
def test_only_a_policy_that_misses_posts_has_a_limit_of_its_own(action: LateAction, limit: timedelta) -> None:
    assert LatePolicy(grace=GRACE, action=action).limit(DAY) == limit
