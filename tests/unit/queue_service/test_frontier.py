"""The frontier, compared with the plain set of times that may be free."""

from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from queue_service.domain.frontier import EPOCH, NOTHING_KNOWN, Frontier

STEPS = 60


def at(step: int) -> datetime:
    return EPOCH + timedelta(minutes=step)


def known_full(frontier: Frontier) -> set[int]:
    return {
        step
        for step in range(STEPS)
        if at(step) < frontier.search_from or frontier.full_from <= at(step) < frontier.full_until
    }


stretches = st.tuples(st.integers(0, STEPS), st.integers(0, STEPS)).map(lambda pair: (min(pair), max(pair)))
changes = st.lists(st.one_of(st.integers(0, STEPS), stretches), max_size=12)


@given(changes, st.integers(0, STEPS - 1))
def test_the_frontier_never_skips_a_time_that_may_be_free(changes: list[int | tuple[int, int]], instant: int) -> None:
    frontier, full = NOTHING_KNOWN, set[int]()
    for change in changes:
        if isinstance(change, int):
            frontier = frontier.passed(at(change))
            full |= set(range(min(change, STEPS)))
        else:
            frontier = frontier.reopened(at(change[0]), at(change[1]))
            full -= set(range(*change))
        assert frontier.search_from <= frontier.full_from <= frontier.full_until
        assert known_full(frontier) <= full
    start = frontier.next_open(at(instant))
    assert start >= at(instant)
    assert set(range(instant, STEPS)) & {step for step in range(STEPS) if at(step) < start} <= full


@given(st.integers(1, STEPS), stretches)
def test_one_freed_time_costs_no_second_search_of_the_rest(until: int, reopened: tuple[int, int]) -> None:
    frontier = NOTHING_KNOWN.passed(at(until)).reopened(at(reopened[0]), at(reopened[1]))
    assert known_full(frontier) == set(range(until)) - set(range(*reopened)) or reopened[0] == reopened[1]


def test_a_search_that_reaches_the_full_stretch_skips_it() -> None:
    frontier = NOTHING_KNOWN.passed(at(50)).reopened(at(10), at(12))
    assert frontier.next_open(at(0)) == at(10)
    assert frontier.next_open(at(12)) == at(50)
    assert frontier.passed(at(12)) == NOTHING_KNOWN.passed(at(50))
