"""Queue's copy of which accounts are connected."""

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from queue_service.application.follow_accounts import follow_accounts
from queue_service.domain.account import Connection
from servicekit.faults import Refused
from testkit.clocks import START

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue

LATER = START + timedelta(hours=1)


def connection(account: str, version: int, *, connected: bool = True) -> Connection:
    return Connection(organization_id="acme", social_account_id=account, version=version, is_connected=connected)


async def test_the_newest_announcement_holds_in_any_order(queue: "Queue") -> None:
    await queue.apply(follow_accounts, connection("page", 2, connected=False), connection("page", 3))
    await queue.apply(follow_accounts, connection("page", 2, connected=False), connection("page", 1))
    await queue.save_draft("d1", "page")
    await queue.at("d1", LATER)
    assert queue.accounts.asked == []


async def test_an_account_id_of_another_organization_is_another_account(queue: "Queue") -> None:
    other = Connection(organization_id="umbrella", social_account_id="page", version=9, is_connected=True)
    await queue.apply(follow_accounts, other)
    queue.accounts.missing = {"page"}
    await queue.save_draft("d1", "page")
    with pytest.raises(Refused):
        await queue.at("d1", LATER)


async def test_disconnecting_leaves_the_slots(queue: "Queue") -> None:
    await queue.save_draft("d1", "page")
    await queue.at("d1", LATER)
    await queue.apply(follow_accounts, connection("page", 2, connected=False))
    queue.now = LATER
    assert await queue.hand_over.dispatch()
