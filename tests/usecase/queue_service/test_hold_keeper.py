"""Telling Publisher of pauses and resumptions that overtake each other."""

from typing import TYPE_CHECKING

import pytest

from queue_service.domain.hold import Hold
from tests.usecase.queue_service.pausing import Pausing, dispatched

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue


@pytest.fixture
def pausing(queue: "Queue") -> Pausing:
    return Pausing(queue)


def hold(revision: int, *, in_force: bool) -> Hold:
    return Hold(organization_id="acme", social_account_id="page", revision=revision, in_force=in_force)


async def test_an_older_hold_that_comes_late_takes_nothing_back(queue: "Queue", pausing: Pausing) -> None:
    await pausing.pause()
    await pausing.resume()
    await dispatched(queue)
    await pausing.keeper.store(hold(1, in_force=True))
    assert await queue.states() == {"d1": "DISPATCHED"}
    [row] = await queue.rows("select hold_revision, hold_stored_revision from account_queue")
    assert tuple(row) == (2, 2)
    assert not queue.publisher.holds["page"].in_force


async def test_a_release_that_comes_late_changes_nothing(queue: "Queue", pausing: Pausing) -> None:
    await pausing.pause()
    await pausing.resume()
    await pausing.pause()
    await pausing.keeper.store(hold(2, in_force=False))
    assert queue.publisher.holds["page"].in_force
    [row] = await queue.rows("select hold_revision, hold_stored_revision from account_queue")
    assert tuple(row) == (3, 3)


async def test_a_pause_overtakes_a_newer_revision_that_others_have_stored(queue: "Queue", pausing: Pausing) -> None:
    """Queue was restored from a backup, or an operator has put and released its hold."""
    queue.publisher.holds["page"] = hold(7, in_force=False)
    await dispatched(queue)
    paused = await pausing.pause()
    assert queue.publisher.holds["page"].in_force
    assert (paused.queue.paused, paused.queue.hold_pending) == (True, False)
    assert await queue.states() == {"d1": "SCHEDULED"}


async def test_a_resumption_overtakes_a_newer_revision_that_others_have_stored(
    queue: "Queue", pausing: Pausing
) -> None:
    await pausing.pause()
    queue.publisher.holds["page"] = hold(7, in_force=True)
    await pausing.resume()
    assert not queue.publisher.holds["page"].in_force
    [row] = await queue.rows("select hold_revision, hold_stored_revision from account_queue")
    assert tuple(row) == (8, 8)
