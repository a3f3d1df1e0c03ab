"""Putting a draft at the front of a queue."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queue_service.domain.arrangement import SeatedSlot, Snapshot
from queue_service.domain.free_times import FreeTimes, MoreTimes
from queue_service.domain.front import put_in_front
from queue_service.domain.frontier import Frontier
from queue_service.domain.slot import SPACING, MoveReason, SlotOrigin, SlotState
from queue_service.domain.slot_times import SlotTimes
from servicekit.faults import Refused
from tests.unit.queue_service.snapshots import (
    HOUR,
    NOW,
    after,
    free,
    hour,
    hourly,
    names,
    queue_of,
    require_sound,
    slot,
    snapshots,
)

DISPATCHED = SlotState.DISPATCHED


def at(*hours: float) -> SlotTimes:
    """Returns slot times at these hours only."""
    times = tuple(map(hour, hours))
    return replace(hourly(1000), times=times, nominals=tuple(time.replace(tzinfo=None) for time in times))


HOURLY, NO_TIMES = hourly(1000), at()


def put(
    snapshot: Snapshot,
    category: str = "",
    *,
    start: float = 1,
    unkept: SlotTimes = HOURLY,
    news: SlotTimes = NO_TIMES,
) -> Snapshot:
    """Returns the queue with a new draft, "n", at its front."""
    return put_by(FreeTimes(snapshot, {"": unkept, "news": news}), snapshot, category, hour(start))


def put_by(times: FreeTimes, snapshot: Snapshot, category: str, earliest: datetime) -> Snapshot:
    arrangement = put_in_front(snapshot, times, category, earliest=earliest)
    require_sound(snapshot, arrangement)
    assert arrangement.freed_times == []
    assert {move.reason for move in arrangement.moves} <= {MoveReason.SHIFTED}
    [seat] = arrangement.additions
    new = slot("n", seat.time, category=category)._replace(seat=seat)
    return queue_of(*after(snapshot, arrangement), new, cap=snapshot.queue.max_posts_per_day)


def shown(snapshot: Snapshot) -> str:
    return " ".join(f"{each.slot_id}{(each.time - NOW) / HOUR:g}" for each in snapshot.slots)


def test_a_free_first_time_is_taken_and_nobody_shifts() -> None:
    assert shown(put(queue_of(slot("a", hour(2))))) == "n1 a2"


def test_slots_shift_up_to_the_first_free_time() -> None:
    queue = queue_of(slot("a", hour(1)), slot("b", hour(2)), slot("c", hour(4)))
    assert shown(put(queue)) == "n1 a2 b3 c4"


def test_the_first_time_is_not_nearer_than_the_notice() -> None:
    queue = queue_of(slot("a", hour(1)), slot("b", hour(2)), slot("c", hour(3)))
    assert shown(put(queue, start=1.5)) == "a1 n2 b3 c4"


def test_chosen_times_and_dispatched_slots_stay() -> None:
    queue = queue_of(
        slot("d", hour(1), state=DISPATCHED),
        slot("a", hour(2)),
        slot("p", hour(3), SlotOrigin.EXACT),
        slot("q", hour(3.5), SlotOrigin.DRAFT),
        slot("b", hour(4)),
    )
    assert shown(put(queue)) == "d1 n2 p3 q3.5 a4 b5"


def test_a_skipped_time_stays_empty_and_a_pending_skip_stays() -> None:
    queue = queue_of(slot("a", hour(2)), slot("b", hour(3)))
    skipped = replace(queue, queue=replace(queue.queue, skip_next=True, skipped_times=(hour(1), hour(4))))
    assert shown(put(skipped)) == "n2 a3 b5"


def test_a_time_of_a_full_day_is_passed_over() -> None:
    queue = queue_of(slot("a", hour(3)), slot("b", hour(5)), cap=2)
    assert shown(put(queue)) == "n3 a5 b24"
    published = replace(queue, counted=(hour(0.5),))
    assert shown(put(published)) == "n3 a5 b24"


def test_a_day_that_is_full_of_what_was_sent_is_passed_over() -> None:
    queue = replace(queue_of(slot("a", hour(24)), cap=1), counted=(hour(0.5),))
    assert shown(put(queue)) == "n24 a48"


def test_a_category_has_a_line_of_its_own() -> None:
    queue = queue_of(slot("a", hour(1)), slot("x", hour(2), category="news"), slot("b", hour(3)))
    unkept, news = at(1, 3, 5), at(2, 4, 6)
    assert shown(put(queue, "news", unkept=unkept, news=news)) == "a1 n2 b3 x4"
    assert shown(put(queue, unkept=unkept, news=news)) == "n1 x2 a3 b5"


def test_a_category_without_free_times_goes_to_the_front_of_the_others() -> None:
    queue = queue_of(slot("a", hour(1)), slot("x", hour(2), category="news"))
    assert shown(put(queue, "news", unkept=at(1, 3), news=at(2))) == "n1 x2 a3"


def test_a_draft_of_a_category_shifts_at_times_that_none_keeps() -> None:
    queue = queue_of(slot("a", hour(1)), slot("x", hour(2), category="news"), slot("b", hour(3)))
    assert shown(put(queue, unkept=HOURLY)) == "n1 a2 x3 b4"


def test_slots_at_times_of_an_older_schedule_keep_their_order() -> None:
    queue = queue_of(slot("a", hour(1)), slot("b", hour(1.5)), slot("c", hour(2)))
    assert shown(put(queue)) == "n1 a1.5 b2 c3"


def test_a_free_time_before_slots_of_an_older_schedule_is_taken() -> None:
    assert shown(put(queue_of(slot("a", hour(1.5))), start=0)) == "n1 a1.5"


def test_the_horizon_is_exhausted() -> None:
    queue = queue_of(slot("a", hour(1)))
    with pytest.raises(Refused) as refused:
        put(queue, "news", unkept=at(1))
    assert (refused.value.reason, refused.value.metadata) == ("HORIZON_EXHAUSTED", {"social_account_id": "page"})


def test_times_are_read_from_the_first_one_on() -> None:
    queue = queue_of(*(slot(f"s{number}", hour(number)) for number in range(1, 9)), frontier=Frontier().passed(hour(9)))
    with pytest.raises(MoreTimes) as unread:
        put_in_front(queue, FreeTimes(queue, None), earliest=hour(3))
    assert (unread.value.start, unread.value.category, unread.value.at_least) == (hour(3), "", 7)
    few = FreeTimes(queue, {"": hourly(5, last=False)})
    with pytest.raises(MoreTimes) as more:
        put_in_front(queue, few, earliest=hour(3))
    assert (more.value.start, more.value.at_least) == (hour(3), 7)
    assert shown(put(queue, start=3)) == "s11 s22 n3 s34 s45 s56 s67 s78 s89"


def test_drafts_at_the_front_one_after_another_are_in_reverse_order() -> None:
    queue = queue_of(slot("a", hour(1)), slot("p", hour(2), SlotOrigin.EXACT), slot("b", hour(3)))
    times = free(queue)
    for name in "xyz":
        queue = put_by(times, queue, "", NOW)
        queue = queue_of(*(each._replace(slot_id=name) if each.slot_id == "n" else each for each in queue.slots))
    assert shown(queue) == "z1 p2 y3 x4 a5 b6"


@given(snapshots(), st.integers(0, 45), st.integers(0, 4), st.sampled_from(["", "news"]), st.integers(2, 4))
def test_only_the_first_free_time_is_filled_and_the_order_stays(
    snapshot: Snapshot, start: int, cap: int, category: str, every: int
) -> None:
    snapshot = replace(snapshot, queue=replace(snapshot.queue, max_posts_per_day=cap))
    lines = {
        "": at(*(number for number in range(1, 99) if number % every)),
        "news": at(*range(every, 99, every)),
    }
    expected = next(FreeTimes(snapshot, lines).seats(hour(start), category))
    arrangement = put_in_front(snapshot, FreeTimes(snapshot, lines), category, earliest=hour(start))
    require_sound(snapshot, arrangement)
    [seat] = arrangement.additions
    left = after(snapshot, arrangement)
    before = Counter(each.time for each in snapshot.slots)
    assert Counter(each.time for each in [*left, slot("n", seat.time)]) == before + Counter([expected.time])
    assert all(move.slot.can_shift and move.slot.time >= seat.time for move in arrangement.moves)
    line = lines[category] if expected.time in lines[category].times else lines[""]
    movable = {each.time for each in snapshot.shiftable}
    assert seat.time == next(
        time for time in line.times if time >= hour(start) and (time in movable or time == expected.time)
    )
    moved = {move.slot.slot_id for move in arrangement.moves}
    assert names([each for each in left if each.slot_id in moved]) == names([move.slot for move in arrangement.moves])
    kept = set(lines["news"].times)
    assert strangers([*left, slot("n", seat.time, category=category)], kept) <= strangers(snapshot.slots, kept)


def strangers(slots: Sequence[SeatedSlot], kept: Collection[datetime]) -> int:
    """Counts the slots at times that are kept for a category which is not theirs."""
    return sum(each.can_shift and each.time in kept and each.category_id != "news" for each in slots)


@given(snapshots(), st.integers(0, 45))
def test_no_two_slots_come_within_a_minute(snapshot: Snapshot, start: int) -> None:
    queue = put_by(free(snapshot), snapshot, "", hour(start))
    assert all(second.time - first.time >= SPACING for first, second in pairwise(queue.slots))
