"""New times of outdated slots. In UTC any instant can be the wall-clock time of a slot."""

from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queue_service.domain.relocation import Obstacle, OutdatedSlot, Relocated, relocate
from queue_service.domain.slot import SPACING
from testkit.clocks import START

HOUR, SECOND = timedelta(hours=1), timedelta(seconds=1)


def slot(name: str, instant: datetime, nominal: datetime | None, zone: str = "UTC") -> OutdatedSlot:
    """Makes a slot at one instant with the wall-clock time of another, in UTC."""
    return OutdatedSlot(
        organization_id="acme",
        social_account_id="page",
        slot_id=name,
        schedule_time=instant,
        not_after=instant + timedelta(hours=24),
        time_zone=zone,
        nominal=nominal.replace(tzinfo=None) if nominal else None,
    )


def at(minutes: float) -> datetime:
    return START + timedelta(minutes=minutes)


def relocated(
    *slots: OutdatedSlot, others: tuple[datetime, ...] = (), earliest: datetime = START
) -> dict[str, Relocated]:
    return {each.slot.slot_id: each for each in relocate(slots, others, earliest=earliest)}


def test_the_abolition_of_winter_time_makes_it_an_hour_earlier() -> None:
    nine_by_older_data = datetime(2026, 11, 2, 17, tzinfo=UTC)
    nine = slot("s1", nine_by_older_data, datetime(2026, 11, 2, 9), "America/Vancouver")
    [moved] = relocate([nine], [], earliest=datetime(2026, 3, 1, tzinfo=UTC))
    assert moved.is_moved
    assert moved.schedule_time == nine_by_older_data - HOUR
    assert moved.not_after == nine_by_older_data + timedelta(hours=23)
    assert (moved.local_date, moved.local_time) == (date(2026, 11, 2), time(9))
    assert moved.obstacle is Obstacle.NONE


def test_slots_whose_instants_are_unchanged_stay() -> None:
    summer = slot("s1", datetime(2026, 7, 6, 16, tzinfo=UTC), datetime(2026, 7, 6, 9), "America/Vancouver")
    shifted = slot("s2", datetime(2026, 3, 29, 1, 30, tzinfo=UTC), datetime(2026, 3, 29, 2, 30), "Europe/Berlin")
    for each in relocate([summer, shifted], [], earliest=datetime(2026, 3, 1, tzinfo=UTC)):
        assert not each.is_moved
        assert each.not_after == each.slot.not_after
        assert each.obstacle is Obstacle.NONE
    assert each.local_time == time(3, 30)


def test_a_chosen_time_keeps_its_instant_and_changes_its_local_time() -> None:
    chosen = slot("s1", datetime(2026, 11, 2, 17, tzinfo=UTC), None, "America/Vancouver")
    [stays] = relocate([chosen], [], earliest=START)
    assert not stays.is_moved
    assert stays.local_time == time(10)


def test_a_slot_whose_date_no_longer_exists_stays() -> None:
    friday = slot("s1", datetime(2011, 12, 30, 20, tzinfo=UTC), datetime(2011, 12, 30, 10), "Pacific/Apia")
    [stays] = relocate([friday], [], earliest=datetime(2011, 1, 1, tzinfo=UTC))
    assert not stays.is_moved
    assert stays.obstacle is Obstacle.NO_SUCH_DATE


@pytest.mark.parametrize("step", [HOUR, -HOUR, timedelta(minutes=30)])
def test_slots_move_onto_the_places_of_their_neighbours(step: timedelta) -> None:
    stand = [at(240) + number * abs(step) for number in range(50)]
    found = relocated(*(slot(f"s{number}", time, time + step) for number, time in enumerate(stand)))
    assert [found[f"s{number}"].schedule_time for number in range(50)] == [time + step for time in stand]


@pytest.mark.parametrize("seconds", [-59, 0, 59])
def test_a_slot_whose_new_time_is_taken_stays(seconds: int) -> None:
    found = relocated(slot("s1", at(60), at(120)), others=(at(120) + seconds * SECOND,))
    assert not found["s1"].is_moved
    assert found["s1"].obstacle is Obstacle.TAKEN


@pytest.mark.parametrize("seconds", [-60, 60])
def test_a_minute_is_enough(seconds: int) -> None:
    found = relocated(slot("s1", at(60), at(120)), others=(at(120) + seconds * SECOND,))
    assert found["s1"].schedule_time == at(120)


def test_one_taken_time_does_not_stop_the_other_slots() -> None:
    chain = [slot(f"s{number}", at(60 * number), at(60 * number + 60)) for number in range(1, 10)]
    found = relocated(*chain, others=(at(600),))
    assert [found[f"s{number}"].schedule_time for number in range(1, 9)] == [at(60 * n + 60) for n in range(1, 9)]
    last = found["s9"]
    assert (last.schedule_time, last.obstacle) == (at(601), Obstacle.TAKEN)


def test_one_of_two_slots_meant_for_one_time_gets_it() -> None:
    found = relocated(slot("s1", at(60), at(180)), slot("s2", at(120), at(180)))
    assert (found["s1"].schedule_time, found["s1"].obstacle) == (at(180), Obstacle.NONE)
    assert (found["s2"].schedule_time, found["s2"].obstacle) == (at(120), Obstacle.TAKEN)


def test_late_slots_go_out_as_soon_as_possible_a_minute_apart() -> None:
    found = relocated(
        slot("s1", at(30), at(-30)),
        slot("s2", at(35), at(-25)),
        slot("s3", at(61.5), at(1.5)),
        others=(at(2.5),),
        earliest=at(1),
    )
    # Exact times are given first: s3 gets 1.5, so that minute 1 is not free.
    assert {name: each.schedule_time for name, each in found.items()} == {"s3": at(1.5), "s1": at(3.5), "s2": at(4.5)}
    assert {each.obstacle for each in found.values()} == {Obstacle.NONE}


def test_a_slot_about_to_go_out_is_not_put_off() -> None:
    found = relocated(slot("s1", at(0.5), at(-59.5)), earliest=at(1))
    assert not found["s1"].is_moved


def test_an_overdue_slot_that_moves_later_never_goes_out_early() -> None:
    """Takes a slot that is overdue, and whose new time is half a minute ahead, within the notice."""
    found = relocated(slot("s1", at(-59.5), at(0.5)), earliest=at(1))
    assert found["s1"].schedule_time == at(1)


half_minutes = st.integers(-20, 120).map(lambda number: at(number / 2))


@st.composite
def accounts(draw: st.DrawFn) -> tuple[list[OutdatedSlot], list[datetime]]:
    """Draws live slots at least a minute apart, some of which mean other times."""
    apart: list[datetime] = []
    for place in sorted(draw(st.sets(half_minutes, max_size=30))):
        if not apart or place - apart[-1] >= SPACING:
            apart.append(place)
    slots, others = [], []
    for number, place in enumerate(apart):
        meant = draw(st.one_of(st.just("up to date"), st.just("same"), half_minutes))
        if meant == "up to date":
            others.append(place)
        else:
            slots.append(slot(f"s{number}", place, place if meant == "same" else meant))  # type: ignore[arg-type]
    return slots, others


@given(accounts(), half_minutes)
def test_all_slots_get_places_a_minute_apart_and_none_too_early(
    account: tuple[list[OutdatedSlot], list[datetime]], earliest: datetime
) -> None:
    slots, others = account
    found = list(relocate(slots, others, earliest=earliest))
    assert sorted(each.slot for each in found) == sorted(slots)
    places = sorted([*others, *(each.schedule_time for each in found)])
    assert all(later - earlier >= SPACING for earlier, later in pairwise(places))
    for each in found:
        assert each.slot.nominal is not None
        meant = each.slot.nominal.replace(tzinfo=UTC)
        assert not each.is_moved or each.schedule_time >= max(earliest, min(meant, each.slot.schedule_time))
        if meant >= earliest and each.obstacle is Obstacle.NONE:
            assert each.schedule_time == meant
        if each.obstacle is Obstacle.TAKEN:
            assert any(abs(place - meant) < SPACING for place in places)
        if meant < earliest <= each.slot.schedule_time:
            assert each.schedule_time >= earliest


@given(accounts())
def test_nothing_moves_while_time_zone_data_stay_the_same(account: tuple[list[OutdatedSlot], list[datetime]]) -> None:
    slots, others = account
    same = [each._replace(nominal=each.schedule_time.replace(tzinfo=None)) for each in slots]
    assert not any(each.is_moved for each in relocate(same, others, earliest=at(1000)))
