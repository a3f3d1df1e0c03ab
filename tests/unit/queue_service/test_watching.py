"""The changes that a watcher still has to be sent, and the mark that it may have reached."""

from collections.abc import Mapping
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from queue_service.domain.slot import QueueSlot, SlotOrigin, SlotState, SlotTarget
from queue_service.domain.watching import Announced, Change, Mark, Pending, in_order
from testkit.clocks import START

SLOT, JOB = Change("s1"), Change("s1", "d1", "facebook", "")
MARK = Mark(create_time=START, sequence=7, settings="", limits="", low=None)
HOUR = timedelta(hours=1)


def slot(
    slot_id: str = "s1", draft_id: str = "d1", version: int = 0, state: SlotState = SlotState.SCHEDULED
) -> QueueSlot:
    return QueueSlot(
        organization_id="acme",
        id=slot_id,
        draft_id=draft_id,
        social_account_id="page",
        schedule_time=START,
        state=state,
        origin=SlotOrigin.EXACT,
        revision=1,
        targets=(SlotTarget(channel="facebook", destination="", job_version=version),),
        not_after=START,
        time_zone="",
        local_date=None,
        local_time=None,
        content_revision=1,
        traceparent="",
        create_time=START,
        update_time=START,
    )


def pending(*changes: tuple[Change, int, int]) -> Pending:
    """Makes the changes pending, with their first sequences and versions."""
    found = Pending()
    for change, first, version in changes:
        found.add(change, first=first, until=first, version=version)
    return found


def test_changes_of_a_slot_become_one() -> None:
    found = pending((JOB, 5, 2), (JOB, 9, 4), (JOB, 7, 3))
    assert found.first(9, tried=False) == [Announced(JOB, 5, 7, 4)]


def test_a_watcher_has_come_as_far_as_nothing_is_pending() -> None:
    found = pending((SLOT, 8, 0), (JOB, 5, 2))
    assert found.safe(20) == 4
    found.settle(found.first(1, tried=False), [])
    assert found.safe(20) == 7
    found.settle(found.first(1, tried=False), [])
    assert found.safe(20) == 20


def test_changes_that_are_not_stored_take_turns() -> None:
    found = pending(*((Change(f"s{number}", "d"), number, 1) for number in range(1, 6)))
    found.settle([], found.first(5, tried=False))
    assert not found.has_fresh
    turns = []
    for _ in range(3):
        tried = found.first(2, tried=True)
        turns += [each.first for each in tried]
        found.settle([], tried)
    assert turns == [1, 2, 3, 4, 5, 1]


def test_a_repeated_change_is_tried_at_once() -> None:
    found = pending((JOB, 5, 2))
    found.settle([], found.first(1, tried=False))
    found.add(JOB, first=9, until=9, version=3)
    assert found.has_fresh
    assert found.safe(9) == 4


def test_a_change_of_a_slot_is_stored_before_it_is_announced() -> None:
    assert Announced(SLOT, 5, 5, 0).is_stored({}, heard=0)


def test_a_report_is_stored_once_its_version_can_be_read() -> None:
    report = Announced(JOB, 5, 6, 3)
    assert not report.is_stored({}, heard=5)
    assert not report.is_stored({"s1": slot(version=2)}, heard=5)
    assert report.is_stored({"s1": slot(version=3)}, heard=5)
    assert report.is_stored({"s1": slot(version=2)}, heard=6), "Queue has applied it, and ignored it"


def test_slots_are_in_the_order_of_their_changes() -> None:
    changes = [Announced(Change("s1"), 9, 9, 0), Announced(Change("s2", "d2", "x"), 5, 5, 1)]
    found = [slot("s1"), slot("s3", "d2"), slot("s2", "d2"), slot("s4", "d4")]
    assert [(first, each.id) for first, each in in_order(changes, found)] == [(5, "s3"), (5, "s2"), (9, "s1")]


def test_a_mark_remembers_the_earliest_slot_that_may_be_dispatched() -> None:
    assert MARK.with_slot(slot()).low == START
    assert MARK.with_slot(slot(state=SlotState.DISPATCHED)).low is None
    earlier = Mark(create_time=START, sequence=7, settings="", limits="", low=START - HOUR)
    assert earlier.with_slot(slot()).low == START - HOUR


def test_a_mark_never_goes_back() -> None:
    assert MARK.advanced(START, 5).sequence == 7
    assert MARK.advanced(START, 9).sequence == 9


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 50), st.booleans()), max_size=30))
def test_no_mark_passes_a_change_that_was_not_sent(announced: list[tuple[int, int, bool]]) -> None:
    found = Pending()
    unsent: dict[Change, int] = {}
    for number, sequence, is_settled in announced:
        change = Change(f"s{number}")
        found.add(change, first=sequence, until=sequence, version=0)
        unsent[change] = min(unsent.get(change, sequence), sequence)
        if is_settled:
            stored = found.first(1, tried=False)
            found.settle(stored, [])
            for each in stored:
                del unsent[each.change]
        assert found.safe(99) == _least(unsent) - 1


def _least(unsent: Mapping[Change, int]) -> int:
    return min(unsent.values(), default=100)
