"""A safe mode says until when posts may have been sent since the copy."""

from datetime import UTC, datetime, timedelta

import pytest

from publisher_service.domain.safe_mode import SafeMode, SafeModeReason, Step

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("mark", "until"),
    [
        (None, timedelta()),
        (timedelta(hours=-1), timedelta(hours=-1, seconds=30)),
        (timedelta(seconds=-10), timedelta()),
        (timedelta(hours=1), timedelta()),
    ],
    ids=["no mark", "long before", "just before", "a clock that is wrong"],
)
def test_posts_are_in_doubt_until_the_mark_and_never_beyond_the_present(
    mark: timedelta | None, until: timedelta
) -> None:
    mode = SafeMode(
        number=1,
        active=True,
        reason=SafeModeReason.MARK_AHEAD,
        enter_time=NOW,
        restored_time=NOW - timedelta(hours=2),
        mark_time=None if mark is None else NOW + mark,
        leave_time=None,
        left_by="",
        step=Step.EVENTS,
        place="",
        untouched=0,
    )
    assert mode.doubt_until == NOW + until
