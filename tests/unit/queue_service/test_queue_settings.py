"""Settings of Queue that its statements rely on."""

from datetime import timedelta

import pytest

from queue_service.settings import Settings
from servicekit.run import Secret

URL = Secret("postgresql://queue:secret@127.0.0.1/queue")


def test_a_lead_of_more_than_a_day_is_refused() -> None:
    """A list of dispatched slots reads none that are later, so it would not show them."""
    assert Settings(database_url=URL, lead=timedelta(days=1)).policy.lead == timedelta(days=1)
    with pytest.raises(ValueError, match="lead"):
        Settings(database_url=URL, lead=timedelta(days=1, seconds=1))
