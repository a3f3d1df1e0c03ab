"""A queue as callers see it."""

from datetime import UTC, date, datetime

import pytest

from queue_service.domain.queue_view import LiveSlots, QueueView

EVENING = datetime(2026, 3, 2, 20, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("time_zone", "expected"),
    [
        ("Pacific/Auckland", date(2026, 3, 3)),
        ("America/New_York", date(2026, 3, 2)),
        ("", date(2026, 3, 2)),
        ("Europe/Atlantis", date(2026, 3, 2)),
    ],
)
def test_a_queue_is_empty_after_the_local_date_of_its_last_slot(time_zone: str, expected: date) -> None:
    assert QueueView(social_account_id="page", time_zone=time_zone, slots=LiveSlots(last_time=EVENING)).empty_on == (
        expected
    )


def test_an_empty_queue_has_no_date_on_which_it_becomes_empty() -> None:
    assert QueueView(social_account_id="page").empty_on is None
