"""Accounts that dispatch passes over."""

from typing import Any

import pytest

from queue_service.domain.circumstances import Circumstances
from testkit.clocks import START


@pytest.mark.parametrize(
    ("known", "is_held_up"),
    [
        ({}, False),
        ({"is_connected": True}, False),
        ({"is_connected": False}, True),
        ({"is_disabled": True}, True),
        ({"pause_time": START}, True),
    ],
)
def test_an_account_is_held_up_by_what_is_known(known: dict[str, Any], *, is_held_up: bool) -> None:
    assert Circumstances(**known).is_held_up is is_held_up
