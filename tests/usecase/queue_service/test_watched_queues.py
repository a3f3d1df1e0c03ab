"""Queues that are watched are looked at together, for changes that no event announces."""

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from queue_service.adapters.postgres.watching import read_states
from queue_service.application.follow_accounts import follow_accounts
from queue_service.application.watched_queues import Pulse, WatchedQueues
from queue_service.domain.account import Connection
from queue_service.domain.late_policy import LateAction, LatePolicy
from servicekit.faults import LimitReached
from testkit.clocks import START
from tests.usecase.queue_service.pausing import Pausing

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue

PAGE, OTHER = ("acme", "page"), ("acme", "other")
HOUR = timedelta(hours=1)


@pytest.fixture
def queues(queue: "Queue") -> WatchedQueues:
    return WatchedQueues(queue.database, most_per_organization=2)


async def changed(queue: "Queue", queues: WatchedQueues, pulse: Pulse) -> bool:
    """Looks, and returns whether the watcher of `page` hears of a change. It has seen the new state then."""
    await queues.look()
    async with queue.database.read_session() as session:
        pulse.seen = (await read_states(session, [PAGE]))[PAGE]
    return pulse.take()


async def test_a_watcher_hears_of_each_change_once(queue: "Queue", queues: WatchedQueues) -> None:
    wake, pausing = asyncio.Event(), Pausing(queue)
    with queues.watched(PAGE, wake) as pulse:
        assert await changed(queue, queues, pulse), "it has seen nothing yet"
        wake.clear()
        assert not await changed(queue, queues, pulse)
        assert not wake.is_set()
        await queue.fill("page", START, HOUR, 2)
        assert await changed(queue, queues, pulse)
        assert wake.is_set()
        queue.now = START
        await queue.hand_over.dispatch()
        assert await changed(queue, queues, pulse)
        await pausing.pause()
        assert await changed(queue, queues, pulse)
        await pausing.update(late_policy=LatePolicy(grace=HOUR, action=LateAction.MISS))
        assert await changed(queue, queues, pulse)
        await queue.skip("page")
        assert await changed(queue, queues, pulse)
        gone = Connection(organization_id="acme", social_account_id="page", version=1, is_connected=False)
        await queue.apply(follow_accounts, gone)
        assert await changed(queue, queues, pulse)
        assert not await changed(queue, queues, pulse)


async def test_changes_of_other_queues_wake_nobody(queue: "Queue", queues: WatchedQueues) -> None:
    with queues.watched(PAGE, asyncio.Event()) as pulse:
        await changed(queue, queues, pulse)
        await queue.fill("other", START, HOUR, 2)
        assert not await changed(queue, queues, pulse)


async def test_all_watchers_of_a_queue_hear_of_a_change(queue: "Queue", queues: WatchedQueues) -> None:
    with queues.watched(PAGE, asyncio.Event()) as one, queues.watched(PAGE, asyncio.Event()) as two:
        with queues.watched(OTHER, asyncio.Event()):
            await queues.look()
        assert one.take()
        assert two.take()
    await queues.look()
    assert not one.take()


async def test_a_share_is_free_again_after_a_watch(queues: WatchedQueues) -> None:
    with queues.admitted("acme"):
        third = queues.admitted("acme")
        with queues.admitted("acme"), queues.admitted("umbrella"), pytest.raises(LimitReached) as refused, third:
            pass
        assert (refused.value.reason, refused.value.retry_after) == ("TOO_MANY_WATCHERS", timedelta(seconds=1))
        with queues.admitted("acme"):
            assert queues.count == 2
    assert queues.count == 0
