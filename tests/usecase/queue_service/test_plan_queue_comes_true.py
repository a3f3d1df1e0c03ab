"""Plans of random queues: each change, made at the instant of its plan, does exactly that, or is refused like it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from civil.windows import SendWindow
from postflow.queue.v1.queue_service_pb2 import QUEUE_PLACE_END, QUEUE_PLACE_FRONT
from queue_service.domain.moving import Before, Destination, ToBottom, ToTime, ToTop
from queue_service.domain.planned_change import (
    PlannedAdditions,
    PlannedChange,
    PlannedClearing,
    PlannedInFront,
    PlannedMove,
    PlannedPause,
    PlannedRemoval,
    PlannedResumption,
    PlannedShuffle,
)
from queue_service.domain.planning import Plan
from queue_service.domain.reordering import Order
from queue_service.domain.resuming import OverduePolicy
from servicekit.faults import Fault
from servicekit.timestamps import timestamp
from testkit.clocks import START
from tests.usecase.queue_service.pausing import Pausing
from tests.usecase.queue_service.planning import HOUR, HOURLY, hour, plan
from tests.usecase.queue_service.rearranging import Rearranging
from tests.usecase.queue_service.steps import drain

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue

EMPTY = "truncate account_queue, slot, slot_target, draft, outbox, request_ledger"
CATEGORIES = ["", "", "news"]
Draw = Callable[[st.SearchStrategy[Any]], Any]
Kind = Callable[[Draw, "Queue", list[str], list[str]], "Change"]
"""Draws a change to a queue, all of whose slots are named, and those of them that are SCHEDULED."""


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """A queue: what was added, at its end or at hours; which slots were removed; and the hours until the plan.

    The send window is set when so many drafts have been added.
    """

    cap: int
    window: SendWindow | None
    windowless: int
    added: list[tuple[str, float | None]]
    removed: set[int]
    is_paused: bool
    skips: bool
    passed: float


def every_day(start: int, end: int | None) -> SendWindow:
    return SendWindow(days=frozenset(range(7)), start=time(start), end=None if end is None else time(end))


@st.composite
def histories(draw: st.DrawFn) -> History:
    exact = st.integers(0, 12).map(lambda number: number + 0.5)
    added = draw(
        st.lists(st.tuples(st.sampled_from(CATEGORIES), st.none() | st.none() | exact), min_size=2, max_size=9)
    )
    chosen = [at for _, at in added if at]
    return History(
        cap=draw(st.sampled_from([0, 0, 6])),
        window=draw(st.none() | st.builds(every_day, st.sampled_from([8, 11, 14]), st.sampled_from([15, 18, None]))),
        windowless=draw(st.integers(0, 4)),
        added=[each for place, each in enumerate(added) if not each[1] or chosen.index(each[1]) == place],
        removed=draw(st.sets(st.integers(0, 8), max_size=2)),
        is_paused=draw(st.booleans()),
        skips=draw(st.booleans()),
        passed=draw(st.sampled_from([0.0, 1.25, 3.0, 4.75])),
    )


async def build(queue: "Queue", history: History) -> None:
    """Drafts that are refused, because their time is taken, stay out."""
    async with queue.database.transaction() as tx:
        await tx.connection.execute(text(EMPTY))
    queue.now = START
    queue.schedule.kept = {each: "news" for each in HOURLY if each.hour % 5 == 3}
    await queue.put_schedule("page", *HOURLY, cap=history.cap)
    for place, (category, at) in enumerate(history.added):
        if history.window and place == min(history.windowless, len(history.added) - 1):
            await queue.put_schedule("page", *HOURLY, cap=history.cap, window=history.window, version=2)
        await queue.save_draft(f"d{place}", "page", category=category)
        await (queue.at(f"d{place}", hour(at)) if at else queue.add(f"d{place}", "page"))
    slots = sorted(await times(queue))
    for place in history.removed:
        if place < len(slots):
            await Rearranging(queue).remove(slots[place])
    if history.skips:
        await queue.skip("page")
    if history.is_paused:
        await Pausing(queue).pause()
    queue.now = hour(history.passed)
    await drain(queue)


async def times(queue: "Queue") -> dict[str, datetime]:
    rows = await queue.rows("select id, schedule_time from slot where is_live order by schedule_time")
    return {row.id: row.schedule_time for row in rows}


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change as it is planned, and as it is made."""

    planned: PlannedChange
    make: Callable[[], Awaitable[object]]


async def compare(queue: "Queue", change: Change) -> None:
    before = await times(queue)
    planned = await outcome(plan(queue, change.planned))
    made = await outcome(change.make())
    if isinstance(planned, Fault) or isinstance(made, Fault):
        assert isinstance(planned, Fault)
        assert isinstance(made, Fault)
        assert (planned.code, planned.reason) == (made.code, made.reason)
        return
    assert isinstance(planned, Plan)
    after = await times(queue)
    assert {name: time for name, time in after.items() if name in before} == expected(before, planned)
    new = [slot.seat.time for slot in planned.slots if not slot.slot_id and slot.seat]
    assert sorted(time for name, time in after.items() if name not in before) == new


def expected(before: dict[str, datetime], planned: Plan) -> dict[str, datetime]:
    """Returns the times of the slots after the change; the plan must know their times before it."""
    shown = {slot.slot_id: slot for slot in planned.slots if slot.slot_id}
    assert {name: slot.previous_time for name, slot in shown.items()} == {name: before[name] for name in shown}
    assert planned.unchanged == len(before) - len(shown)
    left = {name: slot.seat.time for name, slot in shown.items() if slot.seat}
    return {name: left.get(name, time) for name, time in before.items() if name not in shown or name in left}


async def outcome(call: Awaitable[Any]) -> Any:
    try:
        return await call
    except Fault as fault:
        return fault


def _added(draw: Draw, queue: "Queue", _names: list[str], _scheduled: list[str]) -> Change:
    count, category = draw(st.integers(1, 4)), draw(st.sampled_from(CATEGORIES))
    in_front = draw(st.booleans())
    kind = PlannedInFront if in_front else PlannedAdditions
    place = QUEUE_PLACE_FRONT if in_front else QUEUE_PLACE_END

    async def add_all() -> None:
        for number in range(count):
            await queue.save_draft(f"new-{number}", "page", category=category)
            await queue.add(f"new-{number}", "page", place=place)

    return Change(planned=kind(count=count, category=category), make=add_all)


def _reordered(draw: Draw, queue: "Queue", _names: list[str], scheduled: list[str]) -> Change:
    order = draw(st.permutations(scheduled))
    mistake = draw(st.sampled_from(["", "", "", "missing", "twice", "unknown"]))
    wrong = {"missing": order[1:], "twice": [*order, *order[:1]], "unknown": [*order, "nobody"]}
    slots = tuple(wrong[mistake] if mistake else order)
    return Change(planned=Order(slot_ids=slots), make=lambda: Rearranging(queue).reorder(*slots))


def _cleared(_draw: Draw, queue: "Queue", _names: list[str], _scheduled: list[str]) -> Change:
    return Change(planned=PlannedClearing(), make=Rearranging(queue).clear)


def _shuffled(draw: Draw, queue: "Queue", _names: list[str], _scheduled: list[str]) -> Change:
    seed = draw(st.integers(1, 99))
    return Change(planned=PlannedShuffle(seed=seed), make=lambda: Rearranging(queue).shuffle(seed))


def _paused(draw: Draw, queue: "Queue", _names: list[str], _scheduled: list[str]) -> Change:
    until = queue.now + draw(st.sampled_from([timedelta(seconds=1), HOUR / 2, 2 * HOUR, 5.25 * HOUR]))
    overdue = draw(st.sampled_from(OverduePolicy))

    async def pause_and_resume() -> None:
        await Pausing(queue).pause()
        queue.now = until
        await Pausing(queue).resume(overdue=overdue)

    return Change(planned=PlannedPause(until=until, overdue=overdue), make=pause_and_resume)


def _resumed(draw: Draw, queue: "Queue", _names: list[str], _scheduled: list[str]) -> Change:
    overdue = draw(st.sampled_from(OverduePolicy))
    return Change(planned=PlannedResumption(overdue=overdue), make=lambda: Pausing(queue).resume(overdue=overdue))


def _removed(draw: Draw, queue: "Queue", names: list[str], _scheduled: list[str]) -> Change:
    name, closing = draw(st.sampled_from([*names, "nobody"])), draw(st.booleans())
    return Change(
        planned=PlannedRemoval(slot_id=name, close_gap=closing),
        make=lambda: Rearranging(queue).remove(name, close_gap=closing),
    )


def _moved(draw: Draw, queue: "Queue", names: list[str], _scheduled: list[str]) -> Change:
    named = st.sampled_from([*names, "nobody"])
    name, mark, time = draw(named), draw(named), hour(draw(st.integers(-8, 60)) / 4)
    destinations: list[tuple[Destination, dict[str, Any]]] = [
        (ToTop(), {"to_top": True}),
        (ToBottom(), {"to_bottom": True}),
        (Before(mark), {"before_slot_id": mark}),
        (ToTime(time), {"schedule_time": timestamp(time)}),
    ]
    destination, fields = draw(st.sampled_from(destinations))
    planned = PlannedMove(slot_id=name, destination=destination)
    return Change(planned=planned, make=lambda: Rearranging(queue).move(name, **fields))


@pytest.mark.parametrize("kind", [_added, _reordered, _cleared, _shuffled, _paused, _resumed, _removed, _moved])
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(history=histories(), data=st.data())
async def test_what_was_planned_comes_true(queue: "Queue", kind: Kind, history: History, data: st.DataObject) -> None:
    await build(queue, history)
    rows = await queue.rows("select id, state from slot order by draft_id")
    scheduled = [row.id for row in rows if row.state == "SCHEDULED"]
    await compare(queue, kind(data.draw, queue, [row.id for row in rows], scheduled))
