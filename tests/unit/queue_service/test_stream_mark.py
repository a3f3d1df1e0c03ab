"""Signs that a stream has lost commands."""

from datetime import UTC, datetime, timedelta

import pytest

from queue_service.domain.stream import StreamMark

MADE = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("now", "has_lost"),
    [
        (StreamMark(MADE, 10), False),
        (StreamMark(MADE, 11), False),
        (StreamMark(MADE, 9), True),
        (StreamMark(MADE + timedelta(seconds=1), 11), True),
        (StreamMark(MADE + timedelta(microseconds=1), 11), False),
    ],
    ids=["same", "grown", "gone back", "another stream", "rounded otherwise"],
)
def test_a_stream_that_lost_something_is_noticed(now: StreamMark, has_lost: bool) -> None:
    assert now.has_lost_since(StreamMark(MADE, 10)) is has_lost
