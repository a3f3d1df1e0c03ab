"""Limits of how late a post may be."""

from datetime import UTC, datetime, timedelta

import pytest

from queue_service.domain.late_policy import LateAction, LatePolicy

DAY = timedelta(days=1)
GRACE = timedelta(minutes=3)
NOW, NOTICE = datetime(2026, 3, 2, 9, tzinfo=UTC), timedelta(minutes=1)


@pytest.mark.parametrize(
    ("action", "limit"), [(LateAction.PUBLISH, DAY), (LateAction.RESLOT, DAY), (LateAction.MISS, GRACE)]
)
def test_only_a_policy_that_misses_posts_has_a_limit_of_its_own(action: LateAction, limit: timedelta) -> None:
    assert LatePolicy(grace=GRACE, action=action).limit(DAY) == limit


@pytest.mark.parametrize(
    ("action", "grace", "ahead"),
    [
        (LateAction.PUBLISH, NOTICE / 2, timedelta(0)),
        (LateAction.RESLOT, NOTICE / 2, NOTICE),
        (LateAction.RESLOT, NOTICE, timedelta(0)),
        (LateAction.MISS, NOTICE / 2, NOTICE),
    ],
)
def test_an_overdue_post_has_time_to_go_out(action: LateAction, grace: timedelta, ahead: timedelta) -> None:
    assert LatePolicy(grace=grace, action=action).first_time(NOW, NOTICE) == NOW + ahead


@pytest.mark.parametrize("action", LateAction)
def test_nothing_is_missed_within_the_grace(action: LateAction) -> None:
    assert LatePolicy(grace=7 * DAY, action=action).limit(DAY) == 7 * DAY
