"""The search for the next free slot time, compared with a model that looks at every time."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from civil.weekly import WeeklySlot, occurrences
from civil.zones import find_zone
from queue_service.domain.account import AccountQueue
from queue_service.domain.allocation import Occupancy, reopened_by
from queue_service.domain.frontier import NOTHING_KNOWN, Frontier
from queue_service.domain.search import Search
from queue_service.domain.slot import LIVE, SPACING, SlotState
from queue_service.domain.slot_times import SlotTimes
from tests.unit.queue_service.model import END, START, Model

HOUR = timedelta(hours=1)
# Hours 2 and 3 may be free, and those from 7 on.
FULL = Frontier(search_from=START + 2 * HOUR, full_from=START + 4 * HOUR, full_until=START + 7 * HOUR)
OPEN = Occupancy(filled=set(), counted={})

weekly = st.builds(
    WeeklySlot, day=st.sampled_from([0, 4, 5]), hour=st.sampled_from([0, 2, 23]), minute=st.sampled_from([0, 1, 2, 30])
)
moves = st.lists(
    st.one_of(
        st.just("add"),
        st.just("add"),
        st.tuples(st.integers(0, 12 * 1440), st.sampled_from([0, 20, 59])),
        st.tuples(st.integers(0, 9), st.sampled_from(sorted(set(SlotState) - {SlotState.SCHEDULED}))),
        st.timedeltas(timedelta(0), timedelta(hours=20)),
    ),
    max_size=30,
)


@dataclass
class Account:
    """The account as the service keeps it, next to the model."""

    model: Model
    window: int
    queue: AccountQueue
    earliest: datetime = START

    def add(self) -> None:
        page = SlotTimes(
            schedule_version=1,
            after=START,
            until=END,
            times=self.model.times,
            nominals=(None,) * len(self.model.times),
            last=True,
        )
        search = Search(queue=self.queue, times=page, earliest=self.earliest, frontier=self.queue.frontier)
        while search.can_continue:
            window = search.window(self.window)
            search = search.looked(window, self.model.occupancy(window))
        assert search.found == self.model.first_free(self.earliest)
        assert search.found or search.is_exhausted
        if search.found:
            self.model.slots.append((search.found, SlotState.SCHEDULED))
        self.queue = replace(self.queue, frontier=search.taken() if search.found else search.frontier)

    def book(self, exact: datetime) -> None:
        if not any(state in LIVE and abs(at - exact) < SPACING for at, state in self.model.slots):
            self.model.slots.append((exact, SlotState.SCHEDULED))

    def change(self, index: int, after: SlotState) -> None:
        at, before = self.model.slots[index]
        if after in LIVE and before not in LIVE:
            return  # an ended slot never lives again
        self.model.slots[index] = (at, after)
        reopened = reopened_by(at, before, after, cap=self.model.cap, time_zone=self.model.zone)
        if reopened:
            self.queue = replace(self.queue, frontier=self.queue.frontier.reopened(*reopened))


@settings(max_examples=300)
@given(
    st.lists(weekly, min_size=1, max_size=12, unique=True),
    st.sampled_from(["Europe/Berlin", "America/Nuuk", "UTC", "Africa/Cairo"]),
    st.integers(0, 3),
    st.integers(1, 5),
    moves,
)
def test_a_search_that_remembers_finds_what_one_from_scratch_finds(
    slots: list[WeeklySlot], zone: str, cap: int, window: int, moves: list[object]
) -> None:
    times = tuple(found.instant for found in occurrences(slots, find_zone(zone), after=START, until=END))
    queue = AccountQueue(
        social_account_id="page", schedule_version=1, time_zone=zone, max_posts_per_day=cap, enabled=True
    )
    account = Account(Model(zone, cap, times), window, queue)
    for move in moves:
        match move:
            case "add":
                account.add()
            case timedelta():
                account.earliest = min(account.earliest + move, END - timedelta(seconds=1))
            case (int(minute), int(second)):
                account.book(START + timedelta(minutes=minute, seconds=second))
            case (int(index), SlotState() as state) if account.model.slots:
                account.change(index % len(account.model.slots), state)


def test_a_long_queue_is_not_searched_from_the_front() -> None:
    zone = find_zone("UTC")
    daily = [WeeklySlot(day=day, hour=9, minute=0) for day in range(7)]
    times = tuple(found.instant for found in occurrences(daily, zone, after=START, until=START + timedelta(days=700)))
    queue = AccountQueue(
        social_account_id="page", schedule_version=1, time_zone="UTC", max_posts_per_day=2, enabled=True
    )
    queue = replace(queue, frontier=queue.frontier.passed(times[500]))
    page = SlotTimes(
        schedule_version=1, after=START, until=times[-1] + SPACING, times=times, nominals=(None,) * 700, last=False
    )
    search = Search(queue=queue, times=page, earliest=START, frontier=queue.frontier)
    assert search.window(8)[0] == times[500]
    # A slot in the middle is freed; all times behind it are still known to be taken.
    reopened = reopened_by(
        times[250], SlotState.SCHEDULED, SlotState.CANCELED, cap=queue.max_posts_per_day, time_zone="UTC"
    )
    assert reopened is not None
    search = replace(search, frontier=queue.frontier.reopened(*reopened))
    assert search.window(8) == (times[250],)
    taken = Search(queue=queue, times=page, earliest=START, frontier=replace(search, found=times[250]).taken())
    assert taken.looked(taken.window(8), Occupancy(filled=set(), counted={})).window(8)[0] == times[500]


def hourly(
    frontier: Frontier = NOTHING_KNOWN, *, earliest: int = 0, hours: int = 10, cap: int = 0, last: bool = False
) -> Search:
    """Begins a search `earliest` hours after START, in a page with one time in each hour."""
    times = tuple(START + number * HOUR for number in range(hours))
    page = SlotTimes(
        schedule_version=1,
        after=START,
        until=START + hours * HOUR,
        times=times,
        nominals=(None,) * hours,
        last=last,
    )
    queue = AccountQueue(social_account_id="page", time_zone="UTC", max_posts_per_day=cap, enabled=True)
    return Search(queue=queue, times=page, earliest=START + earliest * HOUR, frontier=frontier)


def hours_of(times: Iterable[datetime]) -> list[int]:
    return [(time - START) // HOUR for time in times]


@pytest.mark.parametrize(("earliest", "start"), [(0, 2), (3, 3), (4, 7), (6, 7), (8, 8)])
def test_a_search_starts_at_the_first_time_that_may_be_free(earliest: int, start: int) -> None:
    assert hourly(FULL, earliest=earliest).start == START + start * HOUR


@pytest.mark.parametrize(
    ("earliest", "size", "window"),
    [(0, 8, [2, 3]), (0, 1, [2]), (4, 8, [7, 8, 9]), (4, 2, [7, 8]), (9, 8, [9])],
)
def test_a_window_ends_before_times_that_are_known_to_be_taken(earliest: int, size: int, window: list[int]) -> None:
    assert hours_of(hourly(FULL, earliest=earliest).window(size)) == window


@pytest.mark.parametrize(
    ("earliest", "last", "can_continue", "is_exhausted"),
    [
        (0, True, True, False),
        (9, True, True, False),
        (10, True, False, True),
        (10, False, False, False),
        (11, True, False, True),
        (-1, False, False, False),
        (-1, True, False, False),
    ],
)
def test_a_search_goes_on_within_its_page_and_ends_with_the_last_one(
    earliest: int, last: bool, can_continue: bool, is_exhausted: bool
) -> None:
    search = hourly(earliest=earliest, last=last)
    assert (search.can_continue, search.is_exhausted) == (can_continue, is_exhausted)


def test_a_free_time_ends_the_search() -> None:
    search = hourly()
    window = search.window(4)
    found = search.looked(window, replace(OPEN, filled={window[0], window[1]}))
    assert found.found == window[2]
    assert found.frontier == NOTHING_KNOWN.passed(window[2])
    assert not found.can_continue


def test_the_frontier_passes_the_minute_after_a_time_that_is_taken() -> None:
    search = hourly()
    found = search.looked(search.window(1), OPEN)
    assert found.taken() == NOTHING_KNOWN.passed(START + SPACING)


def test_a_window_without_a_free_time_is_not_looked_at_again() -> None:
    search = hourly()
    window = search.window(3)
    after = search.looked(window, replace(OPEN, filled=set(window)))
    assert after.found is None
    assert after.start == window[-1] + timedelta(microseconds=1)
    assert hours_of(after.window(3)) == [3, 4, 5]


def test_a_search_jumps_over_the_times_that_are_known_to_be_taken() -> None:
    search = hourly(FULL)
    full = search.looked(search.window(8), replace(OPEN, filled=set(search.window(8))))
    after = full.looked(full.window(8), OPEN)
    assert (after.found, after.start) == (None, START + 7 * HOUR)
    assert after.looked(after.window(8), OPEN).found == START + 7 * HOUR


def test_a_page_without_a_time_from_the_start_on_is_passed() -> None:
    search = replace(hourly(last=True), earliest=START + 9 * HOUR + SPACING)
    assert search.window(8) == ()
    after = search.looked((), OPEN)
    assert (after.found, after.start, after.is_exhausted) == (None, START + 10 * HOUR, True)


@pytest.mark.parametrize(("cap", "found"), [(0, 0), (1, 12), (2, 0)])
def test_a_search_obeys_the_cap_of_its_account(cap: int, found: int) -> None:
    search = hourly(hours=24, cap=cap)
    occupancy = replace(OPEN, counted={START.date(): 1})
    assert search.looked(search.window(24), occupancy).found == START + found * HOUR
