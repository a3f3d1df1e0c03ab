"""The free slot times of an account, compared with a model that looks at every time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from civil.weekly import WeeklySlot, occurrences
from civil.zones import find_zone
from queue_service.domain.account import AccountQueue
from queue_service.domain.allocation import Occupancy, reopened_by
from queue_service.domain.frontier import NOTHING_KNOWN, Frontier
from queue_service.domain.openings import Lack, Opening, Openings
from queue_service.domain.slot import LIVE, SPACING, SlotState
from queue_service.domain.slot_times import SlotTimes
from tests.unit.queue_service.model import END, START, Model

HOUR = timedelta(hours=1)
# Hours 2 and 3 may be free, and those from 7 on.
FULL = Frontier(search_from=START + 2 * HOUR, full_from=START + 4 * HOUR, full_until=START + 7 * HOUR)
OPEN = Occupancy(filled=set(), counted={})
CATEGORIES = ("", "news", "sport")

weekly = st.builds(
    WeeklySlot, day=st.sampled_from([0, 4, 5]), hour=st.sampled_from([0, 2, 23]), minute=st.sampled_from([0, 1, 2, 30])
)
moves = st.lists(
    st.one_of(
        st.lists(st.sampled_from([*CATEGORIES, "other"]), min_size=1, max_size=6),
        st.sampled_from(["front", "skip"]),
        st.tuples(st.integers(0, 12 * 1440), st.sampled_from([0, 20, 59])),
        st.tuples(st.integers(0, 9), st.sampled_from(sorted(set(SlotState) - {SlotState.SCHEDULED}))),
        st.timedeltas(timedelta(0), timedelta(hours=20)),
    ),
    max_size=30,
)


def page(times: Sequence[datetime], *, until: datetime = END, last: bool = True) -> SlotTimes:
    return SlotTimes(
        schedule_version=1, after=START, until=until, times=tuple(times), nominals=(None,) * len(times), last=last
    )


def look(openings: Openings, model: Model, size: int) -> None:
    openings.learn(model.occupancy(openings.window(size)))


@dataclass
class Account:
    """The account as the service keeps it, next to the model."""

    model: Model
    window: int
    queue: AccountQueue
    earliest: datetime = START

    def add(self, categories: Sequence[str], *, at_end: bool = True) -> None:
        """Adds drafts of these categories in one transaction: slots are stored at its end."""
        lines = {name: page([time for time in self.model.times if self.model.category(time) == name]) for name in
                 {*CATEGORIES, *categories}}  # fmt: skip
        openings = Openings(self.queue, lines, earliest=self.earliest)
        stored = Model(self.model.zone, self.model.cap, self.model.times, list(self.model.slots))
        openings.expect(categories)
        for category in categories:
            while (found := openings.find(category, at_end=at_end)) is Lack.LOOK:
                look(openings, stored, self.window)
            wanted = self.model.next_free(self.earliest, category, at_end=at_end)
            assert (found.time if isinstance(found, Opening) else found) == (wanted or Lack.NONE)
            if isinstance(found, Opening):
                openings.take(found)
                self.model.take(found.time, at_end=at_end, skipped=found.skipped)
        self.queue = openings.updated(self.queue)
        assert self.queue.skip_next == self.model.skip_next
        assert {time for time in self.model.skipped if time >= self.earliest} == set(self.queue.skipped_times)

    def skip(self) -> None:
        self.queue = replace(self.queue, skip_next=True)
        self.model.skip_next = True

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
            self.queue = self.queue.reopened(*reopened)


@settings(max_examples=400)
@given(
    st.dictionaries(weekly, st.sampled_from(CATEGORIES), min_size=1, max_size=12),
    st.sampled_from(["Europe/Berlin", "America/Nuuk", "UTC", "Africa/Cairo"]),
    st.integers(0, 3),
    st.integers(1, 5),
    moves,
)
def test_a_search_that_remembers_finds_what_one_from_scratch_finds(
    slots: Mapping[WeeklySlot, str], zone: str, cap: int, window: int, moves: list[object]
) -> None:
    found = {
        each.instant: category
        for category in CATEGORIES
        for each in occurrences(
            [slot for slot, kept in slots.items() if kept == category], find_zone(zone), after=START, until=END
        )
    }
    queue = AccountQueue(
        social_account_id="page", schedule_version=1, time_zone=zone, max_posts_per_day=cap, enabled=True
    )
    account = Account(Model(zone, cap, tuple(sorted(found)), categories=found), window, queue)
    for move in moves:
        match move:
            case "front":
                account.add([""], at_end=False)
            case "skip":
                account.skip()
            case timedelta():
                account.earliest = min(account.earliest + move, END - timedelta(seconds=1))
            case (int(minute), int(second)):
                account.book(START + timedelta(minutes=minute, seconds=second))
            case (int(index), SlotState() as state) if account.model.slots:
                account.change(index % len(account.model.slots), state)
            case list(categories):
                account.add([str(each) for each in categories])


def hourly(
    frontier: Frontier = NOTHING_KNOWN, *, earliest: int = 0, hours: int = 10, cap: int = 0, last: bool = False
) -> Openings:
    """Begins a search `earliest` hours after START, in a page with one time in each hour."""
    times = page([START + number * HOUR for number in range(hours)], until=START + hours * HOUR, last=last)
    queue = AccountQueue(
        social_account_id="page", time_zone="UTC", max_posts_per_day=cap, enabled=True, frontier=frontier
    )
    openings = Openings(queue, {"": times}, earliest=START + earliest * HOUR)
    openings.expect([""])
    return openings


def window(openings: Openings, size: int) -> list[int]:
    return [(time - START) // HOUR for time in openings.window(size)]


def found(openings: Openings) -> int | Lack:
    opening = openings.find()
    return (opening.time - START) // HOUR if isinstance(opening, Opening) else opening


def frontier(openings: Openings) -> Frontier:
    return openings.updated(AccountQueue(social_account_id="page")).frontier


@pytest.mark.parametrize(
    ("earliest", "size", "expected"),
    [(0, 8, [2, 3]), (0, 1, [2]), (4, 8, [7, 8, 9]), (4, 2, [7, 8]), (9, 8, [9])],
)
def test_a_window_ends_before_times_that_are_known_to_be_taken(earliest: int, size: int, expected: list[int]) -> None:
    assert window(hourly(FULL, earliest=earliest), size) == expected


@pytest.mark.parametrize(
    ("earliest", "last", "lack"),
    [
        (0, True, Lack.LOOK),
        (9, True, Lack.LOOK),
        (10, True, Lack.NONE),
        (10, False, Lack.MORE),
        (11, True, Lack.NONE),
        (-1, False, Lack.AGAIN),
        (-1, True, Lack.AGAIN),
    ],
)
def test_a_search_goes_on_within_its_page_and_ends_with_the_last_one(earliest: int, last: bool, lack: Lack) -> None:
    assert hourly(earliest=earliest, last=last).find() is lack


def test_the_frontier_passes_the_minute_after_a_time_that_is_taken() -> None:
    openings = hourly()
    openings.window(1)
    openings.learn(OPEN)
    opening = openings.find()
    assert isinstance(opening, Opening)
    assert frontier(openings) == NOTHING_KNOWN
    openings.take(opening)
    assert frontier(openings) == NOTHING_KNOWN.passed(START + SPACING)


def test_a_window_without_a_free_time_is_not_looked_at_again() -> None:
    openings = hourly()
    openings.learn(replace(OPEN, filled=set(openings.window(3))))
    assert found(openings) is Lack.LOOK
    assert window(openings, 3) == [3, 4, 5]


def test_a_search_jumps_over_the_times_that_are_known_to_be_taken() -> None:
    openings = hourly(FULL)
    openings.learn(replace(OPEN, filled=set(openings.window(8))))
    assert found(openings) is Lack.LOOK
    assert window(openings, 8) == []  # the rest of the stretch before
    openings.learn(OPEN)
    assert found(openings) is Lack.LOOK
    assert window(openings, 8) == [7, 8, 9]
    openings.learn(OPEN)
    assert found(openings) == 7


def test_a_page_without_a_free_time_is_remembered_and_more_are_read() -> None:
    openings = hourly()
    openings.learn(replace(OPEN, filled=set(openings.window(10))))
    while found(openings) is Lack.LOOK:
        openings.learn(replace(OPEN, filled=set(openings.window(10))))
    assert found(openings) is Lack.MORE
    assert frontier(openings).next_open(START) == START + 10 * HOUR


@pytest.mark.parametrize(("cap", "expected"), [(0, 0), (1, 12), (2, 0)])
def test_a_search_obeys_the_cap_of_its_account(cap: int, expected: int) -> None:
    openings = hourly(hours=24, cap=cap)
    openings.window(24)
    openings.learn(replace(OPEN, counted={START.date(): 1}))
    assert found(openings) == expected


def test_drafts_of_one_transaction_are_looked_up_together() -> None:
    openings = hourly(hours=100)
    openings.expect([""] * 20)
    assert len(openings.window(8)) >= 20


def test_a_category_that_was_not_read_is_read() -> None:
    assert hourly().find("news") is Lack.AGAIN


def test_a_skip_is_kept_if_no_other_time_is_free() -> None:
    openings = Openings(AccountQueue(social_account_id="page", skip_next=True), {"": page([START])}, earliest=START)
    openings.expect([""])
    while (opening := openings.find()) is Lack.LOOK:
        openings.window(8)
        openings.learn(OPEN)
    assert opening is Lack.NONE
    assert not openings.has_skipped


def looked_at(model: Model) -> Opening | Lack:
    queue = AccountQueue(social_account_id="page", time_zone=model.zone, max_posts_per_day=model.cap)
    [time] = model.times
    openings = Openings(queue, {"": replace(page([time]), after=time, until=time + HOUR)}, earliest=time)
    openings.expect([""])
    while (opening := openings.find()) is Lack.LOOK:
        look(openings, model, 8)
    return opening


@pytest.mark.parametrize(
    ("seconds", "is_free"), [(0, False), (59, False), (-59, False), (59.999999, False), (60, True), (-60, True)]
)
def test_a_slot_fills_the_minute_on_either_side(seconds: float, is_free: bool) -> None:
    at = START + timedelta(seconds=seconds)
    assert isinstance(looked_at(Model("UTC", 0, (START,), [(at, SlotState.SCHEDULED)])), Opening) is is_free
    openings = hourly()
    openings.fill(at)
    openings.learn(replace(OPEN, filled=set(openings.window(10)) - {START}))
    assert (openings.find() is Lack.LOOK) is not is_free


def test_the_cap_counts_the_local_day_of_the_instant() -> None:
    """Takes Nuuk, where clocks jump over midnight: Saturday 23:30 becomes Sunday 00:30 and counts for Sunday."""
    saturday = WeeklySlot(day=6, hour=23, minute=30)
    [shifted] = occurrences(
        [saturday],
        find_zone("America/Nuuk"),
        after=datetime(2024, 3, 30, 12, tzinfo=UTC),
        until=datetime(2024, 4, 1, tzinfo=UTC),
    )
    noon = datetime(2024, 3, 31, 14, 0, tzinfo=UTC)
    assert looked_at(Model("America/Nuuk", 1, (shifted.instant,), [(noon, SlotState.PUBLISHED)])) is Lack.NONE
    on_saturday = datetime(2024, 3, 30, 14, 0, tzinfo=UTC)
    model = Model("America/Nuuk", 1, (shifted.instant,), [(on_saturday, SlotState.PUBLISHED)])
    assert isinstance(looked_at(model), Opening)
