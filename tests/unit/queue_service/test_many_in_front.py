"""Several drafts at the front: the same as one after the other, in one step where that is possible."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queue_service.domain.arrangement import Arrangement, SeatedSlot, Snapshot
from queue_service.domain.free_times import FreeTimes, MoreTimes
from queue_service.domain.front import put_in_front
from queue_service.domain.many_in_front import ManyInFront
from queue_service.domain.slot import SlotState
from servicekit.faults import Refused
from tests.unit.queue_service.snapshots import HOUR, NOW, after, hour, hourly, names, queue_of, require_sound, slot

# The times that are kept for news.
KEPT = tuple(hour(number) for number in range(3, 20, 5))


def read(until: int = 200, *, last: bool = True) -> dict[str, "object"]:
    everything = hourly(until, last=last)
    times = tuple(time for time in everything.times if time not in KEPT)
    kept = tuple(time for time in everything.times if time in KEPT)
    return {
        "": replace(everything, times=times, nominals=tuple(each.replace(tzinfo=None) for each in times)),
        "news": replace(everything, times=kept, nominals=tuple(each.replace(tzinfo=None) for each in kept)),
    }


READ = read()


def put(snapshot: Snapshot, count: int, category: str = "", given: object = READ) -> tuple[Arrangement, int]:
    """Returns what the drafts do together, and in how many steps."""
    front = ManyInFront(snapshot, given, category, earliest=NOW)  # type: ignore[arg-type]
    steps = 0
    while count:
        count -= front.put(count)
        steps += 1
    return front.arrangement, steps


def one_by_one(snapshot: Snapshot, count: int, category: str) -> list[SeatedSlot]:
    """Returns the queue after each draft has been put in front by itself, the new ones named by their numbers."""
    for number in range(count):
        found = put_in_front(snapshot, FreeTimes(snapshot, READ), category, earliest=NOW)  # type: ignore[arg-type]
        [seat] = found.additions
        new = SeatedSlot(f"new {number}", "", SlotState.SCHEDULED, seat, category)
        left = sorted([*after(snapshot, found), new], key=lambda each: each.time)
        snapshot = replace(snapshot, slots=tuple(left))
    return list(snapshot.slots)


def shown(slots: list[SeatedSlot]) -> list[tuple[str, object]]:
    return [("new" if each.slot_id.startswith("new") else each.slot_id, each.seat) for each in slots]


def test_the_last_draft_is_the_first_and_the_others_follow() -> None:
    snapshot = queue_of(slot("a", hour(1)), slot("b", hour(2)), slot("c", hour(6)))
    arrangement, steps = put(snapshot, 2)
    assert [(seat.time - NOW) / HOUR for seat in arrangement.additions] == [1, 2]
    assert names(after(snapshot, arrangement)) == "a b c"
    assert [(each.seat.time - NOW) / HOUR for each in after(snapshot, arrangement)] == [4, 5, 6]
    assert steps == 1


def test_without_a_time_for_all_of_them_it_is_refused() -> None:
    with pytest.raises(Refused) as refused:
        put(queue_of(slot("a", hour(1))), 9, "", read(6))
    assert refused.value.reason == "HORIZON_EXHAUSTED"
    with pytest.raises(MoreTimes) as more:
        put(queue_of(slot("a", hour(1))), 9, "", read(6, last=False))
    assert more.value.at_least >= 9


@st.composite
def mixed(draw: st.DrawFn) -> Snapshot:
    """Draws queues whose slots may have times of other categories' lines, or of no line."""
    hours = sorted(draw(st.sets(st.integers(1, 24), max_size=14)))
    dispatched = draw(st.integers(0, 2))
    slots = []
    for place, number in enumerate(hours):
        category, state = draw(st.sampled_from(["", "", "news"])), SlotState.SCHEDULED
        if place < dispatched:
            state = SlotState.DISPATCHED
        off = draw(st.sampled_from([0, 0, 0, 0.25]))
        slots.append(slot(f"s{place}", hour(number + off), state=state, category=category))
    return queue_of(*slots, cap=draw(st.sampled_from([0, 0, 12])))


@given(mixed(), st.integers(1, 8), st.sampled_from(["", "news"]))
def test_all_at_once_is_the_same_as_one_after_the_other(snapshot: Snapshot, count: int, category: str) -> None:
    arrangement, _ = put(snapshot, count, category)
    require_sound(snapshot, arrangement)
    new = [SeatedSlot("new", "", SlotState.SCHEDULED, seat, category) for seat in arrangement.additions]
    together = sorted([*after(snapshot, arrangement), *new], key=lambda each: each.time)
    assert shown(together) == shown(one_by_one(snapshot, count, category))


def test_slots_that_stop_shifting_are_put_one_by_one() -> None:
    snapshot = queue_of(slot("n", hour(1), category="news"), slot("off", hour(1.5)), slot("a", hour(2)))
    assert put(snapshot, 3)[1] > 1
