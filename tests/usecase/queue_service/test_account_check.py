"""Accounts that do not exist or are not connected get no slots."""

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from civil.weekly import WeeklySlot
from queue_service.application.follow_accounts import follow_accounts
from queue_service.domain.account import Connection
from servicekit.faults import Refused, Unavailable
from testkit.clocks import START

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue

LATER = START + timedelta(hours=1)
DAILY = [WeeklySlot(day=day, hour=12, minute=0) for day in range(7)]


def connection(account: str, version: int, *, connected: bool = True) -> Connection:
    return Connection(organization_id="acme", social_account_id=account, version=version, is_connected=connected)


async def test_a_slot_on_an_account_that_does_not_exist_is_refused(queue: "Queue") -> None:
    await queue.put_schedule("pgae", *DAILY)
    await queue.save_draft("d1", "page", "pgae")
    queue.accounts.missing = {"pgae"}
    for call in (queue.at("d1", LATER), queue.add("d1", "pgae")):
        with pytest.raises(Refused) as refused:
            await call
        assert refused.value.reason == "ACCOUNT_NOT_FOUND"
        assert refused.value.metadata == {"social_account_id": "pgae"}
    assert await queue.states() == {}
    await queue.at("d1", LATER, "page")


async def test_a_slot_on_an_account_that_is_not_connected_is_refused(queue: "Queue") -> None:
    await queue.put_schedule("page", *DAILY)
    await queue.save_draft("d1", "page")
    queue.accounts.disconnected = {"page"}
    for call in (queue.at("d1", LATER), queue.add("d1")):
        with pytest.raises(Refused) as refused:
            await call
        assert refused.value.reason == "ACCOUNT_NOT_CONNECTED"
        assert refused.value.metadata == {"social_account_id": "page"}


async def test_publisher_is_not_asked_about_an_announced_account(queue: "Queue") -> None:
    await queue.apply(follow_accounts, connection("page", 1), connection("other", 2))
    await queue.save_draft("d1", "page", "other", "third")
    await queue.at("d1", LATER)
    assert queue.accounts.asked == ["third"]


async def test_publisher_is_asked_about_an_account_just_connected_again(queue: "Queue") -> None:
    await queue.apply(follow_accounts, connection("page", 2, connected=False))
    await queue.save_draft("d1", "page")
    await queue.at("d1", LATER)
    assert queue.accounts.asked == ["page"]


async def test_nothing_is_refused_while_publisher_is_down(queue: "Queue") -> None:
    queue.accounts.fault = Unavailable("DOWNSTREAM_UNAVAILABLE", "away")
    await queue.save_draft("d1", "page")
    assert len(await queue.at("d1", LATER)) == 1


async def test_a_repeated_request_is_answered_after_a_disconnect(queue: "Queue") -> None:
    await queue.save_draft("d1", "page")
    first = await queue.at("d1", LATER, request_id="r1")
    queue.accounts.missing = {"page"}
    assert await queue.at("d1", LATER, request_id="r1") == first
