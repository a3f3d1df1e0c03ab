"""HandOver.repeat sends the commands of slots again until they are answered."""

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
from testkit.clocks import START
from tests.usecase.queue_service.steps import DUE, LEAD, drain, seconds

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue

Make = Callable[[Policy], "Queue"]


async def test_an_unanswered_command_is_repeated_at_growing_intervals(queue: "Queue") -> None:
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


async def test_an_answer_makes_repeats_rare(queue: "Queue") -> None:
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


async def test_a_slot_that_never_ends_is_repeated_more_rarely_and_shown(
    queue: "Queue", caplog: pytest.LogCaptureFixture
) -> None:
    await queue.save_draft("d1", ("page", "facebook", ""), ("page", "instagram_feed", ""))
    await queue.at("d1", DUE)
    queue.now = DUE
    await queue.hand_over.dispatch()
    latest, times, commands = DUE + queue.policy.late_limit, [], queue.stream.taken()
    while queue.now < latest + timedelta(days=3):
        [row] = await queue.rows("select next_emit_at from slot")
        queue.now = row.next_emit_at
        await queue.hand_over.repeat()
        queue.stream.taken()
        times.append(queue.now)
    before, after = [at for at in times if at < latest], [at for at in times if at >= latest]
    assert len(before) < 24 * 12 + 10
    assert len(after) < 3 * 24 + 10
    pauses = [later - earlier for earlier, later in itertools.pairwise(after)]
    assert pauses == sorted(pauses)
    assert (pauses[0], pauses[-1]) == (timedelta(minutes=5), timedelta(hours=1))
    warnings = [record.message for record in caplog.records if "is overdue" in record.message]
    assert len(warnings) == 1
    async with queue.database.read() as connection:
        assert await dispatch.find_overdue(connection) == dispatch.Overdue(slots=1, oldest=latest)
    await queue.settle(*(queue.report(each, JobState.MISSED, 3) for each in commands))
    async with queue.database.read() as connection:
        assert await dispatch.find_overdue(connection) == dispatch.Overdue(slots=0, oldest=None)
    queue.now += timedelta(days=1)
    assert not await queue.hand_over.repeat()


async def test_repeats_of_an_answered_command_stay_rare(queue: "Queue") -> None:
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


async def test_only_unanswered_targets_are_repeated(queue: "Queue") -> None:
    await queue.save_draft("d1", ("page", "facebook", ""), ("page", "instagram_feed", ""))
    await queue.at("d1", DUE)
    queue.now = DUE
    await queue.hand_over.dispatch()
    feed = next(each for each in queue.stream.taken() if each.channel == "facebook")
    await queue.settle(queue.report(feed, JobState.PUBLISHED, 2))
    queue.now = DUE + seconds(4)
    await queue.hand_over.repeat()
    assert [each.channel for each in queue.stream.taken()] == ["instagram_feed"]


async def test_a_target_sent_before_gets_no_command(queue: "Queue") -> None:
    await queue.save_draft("d1", ("page", "facebook", ""), ("page", "instagram_feed", ""))
    [slot] = await queue.at("d1", DUE)
    await queue.settle(queue.report_on(slot, JobState.PUBLISHED, 2))
    queue.now = DUE
    await queue.hand_over.dispatch()
    assert [each.channel for each in queue.stream.taken()] == ["instagram_feed"]


async def test_commands_that_the_stream_refused_are_repeated_soon(queue: "Queue") -> None:
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


async def test_nothing_is_repeated_into_a_full_stream(queue: "Queue") -> None:
    await queue.save_draft("d1", "page")
    await queue.at("d1", DUE)
    queue.now = DUE
    await queue.hand_over.dispatch()
    queue.stream.taken()
    queue.now = DUE + seconds(4)
    queue.stream.limit = 0
    assert not await queue.hand_over.repeat()
    queue.stream.limit = 1
    assert await queue.hand_over.repeat()


async def test_two_sweeps_never_send_the_same_copy(make_queue: Make) -> None:
    queues = [make_queue(Policy(batch=9)) for _ in range(3)]
    await queues[0].fill([f"a{index}" for index in range(100)], START, timedelta(minutes=1), 1)
    for queue in queues:
        queue.now, queue.stream = START, queues[0].stream
        queue.hand_over = queue.handing_over()
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
    sent = Counter((each.slot_id, each.emission) for each in queues[0].stream.sent)
    assert len(sent) == 100
    assert set(sent.values()) == {1}
