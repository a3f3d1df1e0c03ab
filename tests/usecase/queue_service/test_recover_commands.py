"""Commands that the stream has lost are sent again at once."""

import asyncio
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import asyncpg
import pytest
from sqlalchemy import text

from queue_service.application.recover_commands import RecoverCommands
from queue_service.domain.job import JobState
from queue_service.domain.policy import Policy
from queue_service.domain.stream import StreamMark
from testkit.clocks import START
from testkit.readers import all_readers_held

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue

LATER = START + timedelta(hours=1)


@dataclass
class MarkedStream:
    """A stream at some mark, seen by one process."""

    at: StreamMark | None = StreamMark(START, 100)  # noqa: RUF009 - a tuple
    losses: int = 0

    async def mark(self) -> StreamMark | None:
        return self.at

    def lose(self, create_time: datetime = START, last_sequence: int = 50) -> None:
        self.at = StreamMark(create_time, last_sequence)
        self.losses += 1


def recovery(queue: "Queue", stream: MarkedStream, policy: Policy | None = None) -> RecoverCommands:
    return RecoverCommands(
        database=queue.database,
        clock=queue.clock,
        commands=stream,
        policy=policy or queue.policy,
        wake=asyncio.Event(),
    )


@pytest.fixture
async def held(queue: "Queue") -> "Queue":
    """Sends ten commands 25 seconds ahead of their time; one of them is answered."""
    due = START + timedelta(seconds=25)
    await queue.fill([f"a{index}" for index in range(10)], due, timedelta(minutes=1), 1)
    queue.now = START
    while await queue.hand_over.dispatch():
        pass
    commands = queue.stream.taken()
    assert len(commands) == 10
    await queue.settle(queue.report(commands[0], JobState.READY, 2))
    return queue


async def again(queue: "Queue") -> int:
    while await queue.hand_over.repeat():
        pass
    return len(queue.stream.taken())


@pytest.mark.parametrize(("create_time", "last_sequence"), [(LATER, 0), (START, 50)])
async def test_unanswered_commands_are_sent_again_before_they_are_due(
    held: "Queue", create_time: datetime, last_sequence: int, caplog: pytest.LogCaptureFixture
) -> None:
    stream = MarkedStream()
    recover = recovery(held, stream)
    await recover()
    await recover()
    assert await again(held) == 0
    stream.lose(create_time, last_sequence)
    await recover()
    assert await again(held) == 9
    await recover()
    assert await again(held) == 0
    assert [record for record in caplog.records if "has lost commands: repeating those of 9 slots" in record.message]
    counts = await held.rows("select emission, count(*) as slots from slot group by 1 order by 1")
    assert [(row.emission, row.slots) for row in counts] == [(1, 1), (2, 9)]


async def test_lost_commands_are_found_while_lists_hold_all_readers(held: "Queue") -> None:
    stream = MarkedStream()
    recover = recovery(held, stream)
    async with all_readers_held(held.database):
        await recover()
        stream.lose()
        await recover()
    assert await again(held) == 9


async def test_recovery_sends_the_earliest_commands_first_page_by_page(
    queue: "Queue", make_queue: Callable[[Policy], "Queue"]
) -> None:
    small = make_queue(Policy(batch=4))
    for index in range(12):
        await queue.fill(f"a{index}", START + timedelta(seconds=29 - index), timedelta(minutes=1), 1)
    await queue.hand_over.dispatch()
    stream = MarkedStream()
    recover = recovery(small, stream)
    await recover()
    stream.lose()
    await recover()
    while await small.hand_over.repeat():
        pass
    times = [each.schedule_time for each in small.stream.taken()]
    batches = [times[:4], times[4:8], times[8:]]
    assert [len(batch) for batch in batches] == [4, 4, 4]
    for earlier, later in itertools.pairwise(batches):
        assert max(earlier) < min(later)


async def test_a_process_that_starts_knows_how_far_the_stream_was(held: "Queue") -> None:
    before = MarkedStream()
    await recovery(held, before)()
    await recovery(held, MarkedStream())()
    assert await again(held) == 0
    await recovery(held, MarkedStream(StreamMark(START, 99)))()
    assert await again(held) == 9


async def test_one_of_several_processes_recovers_a_loss(held: "Queue") -> None:
    streams = [MarkedStream() for _ in range(3)]
    processes = [recovery(held, stream) for stream in streams]
    for process in processes:
        await process()
    for stream in streams:
        stream.lose()
    async with asyncio.TaskGroup() as group:
        for process in processes:
            group.create_task(process())
    for process in processes:
        await process()
    assert await again(held) == 9
    [row] = await held.rows("select losses, is_recovering from publish_stream")
    assert (row.losses, row.is_recovering) == (1, False)
    streams[1].lose(last_sequence=20)
    await processes[1]()
    assert await again(held) == 9


async def test_the_next_process_completes_a_recovery_that_died(held: "Queue") -> None:
    await recovery(held, MarkedStream())()
    async with held.database.transaction() as tx:
        await tx.connection.execute(text("update publish_stream set is_recovering = true, losses = losses + 1"))
    await recovery(held, MarkedStream())()
    assert await again(held) == 9


async def test_a_failed_recovery_is_retried(held: "Queue") -> None:
    stream = MarkedStream()
    recover = recovery(held, stream)
    await recover()
    stream.lose()
    async with held.database.transaction() as tx:
        await tx.connection.execute(text("alter table slot rename to hidden"))
    with pytest.raises(asyncpg.UndefinedTableError):
        await recover()
    async with held.database.transaction() as tx:
        await tx.connection.execute(text("alter table hidden rename to slot"))
    await recover()
    assert await again(held) == 9


async def test_an_unreachable_stream_has_lost_nothing_yet(held: "Queue") -> None:
    stream = MarkedStream()
    recover = recovery(held, stream)
    await recover()
    stream.at = None
    await recover()
    assert await again(held) == 0
