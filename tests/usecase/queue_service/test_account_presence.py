"""Accounts whose queue is changed must exist; they need not be connected."""

from typing import TYPE_CHECKING

import pytest

from queue_service.application.account_check import AccountCheck
from queue_service.application.account_presence import AccountPresence
from servicekit.faults import NotFound, Unavailable
from testkit.clocks import START

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue


def presence(queue: "Queue") -> AccountPresence:
    return AccountPresence(queue.database, AccountCheck(queue.accounts))


async def test_an_account_that_publisher_does_not_know_is_refused(queue: "Queue") -> None:
    queue.accounts.missing.add("gone")
    with pytest.raises(NotFound) as refused:
        await presence(queue).require(("acme", "gone"))
    assert refused.value.reason == "ACCOUNT_NOT_FOUND"


async def test_an_account_with_a_queue_is_not_asked_for(queue: "Queue") -> None:
    await queue.save_draft("d1", "page")
    await queue.at("d1", START)
    queue.accounts.asked.clear()
    await presence(queue).require(("acme", "page"))
    assert queue.accounts.asked == []


async def test_a_disconnected_account_and_one_that_nobody_can_check_have_a_queue(queue: "Queue") -> None:
    queue.accounts.disconnected.add("page")
    await presence(queue).require(("acme", "page"))
    queue.accounts.fault = Unavailable("AWAY", "no")
    await presence(queue).require(("acme", "page"))
