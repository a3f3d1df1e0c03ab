"""The loop that tells Publisher of pauses and resumptions that it has not stored yet."""

from typing import TYPE_CHECKING

import pytest
from sqlalchemy import text

from servicekit.faults import Unavailable
from tests.usecase.queue_service.pausing import Pausing, dispatched

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue


@pytest.fixture
def pausing(queue: "Queue") -> Pausing:
    return Pausing(queue)


async def pending(queue: "Queue") -> list[str]:
    rows = await queue.rows("select social_account_id from account_queue where hold_revision <> hold_stored_revision")
    return sorted(row.social_account_id for row in rows)


async def test_a_pause_that_died_is_completed(queue: "Queue", pausing: Pausing) -> None:
    await dispatched(queue)
    queue.publisher.fault = Unavailable("HOLD_PENDING", "no")
    with pytest.raises(Unavailable):
        await pausing.pause()
    await pausing.complete_holds()
    assert await pending(queue) == ["page"]
    queue.publisher.fault = None
    await pausing.complete_holds()
    assert await pending(queue) == []
    assert queue.publisher.holds["page"].in_force
    assert await queue.states() == {"d1": "SCHEDULED"}


async def test_a_resumption_that_died_is_completed(queue: "Queue", pausing: Pausing) -> None:
    await pausing.pause()
    queue.publisher.fault = Unavailable("HOLD_PENDING", "no")
    with pytest.raises(Unavailable):
        await pausing.resume()
    queue.publisher.fault = None
    await pausing.complete_holds()
    assert await pending(queue) == []
    assert not queue.publisher.holds["page"].in_force


async def test_all_accounts_are_completed(queue: "Queue", pausing: Pausing) -> None:
    accounts = [f"page-{number:03}" for number in range(130)]
    queue.publisher.fault = Unavailable("HOLD_PENDING", "no")
    for account in accounts:
        with pytest.raises(Unavailable):
            await pausing.pause(account)
    assert await pending(queue) == accounts
    queue.publisher.fault = None
    await pausing.complete_holds()
    assert (await pending(queue), len(queue.publisher.holds)) == ([], 130)


async def test_a_queue_without_pending_hold_is_left_alone(queue: "Queue", pausing: Pausing) -> None:
    await pausing.pause()
    queue.publisher.holds.clear()
    await pausing.complete_holds()
    assert queue.publisher.holds == {}


async def test_a_hold_that_publisher_refuses_keeps_no_others_waiting(queue: "Queue", pausing: Pausing) -> None:
    queue.publisher.fault = Unavailable("HOLD_PENDING", "no")
    for account in ("group", "page"):
        with pytest.raises(Unavailable):
            await pausing.pause(account)
    async with queue.database.transaction() as tx:
        newer = "update account_queue set hold_revision = 2 where social_account_id = 'page'"
        await tx.connection.execute(text(newer))
    queue.publisher.fault = None
    queue.publisher.faults[1] = Unavailable("HOLD_PENDING", "never")
    await pausing.complete_holds()
    assert await pending(queue) == ["group"]
