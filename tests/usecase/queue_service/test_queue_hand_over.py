"""Handing slots over, and again."""

import asyncio
import itertools
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from queue_service.adapters.postgres import dispatch
from queue_service.domain.job import JobState
from queue_service.domain.policy import Policy
from servicekit import failpoints
from testkit.clocks import START

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue

Make = Callable[[Policy], "Queue"]

LEAD = Policy().lead
DUE = START + timedelta(minutes=10)


def seconds(count: float) -> timedelta:
    return timedelta(seconds=count)


async def drain(queue: "Queue") -> int:
    """How many steps had something to do."""
    steps = 0
    while await queue.hand_over.dispatch():
        steps += 1
    return steps


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


async def test_a_late_slot_is_handed_over_at_once_and_asked_for_from_now_on(queue: "Queue") -> None:
    await queue.save_draft("d1", "page")
    await queue.at("d1", START)
    queue.now = START + timedelta(hours=2)
    await queue.hand_over.dispatch()
    [row] = await queue.rows("select next_emit_at from slot")
    assert row.next_emit_at == queue.now + seconds(4)


async def test_an_account_is_due_for_its_next_slot_once_one_is_handed_over(queue: "Queue") -> None:
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


async def test_an_organization_with_its_share_is_passed_over(queue: "Queue") -> None:
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


async def test_an_account_has_so_many_slots_open_and_the_rest_follows(make_queue: Make) -> None:
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


async def test_two_dispatchers_never_send_the_same_emission(make_queue: Make) -> None:
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


# again


async def test_an_unanswered_command_is_sent_again_at_growing_intervals(queue: "Queue") -> None:
    await queue.save_draft("d1", "page")
    await queue.at("d1", DUE)
    queue.now = DUE - LEAD
    await queue.hand_over.dispatch()
    assert not await queue.hand_over.repeat()
    commands = queue.stream.taken()
    elapsed: list[float] = []
    while len(elapsed) < 9:
        [row] = await queue.rows("select next_emit_at from slot")
        queue.now = row.next_emit_at - seconds(0.001)
        assert not await queue.hand_over.repeat()
        queue.now = row.next_emit_at
        assert await queue.hand_over.repeat()
        elapsed.append((queue.now - DUE).total_seconds())
        commands += queue.stream.taken()
    assert elapsed == [4, 12, 28, 58, 118, 238, 538, 838, 1138]
    assert [each.emission for each in commands] == list(range(1, 11))
    assert len({(each.slot_id, each.revision, each.channel, each.schedule_time) for each in commands}) == 1


async def test_an_answer_ends_the_repetition_but_for_a_slow_one(queue: "Queue") -> None:
    await queue.save_draft("d1", "page")
    await queue.at("d1", DUE)
    queue.now = DUE
    await queue.hand_over.dispatch()
    [command] = queue.stream.taken()
    await queue.settle(queue.report(command, JobState.BLOCKED, 2))
    queue.now = DUE + timedelta(minutes=5) - seconds(1)
    assert not await queue.hand_over.repeat()
    queue.now = DUE + timedelta(minutes=5)
    assert await queue.hand_over.repeat()
    [again] = queue.stream.taken()
    assert again.emission == 2
    await queue.settle(queue.report(command, JobState.PUBLISHED, 3))
    queue.now = DUE + timedelta(days=1)
    assert not await queue.hand_over.repeat()


async def test_a_slot_that_never_ends_is_asked_for_ever_more_rarely_and_shown(
    queue: "Queue", caplog: pytest.LogCaptureFixture
) -> None:
    await queue.save_draft("d1", ("page", "facebook", ""), ("page", "instagram_feed", ""))
    await queue.at("d1", DUE)
    queue.now = DUE
    await queue.hand_over.dispatch()
    latest, times = DUE + queue.policy.late_limit, []
    while queue.now < latest + timedelta(days=3):
        [row] = await queue.rows("select next_emit_at from slot")
        queue.now = row.next_emit_at
        await queue.hand_over.repeat()
        times.append(queue.now)
    before, after = [at for at in times if at < latest], [at for at in times if at >= latest]
    assert len(before) < 24 * 12 + 10
    assert len(after) < 3 * 24 + 10
    pauses = [later - earlier for earlier, later in itertools.pairwise(after)]
    assert pauses == sorted(pauses)
    assert (pauses[0], pauses[-1]) == (timedelta(minutes=5), timedelta(hours=1))
    warnings = [record.message for record in caplog.records if "has not ended" in record.message]
    assert len(warnings) == 1
    async with queue.database.read() as connection:
        assert await dispatch.find_overdue(connection) == dispatch.Overdue(slots=1, oldest=latest)
    await queue.settle(*(queue.report(each, JobState.MISSED, 3) for each in queue.stream.taken()[:2]))
    async with queue.database.read() as connection:
        assert await dispatch.find_overdue(connection) == dispatch.Overdue(slots=0, oldest=None)
    queue.now += timedelta(days=1)
    assert not await queue.hand_over.repeat()


async def test_copies_of_an_answered_command_stay_rare_without_another_answer(queue: "Queue") -> None:
    await queue.save_draft("d1", "page")
    await queue.at("d1", DUE)
    queue.now = DUE
    await queue.hand_over.dispatch()
    [command] = queue.stream.taken()
    await queue.settle(queue.report(command, JobState.BLOCKED, 2))
    for _ in range(3):
        queue.now += timedelta(minutes=5)
        assert await queue.hand_over.repeat()
        [row] = await queue.rows("select next_emit_at from slot")
        assert row.next_emit_at == queue.now + timedelta(minutes=5)


async def test_only_the_targets_without_an_answer_are_asked_for_again(queue: "Queue") -> None:
    await queue.save_draft("d1", ("page", "facebook", ""), ("page", "instagram_feed", ""))
    await queue.at("d1", DUE)
    queue.now = DUE
    await queue.hand_over.dispatch()
    feed = next(each for each in queue.stream.taken() if each.channel == "facebook")
    await queue.settle(queue.report(feed, JobState.PUBLISHED, 2))
    queue.now = DUE + seconds(4)
    await queue.hand_over.repeat()
    assert [each.channel for each in queue.stream.taken()] == ["instagram_feed"]


async def test_a_target_that_went_out_before_is_not_asked_for_at_all(queue: "Queue") -> None:
    await queue.save_draft("d1", ("page", "facebook", ""), ("page", "instagram_feed", ""))
    [slot] = await queue.at("d1", DUE)
    await queue.settle(queue.report_on(slot, JobState.PUBLISHED, 2))
    queue.now = DUE
    await queue.hand_over.dispatch()
    assert [each.channel for each in queue.stream.taken()] == ["instagram_feed"]


async def test_what_the_stream_did_not_take_is_sent_again_soon(queue: "Queue") -> None:
    for draft in ("d1", "d2"):
        await queue.save_draft(draft, draft)
        await queue.at(draft, DUE)
    queue.stream.loses = {"d1"}
    queue.now = DUE - LEAD
    await queue.hand_over.dispatch()
    queue.stream.taken()
    queue.stream.loses = set()
    queue.now += seconds(1)
    assert await queue.hand_over.repeat()
    assert [(each.draft_id, each.emission) for each in queue.stream.taken()] == [("d1", 2)]
    [row] = await queue.rows("select next_emit_at from slot where draft_id = 'd1'")
    assert row.next_emit_at == DUE + seconds(8)


async def test_nothing_is_sent_again_into_a_stream_that_is_full(queue: "Queue") -> None:
    await queue.save_draft("d1", "page")
    await queue.at("d1", DUE)
    queue.now = DUE
    await queue.hand_over.dispatch()
    queue.now = DUE + seconds(4)
    queue.stream.limit = 0
    assert not await queue.hand_over.repeat()
    queue.stream.limit = 1
    assert await queue.hand_over.repeat()


async def test_two_sweeps_never_send_the_same_emission(make_queue: Make) -> None:
    queues = [make_queue(Policy(batch=9)) for _ in range(3)]
    await queues[0].fill([f"a{index}" for index in range(100)], START, timedelta(minutes=1), 1)
    for queue in queues:
        queue.now = START
    await drain(queues[0])
    queues[0].stream.taken()

    async def work(queue: "Queue") -> None:
        while await queue.hand_over.repeat():
            pass

    for queue in queues:
        queue.now = START + seconds(4)
    async with asyncio.TaskGroup() as group:
        for queue in queues:
            group.create_task(work(queue))
    sent = Counter((each.slot_id, each.emission) for queue in queues for each in queue.stream.sent)
    assert len(sent) == 100
    assert set(sent.values()) == {1}


@pytest.mark.parametrize("name", ["queue.dispatch.claimed", "queue.dispatch.published"])
async def test_a_crash_after_the_claim_costs_a_few_seconds_and_no_post(queue: "Queue", name: str) -> None:
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
