"""WatchQueue on a real database and a real stream: nothing is missed, and nothing is kept for slow readers."""

import random
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from nats.aio.client import Client

from devstack.servers.nats import EmbeddedNats
from queue_service.application.watch_queue import Rhythm
from queue_service.domain.job import JobState
from queue_service.domain.late_policy import LateAction, LatePolicy
from servicekit.bus.connection import connect
from servicekit.bus.streams import ensure_stream
from servicekit.faults import LimitReached
from testkit.clocks import START
from testkit.eventually import eventually
from tests.usecase.queue_service.pausing import Pausing
from tests.usecase.queue_service.rearranging import Rearranging
from tests.usecase.queue_service.watching import Watching
from topology import EVENTS

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue

HOUR = timedelta(hours=1)
FAST = Rhythm(page=3, idle=timedelta(seconds=0.2), look=timedelta(seconds=0.05))


@pytest.fixture
async def connection(fresh_nats: EmbeddedNats) -> AsyncIterator[Client]:
    client = Client()
    await connect(client, fresh_nats.url, name="test")
    await ensure_stream(client.jetstream(), EVENTS)
    yield client
    await client.close()


@pytest.fixture
async def watch(queue: "Queue", connection: Client) -> AsyncIterator[Watching]:
    async with Watching(queue, connection, FAST).running() as running:
        yield running


async def book(queue: "Queue", *drafts: str, ahead: timedelta = HOUR) -> None:
    for number, draft in enumerate(drafts):
        await queue.save_draft(draft, "page")
        await queue.at(draft, queue.now + ahead + number * timedelta(minutes=1), "page")


async def test_all_pages_of_live_slots_come_first(queue: "Queue", watch: Watching) -> None:
    await queue.fill("page", START + HOUR, HOUR, 7)
    await queue.fill("other", START + HOUR, HOUR, 2)
    async with watch.watching() as watcher:
        await watcher.caught_up()
    assert watcher.read_drafts == [f"page-{number}" for number in range(7)]


async def test_a_change_during_the_first_slots_is_sent_after_them(queue: "Queue", watch: Watching) -> None:
    await book(queue, *(f"d{number}" for number in range(7)))
    await watch.relay()
    async with watch.watching() as watcher:
        await watcher.read()
        order = [f"d{number}" for number in reversed(range(7))]
        await Rearranging(queue).reorder(drafts=tuple(order))
        await watch.relay()
        # It is on a page that has been read.
        await watcher.until(lambda: "d6" in watcher.slots)
        assert watcher.is_caught_up
        await watcher.until(lambda: all(watcher.slots[f"d{number}"].revision == 2 for number in (0, 1, 2, 4, 5, 6)))
    assert sorted(watcher.slots, key=lambda each: watcher.slots[each].schedule_time) == order


async def test_a_report_is_sent_once_queue_has_stored_it(queue: "Queue", watch: Watching) -> None:
    await book(queue, "d1", ahead=timedelta(0))
    async with watch.watching() as watcher:
        await watcher.caught_up()
        await queue.hand_over.dispatch()
        [command] = queue.stream.taken()
        report = queue.report(command, JobState.PUBLISHED, 3)
        sequence = await watch.report(report)
        await watcher.until_state("d1", "DISPATCHED")
        await eventually(lambda: watch.feed.point.sequence >= sequence)
        assert watcher.mark
        assert watcher.mark.sequence < sequence, "a later call would never hear of the report"
        await queue.settle(report)
        await watcher.until_state("d1", "PUBLISHED")
        await watcher.until(lambda: bool(watcher.mark and watcher.mark.sequence >= sequence))


async def test_a_report_that_changes_nothing_is_not_waited_for_forever(queue: "Queue", watch: Watching) -> None:
    await book(queue, "d1", ahead=timedelta(0))
    await queue.hand_over.dispatch()
    [command] = queue.stream.taken()
    async with watch.watching() as watcher:
        await watcher.caught_up()
        sequence = await watch.report(queue.report(command, JobState.READY, 9))
        watch.hearing.sequence = sequence
        await watcher.until(lambda: bool(watcher.mark and watcher.mark.sequence >= sequence))


async def test_what_is_heard_while_slots_are_read_is_not_passed_over(queue: "Queue", watch: Watching) -> None:
    await book(queue, "d1", ahead=timedelta(0))
    await queue.hand_over.dispatch()
    [command] = queue.stream.taken()
    queue.offered.clear()
    async with watch.watching() as watcher:
        await watcher.caught_up()
        first = await watch.report(queue.report(command, JobState.READY, 9))

        async def meanwhile() -> None:
            await book(queue, "d2")
            second = await watch.relay()
            await eventually(lambda: watch.feed.point.sequence >= second)
            watch.hearing.sequence = first

        watch.hearing.meanwhile = meanwhile
        before = watcher.mark
        while "d2" not in watcher.slots:
            before = watcher.mark
            await watcher.read()
        assert before
        assert before.sequence == first


async def test_a_report_about_an_older_slot_shows_the_newer_one(queue: "Queue", watch: Watching) -> None:
    await book(queue, "d1", ahead=timedelta(0))
    await queue.hand_over.dispatch()
    [command] = queue.stream.taken()
    await queue.settle(queue.report(command, JobState.FAILED, 3))
    await book(queue, "d1")
    queue.offered.clear()
    async with watch.watching() as watcher:
        await watcher.caught_up()
        report = queue.report(command, JobState.PUBLISHED, 4)
        await queue.settle(report)
        await watch.report(report)
        await watcher.until_state("d1", "CANCELED")


async def test_a_dispatch_is_sent(queue: "Queue", watch: Watching) -> None:
    await book(queue, "d1", "d2", "d3")
    async with watch.watching() as watcher:
        await watcher.caught_up()
        queue.now = START + HOUR
        await queue.hand_over.dispatch()
        await watch.queues.look()
        await watcher.until_state("d1", "DISPATCHED")
        queue.now = START + 2 * HOUR
        await queue.hand_over.dispatch()
        await watcher.until_state("d2", "DISPATCHED")
        await watcher.until_state("d3", "DISPATCHED")
        assert watcher.read_drafts.count("d1") == 2


async def test_a_slot_that_is_added_and_dispatched_while_away_is_sent(queue: "Queue", watch: Watching) -> None:
    async with watch.watching() as watcher:
        await watcher.caught_up()
        await book(queue, "d1", ahead=timedelta(seconds=40))
        await watch.relay()
        await watcher.until_state("d1", "SCHEDULED")
        await watch.queues.look()
        await watcher.until(lambda: watcher.view is not None)
    queue.now = START + timedelta(seconds=20)
    await queue.hand_over.dispatch()
    async with watch.watching(watcher.mark) as again:
        await again.until_state("d1", "DISPATCHED")
        assert not again.is_caught_up


async def test_pauses_settings_and_resumptions_are_sent(queue: "Queue", watch: Watching) -> None:
    await book(queue, "d1")
    pausing = Pausing(queue)
    async with watch.watching() as watcher:
        await watcher.caught_up()
        await pausing.pause(reason="a fire")
        await watch.queues.look()
        await watcher.until(lambda: watcher.view is not None and watcher.view.pause_time is not None)
        await book(queue, "d2", ahead=2 * HOUR)
        await watch.relay()
        await watcher.until(lambda: watcher.views == 2)
        assert watcher.view
        assert watcher.view.etag == "3"
    await pausing.resume()
    async with watch.watching(watcher.mark) as again:
        await again.until(lambda: again.view is not None)
        assert again.view
        assert again.view.pause_time is None


async def test_a_late_policy_shows_the_latest_times_of_all_slots(queue: "Queue", watch: Watching) -> None:
    await book(queue, *(f"d{number}" for number in range(5)))
    async with watch.watching() as watcher:
        await watcher.caught_up()
        late = LatePolicy(grace=timedelta(minutes=7), action=LateAction.MISS)
        await Pausing(queue).update(late_policy=late)
        await watch.queues.look()
        slots = watcher.slots
        await watcher.until(lambda: all(each.not_after - each.schedule_time == late.grace for each in slots.values()))
        assert len(slots) == 5


async def test_nothing_is_missed_whenever_a_watch_breaks(queue: "Queue", watch: Watching) -> None:
    chance = random.Random(11)
    known: dict[str, object] = {}
    mark = None
    await book(queue, *(f"d{number}" for number in range(4)))
    await watch.relay()
    for turn in range(12):
        if turn:
            order = [f"d{number}" for number in range(3 + turn)]
            chance.shuffle(order)
            await Rearranging(queue).reorder(drafts=tuple(order))
            await book(queue, f"d{3 + turn}", ahead=HOUR * (turn + 1))
            await watch.relay()
        async with watch.watching(mark) as watcher:
            for _ in range(chance.randrange(1, 5)):
                await watcher.read()
            known |= watcher.slots
            mark = watcher.mark
    rows = await queue.rows("select draft_id, revision from slot")
    newest = {row.draft_id: row.revision for row in rows}
    async with watch.watching(mark) as watcher:
        await watcher.until(
            lambda: {name: slot.revision for name, slot in {**known, **watcher.slots}.items()} == newest  # type: ignore[attr-defined]
        )


async def test_a_slow_reader_is_sent_each_slot_once_with_its_newest_state(queue: "Queue", watch: Watching) -> None:
    await book(queue, "d0", "d1", "d2")
    await watch.relay()
    async with watch.watching() as watcher:
        await watcher.caught_up()
        rearranging = Rearranging(queue)
        for turn in range(20):
            await rearranging.reorder(drafts=("d1", "d2", "d0") if turn % 2 else ("d0", "d2", "d1"))
            last = await watch.relay()
        await eventually(lambda: watch.feed.point.sequence >= last)
        before = len(watcher.read_drafts)
        await watcher.until(lambda: bool(watcher.mark and watcher.mark.sequence >= last))
        assert sorted(watcher.read_drafts[before:]) == ["d0", "d1", "d2"]
        rows = await queue.rows("select draft_id, revision from slot")
        assert {name: slot.revision for name, slot in watcher.slots.items()} == dict(map(tuple, rows))


async def test_a_quiet_watcher_is_sent_newer_tokens(queue: "Queue", watch: Watching) -> None:
    await book(queue, "d1")
    async with watch.watching() as watcher:
        await watcher.caught_up()
        await queue.save_draft("d9", "other")
        await queue.at("d9", START + HOUR, "other")
        last = await watch.relay()
        await watcher.until(lambda: bool(watcher.mark and watcher.mark.sequence >= last))


async def test_a_watcher_that_leaves_is_forgotten(queue: "Queue", watch: Watching, connection: Client) -> None:
    async with watch.watching() as watcher:
        await watcher.caught_up()
        assert watch.queues.count == 1
    assert watch.queues.count == 0
    assert watch.queues._pulses == {}
    assert watch.feed._listeners == {}

    async def consumers() -> bool:
        return not await connection.jetstream().consumers_info(EVENTS.name)

    await eventually(consumers)


async def test_an_organization_has_a_share_of_the_watchers(queue: "Queue", watch: Watching) -> None:
    calls = [watch.watch_queue(("acme", "page"), None) for _ in range(6)]
    for call in calls[:5]:
        assert (await anext(call)).is_caught_up
    with pytest.raises(LimitReached) as refused:
        await anext(calls[5])
    assert refused.value.reason == "TOO_MANY_WATCHERS"
    other = watch.watch_queue(("umbrella", "page"), None)
    assert (await anext(other)).is_caught_up
    for call in (*calls, other):
        await call.aclose()
