"""A call that takes too long is ended, and nothing else is."""

import asyncio
from datetime import timedelta

import pytest

from publisher_service.adapters.providers.time_limit import TimeLimit
from testkit.eventually import eventually

SHORT, LONG = timedelta(milliseconds=20), timedelta(hours=1)


async def answer(value: int) -> int:
    await asyncio.sleep(0)
    return value


async def hang(ended: list[str]) -> int:
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        ended.append("canceled")
        raise
    return 0


async def test_a_call_in_time_returns_its_value() -> None:
    limit = TimeLimit(LONG)
    assert [await limit.run(answer(number)) for number in range(3)] == [0, 1, 2]


async def test_an_error_of_the_call_is_its_own() -> None:
    async def fails() -> int:
        raise ValueError("its own")

    with pytest.raises(ValueError, match="its own"):
        await TimeLimit(LONG).run(fails())


async def test_a_call_that_hangs_is_ended_and_its_task_goes_on() -> None:
    limit, ended = TimeLimit(SHORT), list[str]()
    for _ in range(2):
        with pytest.raises(TimeoutError):
            await limit.run(hang(ended))
    assert ended == ["canceled"] * 2
    task = asyncio.current_task()
    assert task is not None
    assert not task.cancelling()
    assert await limit.run(answer(7)) == 7


async def test_calls_end_each_at_its_own_time() -> None:
    limit, ended = TimeLimit(SHORT), list[str]()

    async def late(number: int) -> str:
        await asyncio.sleep(number * 0.005)
        try:
            await limit.run(hang(ended))
        except TimeoutError:
            return "in time"
        return "never"

    async with asyncio.TaskGroup() as group:
        calls = [group.create_task(late(number)) for number in range(5)]
        quick = [group.create_task(limit.run(answer(number))) for number in range(5)]
    assert [call.result() for call in calls] == ["in time"] * 5
    assert [call.result() for call in quick] == list(range(5))


async def test_a_call_that_is_canceled_from_outside_is_not_a_timeout() -> None:
    limit, ended = TimeLimit(LONG), list[str]()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(limit.run(hang(ended)))
        await eventually(lambda: bool(limit._ends))
        task.cancel()
    assert task.cancelled()
    assert not limit._ends


async def test_a_call_that_is_overdue_and_canceled_from_outside_is_canceled() -> None:
    limit, ended = TimeLimit(SHORT), list[str]()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(limit.run(hang(ended)))
        await eventually(lambda: bool(limit._ends))
        limit._overdue.add(task)
        task.cancel()
        task.cancel()
    assert task.cancelled()


@pytest.mark.parametrize("answer", [7, ValueError("its own")], ids=["value", "error"])
async def test_a_call_that_ends_otherwise_when_canceled_leaves_no_mark(answer: int | Exception) -> None:
    async def swallows() -> int:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if isinstance(answer, int):
                return answer
            raise answer from None
        return 0

    limit, task = TimeLimit(SHORT), asyncio.current_task()
    assert task is not None
    if isinstance(answer, int):
        assert await limit.run(swallows()) == 7
    else:
        with pytest.raises(ValueError, match="its own"):
            await limit.run(swallows())
    assert not task.cancelling()
    assert not limit._ends
    assert not limit._overdue
