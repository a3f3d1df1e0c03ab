"""HandOver.dispatch hands slots over to Publisher, fairly and within the stream's room."""

import asyncio
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from queue_service.adapters.postgres import dispatch
from queue_service.domain.job import JobState
from queue_service.domain.policy import Policy
from servicekit import failpoints
from servicekit.pg.session import Statement
from testkit.clocks import START
from testkit.readers import all_readers_held
from tests.usecase.queue_service.steps import DUE, LEAD, drain, seconds

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue

Make = Callable[[Policy], "Queue"]


async def test_a_slot_is_handed_over_when_the_lead_begins_not_before(queue: "Queue") -> None:
    await queue.save_draft("d1", ("page", "facebook", ""), ("page", "instagram_feed", "42"), revision=4)
    [slot] = await queue.at("d1", DUE)
    queue.now = DUE - LEAD - seconds(0.001)
    assert not await queue.hand_over.dispatch()
    assert queue.stream.sent == []
    queue.now = DUE - LEAD
    assert await queue.hand_over.dispatch()
    feed, story = sorted(queue.stream.taken(), key=lambda each: each.channel)
    assert (feed.channel, story.channel, story.destination) == ("facebook", "instagram_feed", "42")
    assert {each.slot_id for each in (feed, story)} == {slot.id}
    assert (feed.revision, feed.emission, feed.content_revision) == (1, 1, 4)
    assert feed.schedule_time == DUE
    assert feed.not_after == DUE + timedelta(hours=24)
    assert await queue.states() == {"d1": "DISPATCHED"}
    [row] = await queue.rows("select next_emit_at from slot")
    assert row.next_emit_at == DUE + seconds(4)
    assert not await queue.hand_over.dispatch()


async def test_slots_are_handed_over_while_lists_hold_all_readers(queue: "Queue") -> None:
    await queue.save_draft("d1", "page")
    await queue.at("d1", DUE)
    queue.now = DUE - LEAD
    async with all_readers_held(queue.database):
        assert await queue.hand_over.dispatch()
        assert len(queue.stream.taken()) == 1
        queue.now = DUE + seconds(5)
        assert await queue.hand_over.repeat()
    assert len(queue.stream.taken()) == 1


async def test_a_late_slot_is_handed_over_at_once_and_repeated_from_now_on(queue: "Queue") -> None:
    await queue.save_draft("d1", "page")
    await queue.at("d1", START)
    queue.now = START + timedelta(hours=2)
    await queue.hand_over.dispatch()
    [first] = queue.stream.taken()
    queue.now += seconds(3.999)
    assert not await queue.hand_over.repeat()
    queue.now += seconds(0.001)
    assert await queue.hand_over.repeat()
    [again] = queue.stream.taken()
    assert (first.emission, again.emission) == (1, 2)


@pytest.mark.parametrize("late", [-LEAD, timedelta(hours=2)], ids=["in time", "late"])
async def test_a_dispatch_writes_no_index_entry_of_slot(queue: "Queue", late: timedelta) -> None:
    for index in range(20):
        await queue.save_draft(f"d{index}", f"page-{index}")
        await queue.at(f"d{index}", DUE)
    queue.now = DUE + late
    hot = "select pg_stat_get_xact_tuples_hot_updated(cast('slot' as regclass))"
    async with queue.database.transaction() as tx:
        room = await queue.stream.room()
        await dispatch.claim(tx, now=queue.now, horizon=queue.now + LEAD, room=room, policy=queue.policy)
        assert await tx.fetch_value(Statement(hot)) == 20


@pytest.mark.parametrize("left", [None, timedelta(days=-1), timedelta(hours=1)])
async def test_an_instant_that_the_previous_release_left_is_set_at_dispatch(
    queue: "Queue", left: timedelta | None
) -> None:
    """0.1.0 gives a slot none, moves a slot without it, and after a loss makes each due, whether dispatched or not."""
    await queue.save_draft("d1", "page")
    await queue.at("d1", DUE)
    async with queue.database.transaction() as tx:
        touched = Statement("update slot set next_emit_at = schedule_time + cast(:left as interval)")
        await tx.execute(touched, {"left": left})
    queue.now = DUE + timedelta(seconds=2)
    assert await queue.hand_over.dispatch()
    [row] = await queue.rows("select next_emit_at from slot")
    assert row.next_emit_at == queue.now + seconds(4)


async def test_an_account_is_next_due_for_its_next_slot(queue: "Queue") -> None:
    for index in range(3):
        await queue.save_draft(f"d{index}", "page")
        await queue.at(f"d{index}", DUE + index * timedelta(minutes=5))
    for index in range(3):
        queue.now = DUE + index * timedelta(minutes=5)
        [account] = await queue.rows("select next_due_time from account_queue")
        assert account.next_due_time == queue.now
        assert await drain(queue) == 1
        assert [each.draft_id for each in queue.stream.taken()] == [f"d{index}"]
    [account] = await queue.rows("select next_due_time from account_queue")
    assert account.next_due_time is None


async def test_after_an_outage_everything_overdue_is_handed_over_oldest_first(make_queue: Make) -> None:
    queue = make_queue(Policy(batch=7, per_account=2, pool=20))
    await queue.fill(["a", "b", "c"], START, timedelta(minutes=1), 9)
    queue.now = START + timedelta(hours=1)
    await drain(queue)
    sent = queue.stream.taken()
    assert len(sent) == len({each.slot_id for each in sent}) == 27
    for account in ("a", "b", "c"):
        times = [each.schedule_time for each in sent if each.social_account_id == account]
        assert times == sorted(times)
    assert set((await queue.states()).values()) == {"DISPATCHED"}


async def test_a_large_organization_does_not_keep_a_small_one_waiting(make_queue: Make) -> None:
    queue = make_queue(Policy(batch=10))
    await queue.fill([f"page-{index}" for index in range(60)], START, timedelta(minutes=1), 1, organization_id="big")
    await queue.fill("page", START + seconds(50), timedelta(minutes=1), 1, organization_id="small")
    queue.now = START + timedelta(minutes=1)
    await queue.hand_over.dispatch()
    assert "small" in {each.organization_id for each in queue.stream.taken()}


async def test_no_more_is_claimed_than_the_stream_has_room_for(queue: "Queue") -> None:
    await queue.fill(["a", "b", "c"], START, timedelta(minutes=1), 4)
    queue.now = START + timedelta(hours=1)
    queue.stream.limit = 5
    assert await queue.hand_over.dispatch()
    assert len(queue.stream.taken()) == 5
    queue.stream.limit = 0
    assert not await queue.hand_over.dispatch()
    assert Counter((await queue.states()).values()) == {"DISPATCHED": 5, "SCHEDULED": 7}
    queue.stream.limit = 100
    await drain(queue)
    assert len(queue.stream.taken()) == 7


async def test_an_organization_that_has_used_up_its_share_is_skipped(queue: "Queue") -> None:
    await queue.fill([f"big-{index}" for index in range(60)], START, timedelta(minutes=1), 2, organization_id="big")
    await queue.fill("page", START + seconds(50), timedelta(minutes=1), 1, organization_id="small")
    queue.now = START + timedelta(minutes=1)
    queue.stream.filled = frozenset({"big"})
    await drain(queue)
    assert {each.organization_id for each in queue.stream.taken()} == {"small"}
    queue.now += seconds(4)
    assert await queue.hand_over.repeat()
    assert {each.organization_id for each in queue.stream.taken()} == {"small"}
    queue.stream.filled = frozenset({"small"})
    await drain(queue)
    assert len(queue.stream.taken()) == 120
    queue.now += seconds(8)
    await queue.hand_over.repeat()
    assert {each.organization_id for each in queue.stream.taken()} == {"big"}


async def test_an_account_has_a_limit_of_open_slots_and_the_rest_follow(make_queue: Make) -> None:
    queue = make_queue(Policy(open_slots=5, per_account=4))
    await queue.fill("page", START, timedelta(minutes=1), 12)
    await queue.fill("other", START, timedelta(minutes=1), 3)
    queue.now = START + timedelta(hours=1)
    await drain(queue)
    first = queue.stream.taken()
    assert Counter(each.social_account_id for each in first) == {"page": 5, "other": 3}
    page = [each for each in first if each.social_account_id == "page"]
    assert [each.schedule_time for each in page] == sorted(each.schedule_time for each in page)
    # The account is looked at once a second, not each of its slots.
    [account] = await queue.rows("select next_due_time from account_queue where social_account_id = 'page'")
    assert account.next_due_time == queue.now + queue.policy.lead + seconds(1)
    await queue.settle(queue.report(page[0], JobState.READY, 2), queue.report(page[1], JobState.PUBLISHED, 3))
    queue.now += seconds(1)
    await drain(queue)
    assert len(queue.stream.taken()) == 2
    await queue.settle(*(queue.report(each, JobState.PUBLISHED, 3) for each in page))
    while await queue.rows("select 1 from slot where state = 'SCHEDULED'"):
        queue.now += seconds(1)
        await drain(queue)
        await queue.settle(*(queue.report(each, JobState.READY, 2) for each in queue.stream.taken()))
    assert set((await queue.states()).values()) == {"DISPATCHED", "PUBLISHED"}


async def test_slots_that_never_end_do_not_keep_their_account_closed(make_queue: Make) -> None:
    queue = make_queue(Policy(open_slots=3))
    await queue.fill("page", START, timedelta(minutes=1), 3)
    queue.now = START + timedelta(hours=1)
    await drain(queue)
    assert len(queue.stream.taken()) == 3
    await queue.save_draft("later", "page")
    await queue.at("later", START + timedelta(days=2))
    queue.now = START + timedelta(days=2)
    await drain(queue)
    assert [each.draft_id for each in queue.stream.taken()] == ["later"]


async def test_two_dispatchers_never_send_the_same_copy(make_queue: Make) -> None:
    queues = [make_queue(Policy(batch=9, per_account=3)) for _ in range(3)]
    await queues[0].fill([f"a{index}" for index in range(40)], START, timedelta(minutes=1), 5)
    for queue in queues:
        queue.now = START + timedelta(hours=1)

    async def work(queue: "Queue") -> None:
        idle = 0
        while idle < 5:
            idle = 0 if await queue.hand_over.dispatch() else idle + 1

    async with asyncio.TaskGroup() as group:
        for queue in queues:
            group.create_task(work(queue))
    sent = Counter((each.slot_id, each.emission) for queue in queues for each in queue.stream.sent)
    assert len(sent) == 200
    assert set(sent.values()) == {1}


async def test_a_slot_added_while_its_account_is_claimed_is_not_forgotten(make_queue: Make) -> None:
    queues = [make_queue(Policy()) for _ in range(2)]
    adding, dispatching = queues
    for index in range(40):
        await adding.save_draft(f"d{index}", "page")
    dispatching.now = START + timedelta(hours=2)

    async def add() -> None:
        for index in range(40):
            await adding.at(f"d{index}", START + timedelta(minutes=(index * 7) % 40))

    async with asyncio.TaskGroup() as group:
        added = group.create_task(add())
        while not added.done():
            await dispatching.hand_over.dispatch()
    await drain(dispatching)
    assert sorted(each.draft_id for each in dispatching.stream.sent) == sorted(f"d{index}" for index in range(40))


@pytest.mark.parametrize("name", ["queue.dispatch.claimed", "queue.dispatch.published"])
async def test_a_crash_after_the_claim_costs_seconds_but_no_post(queue: "Queue", name: str) -> None:
    await queue.save_draft("d1", "page")
    await queue.at("d1", DUE)
    queue.now = DUE - LEAD
    failpoints.install(f"{name}=raise", "development")
    try:
        with pytest.raises(failpoints.FailpointHit):
            await queue.hand_over.dispatch()
    finally:
        failpoints.install("", "development")
    queue.stream.taken()
    assert await queue.states() == {"d1": "DISPATCHED"}
    queue.now = DUE + seconds(4)
    assert await queue.hand_over.repeat()
    assert [each.emission for each in queue.stream.taken()] == [2]
