"""Lists of slots, page by page."""

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from queue_service.domain.job import JobState
from queue_service.domain.listing import Filter, Position
from queue_service.domain.slot import SlotState
from servicekit.pg.session import Statement
from testkit.clocks import START

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue

FIRST = START + timedelta(minutes=1)


async def ids(queue: "Queue", size: int = 100, **wanted: object) -> list[str]:
    """Lists the drafts of all pages."""
    found: list[str] = []
    after: Position | None = Position()
    while after is not None:
        page = await queue.list(Filter(organization_id="acme", **wanted), after=after, size=size)  # type: ignore[arg-type]
        assert len(page.slots) <= size
        found += [slot.draft_id for slot in page.slots]
        after = page.last
    return found


@pytest.fixture
async def five(queue: "Queue") -> "Queue":
    """Makes slots b0 (two targets, failed), a1, b2 and a3 at one instant, and a4."""
    for name in ("a1", "a3", "a4"):
        await queue.save_draft(name, "a")
    await queue.save_draft("b0", ("b", "facebook", "x"), ("b", "facebook", ""))
    await queue.save_draft("b2", "b")
    for name, minute in (("a4", 30), ("b2", 20), ("a1", 10), ("a3", 20), ("b0", 0)):
        await queue.at(name, FIRST + timedelta(minutes=minute))
    queue.now = FIRST
    await queue.hand_over.dispatch()
    await queue.settle(*[queue.report(each, JobState.FAILED) for each in queue.stream.taken()])
    return queue


async def test_slots_come_in_the_order_of_their_times(five: "Queue") -> None:
    listed = await ids(five)
    assert listed[:2] == ["b0", "a1"]
    assert set(listed[2:4]) == {"b2", "a3"}
    assert listed[4] == "a4"


@pytest.mark.parametrize("size", [1, 2, 3, 5])
async def test_pages_make_up_the_whole_list(five: "Queue", size: int) -> None:
    assert await ids(five, size) == await ids(five)
    assert await ids(five, size, social_account_id="a") == ["a1", "a3", "a4"]


async def test_filters_choose(five: "Queue") -> None:
    assert await ids(five, social_account_id="b") == ["b0", "b2"]
    assert await ids(five, draft_id="b2") == ["b2"]
    assert await ids(five, draft_id="b2", social_account_id="a") == []
    assert await ids(five, states=(SlotState.FAILED,)) == ["b0"]
    assert await ids(five, states=(SlotState.SCHEDULED, SlotState.FAILED), social_account_id="b") == ["b0", "b2"]
    assert await ids(five, draft_id="b0", states=(SlotState.SCHEDULED,)) == []


@pytest.mark.parametrize("account", ["", "a"], ids=["all accounts", "one account"])
async def test_a_list_has_the_slots_between_two_instants(five: "Queue", account: str) -> None:
    async def between(start: int | None, end: int | None, size: int = 100) -> list[str]:
        first, last = (FIRST + timedelta(minutes=each) if each is not None else None for each in (start, end))
        return await ids(five, size, social_account_id=account, start_time=first, end_time=last)

    every = await between(None, None)
    assert await between(10, 30) == [each for each in every if each in {"a1", "b2", "a3"}]
    assert await between(10, 30, size=1) == await between(10, 30)
    assert await between(31, None) == []
    assert await between(None, 0) == []


async def test_the_slots_of_a_draft_are_bounded_by_instants_too(five: "Queue") -> None:
    at = FIRST + timedelta(minutes=20)
    assert await ids(five, draft_id="b2", start_time=at) == ["b2"]
    assert await ids(five, draft_id="b2", end_time=at) == []


async def test_a_list_of_dispatched_slots_ends_with_the_longest_lead(queue: "Queue") -> None:
    """Guards against reading the SCHEDULED slots, among which they are found: there may be years of them."""
    await queue.fill("a", START, timedelta(hours=12), 5)
    queue.now = START
    assert await queue.hand_over.dispatch()
    assert await ids(queue, states=(SlotState.DISPATCHED,)) == ["a-0"]
    async with queue.database.transaction() as tx:
        await tx.execute(Statement("update slot set state = 'DISPATCHED', emission = 1"))
    assert await ids(queue, states=(SlotState.DISPATCHED,)) == ["a-0", "a-1", "a-2"]
    assert await ids(queue, states=(SlotState.DISPATCHED,), draft_id="a-3") == ["a-3"]


async def test_a_slot_comes_with_all_its_targets(five: "Queue") -> None:
    [slot] = (await five.list(Filter(organization_id="acme", draft_id="b0"), after=Position(), size=1)).slots
    assert [(each.destination, each.job_state) for each in slot.targets] == [("", "FAILED"), ("x", "FAILED")]
    assert [each.error_message for each in slot.targets] == ["no", "no"]


async def test_another_organization_has_a_list_of_its_own(five: "Queue") -> None:
    assert (await five.list(Filter(organization_id="umbrella"), after=Position(), size=10)).slots == ()
