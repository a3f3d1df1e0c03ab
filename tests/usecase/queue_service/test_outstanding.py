"""A command is repeated if it or its answer is lost, and not while it waits."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

import pytest
from sqlalchemy import text

from queue_service.application.outstanding import Outstanding
from queue_service.domain.command import Command, SentCommand
from queue_service.domain.job import JobState
from queue_service.domain.policy import Policy
from testkit.clocks import START
from tests.usecase.queue_service.fakes import FakeStream
from tests.usecase.queue_service.steps import DUE, LEAD, drain, seconds

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue

Make = Callable[[Policy], "Queue"]


@pytest.fixture
async def sent(queue: "Queue") -> "Queue":
    """Dispatches twenty slots, which are due; nobody takes their commands."""
    await queue.fill([f"a{index}" for index in range(20)], DUE, timedelta(minutes=1), 1)
    queue.now = DUE
    await drain(queue)
    await queue.hand_over.repeat()
    return queue


async def repeats(queue: "Queue", until: datetime) -> list[tuple[str, float]]:
    """Steps second by second until then. Returns slot and time after DUE of each command that is repeated."""
    before = len(queue.stream.sent)
    found = []
    while queue.now < until:
        queue.now += seconds(1)
        while await queue.hand_over.repeat():
            pass
        found += [(each.slot_id, (queue.now - DUE).total_seconds()) for each in queue.stream.sent[before:]]
        before = len(queue.stream.sent)
    return found


async def test_commands_that_wait_in_the_stream_are_not_repeated(sent: "Queue") -> None:
    assert await repeats(sent, DUE + timedelta(minutes=10)) == []
    assert len(sent.stream.sent) == 20


async def test_a_command_removed_from_the_stream_is_repeated_alone(sent: "Queue") -> None:
    lost = sent.stream.sent.pop(7)
    assert await repeats(sent, DUE + seconds(11)) == [(lost.slot_id, 4)]


async def test_a_command_removed_from_a_long_backlog_is_soon_repeated(sent: "Queue") -> None:
    await repeats(sent, DUE + seconds(30))
    lost = sent.stream.sent.pop(7)
    assert await repeats(sent, DUE + seconds(40)) == [(lost.slot_id, 35)]


async def test_all_that_is_lost_from_a_backlog_is_repeated_at_once(make_queue: Make) -> None:
    queue = make_queue(Policy(batch=10))
    await queue.fill([f"a{index}" for index in range(60)], DUE, timedelta(minutes=1), 1)
    queue.now = DUE
    await drain(queue)
    await queue.hand_over.repeat()
    lost = {queue.stream.sent.pop().slot_id for _ in range(40)}
    queue.now = DUE + seconds(4)
    while await queue.hand_over.repeat():
        pass
    assert {each.slot_id for each in queue.stream.sent[20:]} == lost


async def test_an_answer_that_is_lost_is_asked_for(sent: "Queue") -> None:
    taken = sent.stream.taken()
    await sent.settle(*(sent.report(each, JobState.PUBLISHED, 2) for each in taken[1:]))
    assert await repeats(sent, DUE + seconds(11)) == [(taken[0].slot_id, 4)]


async def test_answers_on_their_way_are_waited_for(sent: "Queue") -> None:
    sent.answers.last, sent.answers.heard = 100, 80
    taken = sent.stream.taken()
    assert await repeats(sent, DUE + seconds(20)) == []
    sent.answers.last, sent.answers.heard = 200, 99
    assert await repeats(sent, DUE + seconds(22)) == []
    await sent.settle(*(sent.report(each, JobState.PUBLISHED, 2) for each in taken[1:]))
    sent.answers.heard = 100
    assert await repeats(sent, DUE + seconds(24)) == [(taken[0].slot_id, 23)]


async def test_a_command_just_taken_is_not_repeated_before_its_answer_comes(sent: "Queue") -> None:
    await repeats(sent, DUE + seconds(30))
    taken = sent.stream.taken()
    assert await repeats(sent, DUE + seconds(34)) == []
    await sent.settle(*(sent.report(each, JobState.PUBLISHED, 2) for each in taken))
    assert await repeats(sent, DUE + timedelta(hours=1)) == []


async def test_silence_of_the_events_does_not_end_the_repeats(sent: "Queue") -> None:
    sent.answers.last, sent.answers.heard = 100, 80
    sent.stream.taken()
    copies = await repeats(sent, DUE + seconds(35))
    assert len(copies) == 20
    assert {at for _, at in copies} == {32}


async def test_another_process_knows_which_commands_wait(sent: "Queue") -> None:
    lost = sent.stream.sent.pop(7)
    sent.hand_over = sent.handing_over()
    assert await repeats(sent, DUE + seconds(11)) == [(lost.slot_id, 4)]


async def test_two_processes_repeat_a_lost_command_once(sent: "Queue") -> None:
    first, second = sent.hand_over, sent.handing_over()
    sent.stream.sent.pop(7)
    sent.now = DUE + seconds(4)
    assert [await first.repeat(), await second.repeat()] == [True, False]
    assert len(sent.stream.sent) == 20


async def test_commands_that_died_with_their_process_are_repeated(queue: "Queue") -> None:
    await queue.fill("a1", DUE, timedelta(minutes=1), 1)
    queue.now = DUE
    await queue.hand_over.dispatch()
    queue.stream.taken()
    queue.hand_over = queue.handing_over()
    assert await repeats(queue, DUE + seconds(5)) == [("a1-0", 4)]


async def test_a_lost_command_is_repeated_beside_one_that_waits(queue: "Queue") -> None:
    await queue.save_draft("d1", ("page", "facebook", ""), ("page", "instagram_feed", ""))
    await queue.at("d1", DUE)
    queue.now = DUE
    await queue.hand_over.dispatch()
    await queue.hand_over.repeat()
    facebook, instagram = sorted(queue.stream.sent, key=lambda each: each.channel)
    queue.stream.sent = [instagram]
    queue.now = DUE + seconds(4)
    assert await queue.hand_over.repeat()
    await queue.settle(queue.report(facebook, JobState.PUBLISHED, 2))
    queue.stream.sent = [each for each in queue.stream.sent if each.channel == "instagram_feed"]
    assert await repeats(queue, DUE + timedelta(minutes=2)) == []


async def test_a_target_added_after_dispatch_gets_its_command_at_once(queue: "Queue") -> None:
    await queue.save_draft("d1", "page")
    await queue.at("d1", DUE)
    queue.now = DUE - LEAD
    await drain(queue)
    await queue.hand_over.repeat()
    await queue.save_draft("d1", ("page", "facebook", ""), ("page", "instagram_feed", ""), revision=2, version=2)
    assert await queue.hand_over.repeat()
    assert "instagram_feed" in {each.channel for each in queue.stream.sent}


async def test_a_target_that_comes_back_after_dispatch_gets_its_command_at_once(queue: "Queue") -> None:
    await queue.save_draft("d1", ("page", "facebook", ""), ("page", "instagram_feed", ""))
    await queue.at("d1", DUE)
    queue.now = DUE - LEAD
    await drain(queue)
    await queue.hand_over.repeat()
    [instagram] = [each for each in queue.stream.sent if each.channel == "instagram_feed"]
    queue.now += seconds(1)
    await queue.settle(queue.report(instagram, JobState.CANCELED, 3))
    await queue.settle(queue.report(instagram, JobState.PENDING, 4))
    assert await queue.hand_over.repeat()
    assert queue.stream.sent[-1].emission > 1


async def test_a_copy_that_the_stream_refused_counts_as_lost(sent: "Queue") -> None:
    lost = sent.stream.sent.pop(7)
    sent.stream.loses = {lost.draft_id}
    sent.now = DUE + seconds(4)
    assert await sent.hand_over.repeat()
    sent.stream.loses = set()
    assert await repeats(sent, DUE + seconds(6)) == [(lost.slot_id, 5)]


async def test_sent_commands_are_forgotten_when_the_stream_is_past_them(sent: "Queue") -> None:
    assert len(await sent.rows("select id from sent_commands")) == 1
    sent.stream.taken()
    await send_more(sent, "b")
    sent.now += seconds(6)
    await send_more(sent, "c")
    assert len(await sent.rows("select id from sent_commands")) >= 3
    sent.now += seconds(6)
    await send_more(sent, "d")
    rows = await sent.rows("select min(first_sequence) as first from sent_commands")
    assert [row.first for row in rows] == [21]


async def test_answers_are_waited_for_while_other_commands_are_sent(sent: "Queue") -> None:
    sent.answers.last, sent.answers.heard = 100, 80
    await repeats(sent, DUE + seconds(3))
    taken = {each.slot_id for each in sent.stream.taken()}
    for account in "bcdefg":
        await send_more(sent, account)
        copies = await repeats(sent, sent.now + seconds(3))
        assert taken.isdisjoint(slot for slot, _ in copies)


async def test_commands_are_forgotten_behind_one_that_stays(sent: "Queue") -> None:
    first, *others = sent.stream.sent
    for account in "bcdefg":
        await sent.settle(*(sent.report(each, JobState.PUBLISHED, 2) for each in others))
        sent.stream.sent = [first]
        await send_more(sent, account)
        others = sent.stream.sent[1:]
        await repeats(sent, sent.now + seconds(6))
    rows = await sent.rows("select slot_ids from sent_commands order by id")
    assert [len(row.slot_ids) for row in rows] == [20, 1]


async def test_commands_sent_while_others_are_saved_are_saved_too(queue: "Queue") -> None:
    first, second = (SentCommand("acme", name, 1, "facebook", "", place) for place, name in ((1, "a"), (2, "b")))

    class Stream(FakeStream):
        """Stores another command when the first is saved, and its sequence is read."""

        def __getattribute__(self, name: str) -> Any:
            if name == "first_sequence" and not self.sent:
                self.sent.append(cast(Any, second))
                self.stored = [second]
                outstanding.add_stored([], losses=0)
            return super().__getattribute__(name)

    outstanding = Outstanding(database=queue.database, commands=Stream(stored=[first]), answers=queue.answers)
    outstanding.add_stored([], losses=0)
    await outstanding.save(now=queue.now)
    await outstanding.save(now=queue.now)
    rows = await queue.rows("select unnest(slot_ids) as slot_id from sent_commands")
    assert sorted(row.slot_id for row in rows) == ["a", "b"]


async def send_more(queue: "Queue", account: str) -> None:
    """Dispatches a slot of another account; the stream is past everything that was taken."""
    sequences = [queue.stream.sequences[each] for each in queue.stream.sent]
    queue.stream.first_sequence = min(sequences, default=len(queue.stream.sequences) + 1)
    await queue.fill(account, DUE, timedelta(minutes=1), 1)
    await drain(queue)
    await queue.hand_over.repeat()


async def in_line(queue: "Queue", count: int) -> list[Command]:
    """Dispatches slots of one account, a minute apart; Publisher puts them all in line. Returns their commands."""
    await queue.fill("page", START, timedelta(minutes=1), count)
    queue.now = START + timedelta(minutes=count)
    await drain(queue)
    commands = sorted(queue.stream.taken(), key=lambda each: each.schedule_time)
    await queue.settle(*(queue.report(each, JobState.READY, 2) for each in commands))
    return commands


async def test_posts_in_a_moving_line_are_not_asked_for(queue: "Queue") -> None:
    line = await in_line(queue, 40)
    copies = []
    for index in range(40):
        queue.now += timedelta(minutes=2)
        while await queue.hand_over.repeat():
            copies += queue.stream.taken()
        await queue.settle(queue.report(line[index], JobState.PUBLISHED, 3))
    assert copies == []


async def test_a_post_in_a_line_is_asked_for_soon_after_its_latest_time(queue: "Queue") -> None:
    line = await in_line(queue, 40)
    async with queue.database.transaction() as tx:
        await tx.connection.execute(text("update slot set not_after = schedule_time + interval '1 hour'"))
    for each in line[:35]:
        queue.now += timedelta(minutes=2)
        while await queue.hand_over.repeat():
            pass
        await queue.settle(queue.report(each, JobState.PUBLISHED, 3))
        late = "select id from slot where is_answered and next_emit_at > not_after + interval '5 minutes'"
        assert await queue.rows(f"{late} and not_after > :now", now=queue.now) == []


async def test_a_line_that_stands_still_is_asked_for_as_a_whole(queue: "Queue") -> None:
    line = await in_line(queue, 10)
    for index in range(3):
        queue.now += timedelta(minutes=4)
        await queue.hand_over.repeat()
        queue.stream.taken()
        await queue.settle(queue.report(line[index], JobState.PUBLISHED, 3))
    stopped = queue.now
    while queue.now < stopped + timedelta(minutes=9):
        queue.now += seconds(30)
        while await queue.hand_over.repeat():
            pass
    assert {each.slot_id for each in queue.stream.taken()} == {f"page-{index}" for index in range(3, 10)}


async def test_a_post_that_its_line_has_passed_over_is_asked_for(queue: "Queue") -> None:
    line = await in_line(queue, 6)
    for index in (0, 1, 3, 4, 5):
        queue.now += timedelta(minutes=2)
        await queue.hand_over.repeat()
        queue.stream.taken()
        await queue.settle(queue.report(line[index], JobState.PUBLISHED, 3))
    copies = []
    for _ in range(20):
        queue.now += seconds(30)
        await queue.hand_over.repeat()
        copies += queue.stream.taken()
    assert [each.slot_id for each in copies][:1] == ["page-2"]
