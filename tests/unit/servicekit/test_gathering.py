import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from datetime import timedelta
from typing import Any

import pytest

from servicekit.gathering import Gathering
from testkit.eventually import eventually

Outcomes = dict[str, asyncio.Task[str | Exception]]
Arrive = Callable[..., Awaitable[Outcomes]]

WHO: ContextVar[str] = ContextVar("who", default="nobody")


class _Work:
    """Work that waits while `gate` is closed; it remembers its batches."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.failing: dict[str, Exception] = {}
        self.most_at_once = self._at_once = 0
        self.gate = asyncio.Event()
        self.gate.set()

    async def __call__(self, items: Sequence[str]) -> Sequence[str]:
        self.batches.append(list(items))
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        await self.gate.wait()
        self._at_once -= 1
        for item in items:
            if item in self.failing:
                raise self.failing[item]
        return [f"{item}!" for item in items]


@pytest.fixture
def work() -> _Work:
    return _Work()


def _gathering(work: Any, **settings: Any) -> Gathering[str, str]:
    """Returns a gathering whose items belong to the share of their first letter; no batch is slow."""
    given: Any = {"share": lambda item: item[0], "patience": timedelta(hours=1)} | settings
    return Gathering(work, **given)


@asynccontextmanager
async def _busy(work: _Work, gathering: Gathering[str, str]) -> AsyncIterator[Arrive]:
    """Keeps a batch in flight, while a test has more items arrive; at the end all of them end."""
    outcomes: Outcomes = {}

    async def outcome(item: str) -> str | Exception:
        try:
            return await gathering(item)
        except Exception as error:  # noqa: BLE001 - compared by the test
            return error

    async def arrive(*items: str) -> Outcomes:
        for item in items:
            outcomes[item] = group.create_task(outcome(item))
            for _ in range(3):  # until its batch has begun, if it may
                await asyncio.sleep(0)
        return outcomes

    work.gate.clear()
    async with asyncio.TaskGroup() as group:
        await arrive("x1")
        yield arrive
        work.gate.set()


async def test_items_that_come_in_one_tick_are_carried_out_together(work: _Work) -> None:
    gathering = _gathering(work)
    async with asyncio.TaskGroup() as group:
        outcomes = [group.create_task(gathering(item)) for item in ("a1", "b1", "a2")]
    assert work.batches == [["a1", "b1", "a2"]]
    assert [each.result() for each in outcomes] == ["a1!", "b1!", "a2!"]


async def test_a_single_item_is_carried_out_at_once(work: _Work) -> None:
    assert await _gathering(work)("a1") == "a1!"
    assert work.batches == [["a1"]]


async def test_what_arrives_meanwhile_makes_the_next_batch(work: _Work) -> None:
    async with _busy(work, _gathering(work)) as arrive:
        outcomes = await arrive("a1", "b1", "c1")
    assert work.batches == [["x1"], ["a1", "b1", "c1"]]
    assert [outcome.result() for outcome in outcomes.values()] == ["x1!", "a1!", "b1!", "c1!"]


async def test_a_batch_has_its_bound(work: _Work) -> None:
    async with _busy(work, _gathering(work, most=2)) as arrive:
        await arrive("a1", "a2", "a3")
    assert work.batches[1:] == [["a1", "a2"], ["a3"]]
    assert work.most_at_once == 1


async def test_a_second_batch_begins_beside_a_slow_one(work: _Work) -> None:
    async with _busy(work, _gathering(work, patience=timedelta(milliseconds=1))) as arrive:
        await eventually(lambda: len(work.batches) == 1)
        await arrive("a1")
        await eventually(lambda: len(work.batches) == 2)
        await arrive("a2")
    assert work.batches == [["x1"], ["a1"], ["a2"]]
    assert work.most_at_once == 2


async def test_a_quick_batch_is_waited_for(work: _Work) -> None:
    gathering = _gathering(work, patience=timedelta(seconds=1000))
    async with _busy(work, gathering) as arrive:
        await arrive("a1")
        assert work.batches == [["x1"]]
    assert await gathering("a2") == "a2!"
    assert not gathering._running


async def test_shares_take_turns(work: _Work) -> None:
    """A flood waits behind itself; the few of others come with the next batch."""
    async with _busy(work, _gathering(work, most=3)) as arrive:
        await arrive("a1", "a2", "a3", "a4", "b1", "c1")
    assert work.batches[1:] == [["a1", "b1", "c1"], ["a2", "a3", "a4"]]


async def test_a_failure_is_nobody_elses(work: _Work) -> None:
    failure = work.failing["b1"] = LookupError()
    async with _busy(work, _gathering(work)) as arrive:
        outcomes = await arrive("a1", "b1", "c1")
    assert {item: outcome.result() for item, outcome in outcomes.items()} == {
        "x1": "x1!", "a1": "a1!", "b1": failure, "c1": "c1!"
    }  # fmt: skip
    assert work.batches[1:] == [["a1", "b1", "c1"], ["a1"], ["b1"], ["c1"]]


async def test_those_that_run_alone_leave_a_place_to_the_others(work: _Work) -> None:
    held = asyncio.Event()

    async def fail_together(items: Sequence[str]) -> Sequence[str]:
        if items[0][0] == "a":
            work.batches.append(list(items))
            assert len(items) == 1
            await held.wait()
            return items
        return await work(items)

    async with _busy(work, _gathering(fail_together)) as arrive:
        await arrive("a1", "a2", "a3")
        work.gate.set()
        await eventually(lambda: len(work.batches) > 2)
        outcomes = await arrive("b1", "b2")
        await outcomes["b2"]
        assert work.batches[1:] == [["a1", "a2", "a3"], ["a1"], ["b1"], ["b2"]]
        held.set()


async def test_an_error_that_is_everybodys_is_not_tried_again(work: _Work) -> None:
    failure = work.failing["a1"] = LookupError()
    async with _busy(work, _gathering(work, is_shared=lambda _, error: error is failure)) as arrive:
        outcomes = await arrive("a1", "a2")
    assert [outcomes[item].result() for item in ("a1", "a2")] == [failure, failure]
    assert work.batches[1:] == [["a1", "a2"]]


async def test_equal_keys_are_carried_out_one_after_another(work: _Work) -> None:
    async with _busy(work, _gathering(work, apart=lambda item: item[1] if item[0] == "k" else None)) as arrive:
        await arrive("k7 first", "k7 second", "k8", "k7 third")
    assert work.batches[1:] == [["k7 first", "k8"], ["k7 second"], ["k7 third"]]


async def test_a_key_is_free_once_its_caller_has_gone(work: _Work) -> None:
    gathering = _gathering(work, apart=lambda item: item[0])
    async with _busy(work, gathering) as arrive:
        outcomes = await arrive("k1", "k2", "k3", "k4")
        outcomes["k1"].cancel()
        outcomes["k3"].cancel()
    assert work.batches[-2:] == [["k2"], ["k4"]]
    assert await gathering("k5") == "k5!"
    assert not gathering._behind


async def test_a_caller_that_goes_ends_nobody_elses_call(work: _Work) -> None:
    async with _busy(work, _gathering(work)) as arrive:
        outcomes = await arrive("a1", "b1")
        outcomes["x1"].cancel()
        outcomes["a1"].cancel()
    assert outcomes["x1"].cancelled()
    assert outcomes["b1"].result() == "b1!"
    assert work.batches == [["x1"], ["b1"]], "what was not begun is not begun for nobody"


async def test_work_does_not_see_the_context_of_a_caller() -> None:
    async def look(items: Sequence[str]) -> Sequence[str]:
        return [WHO.get() for _ in items]

    WHO.set("ann")
    assert await _gathering(look)("a1") == "nobody"


async def test_a_missing_outcome_is_an_error_and_hangs_nobody() -> None:
    async def forget(items: Sequence[str]) -> Sequence[str]:
        return []

    with pytest.raises(AssertionError):
        await _gathering(forget)("a1")
