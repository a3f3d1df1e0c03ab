"""The slot of a draft at a place in an account's queue, and the exact times that a caller may choose."""

from datetime import UTC, date, datetime, time, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from civil.zones import find_zone
from queue_service.domain.account import AccountQueue
from queue_service.domain.booking import Place, book, check_exact_time, next_sequence
from queue_service.domain.draft import Draft, Target
from queue_service.domain.slot import QueueSlot, SlotOrigin, SlotState, SlotTarget
from servicekit.faults import InvalidField
from testkit.clocks import START

SOON = START + timedelta(hours=1)
MICROSECOND = timedelta(microseconds=1)
FEED = Target(social_account_id="page", channel="facebook", destination="")
STORY = Target(social_account_id="page", channel="facebook_story", destination="")
NEWS = Target(social_account_id="bot", channel="telegram", destination="@news")
DRAFT = Draft(organization_id="acme", id="d1", revision=7, targets=(FEED, NEWS, STORY))


def booked(
    schedule_time: datetime = SOON,
    *,
    account: str = "page",
    time_zone: str = "Europe/Berlin",
    origin: SlotOrigin = SlotOrigin.QUEUE,
    nominal: datetime | None = None,
) -> QueueSlot:
    place = Place(
        queue=AccountQueue(social_account_id=account, schedule_version=3, time_zone=time_zone),
        schedule_time=schedule_time,
        origin=origin,
        nominal=nominal,
        tzdata_version="2026a",
    )
    return book(DRAFT, place, slot_id="s1", not_after=SOON + timedelta(days=1), traceparent="00-trace", now=START)


@pytest.mark.parametrize("ahead", [-timedelta(minutes=1), timedelta(0), timedelta(days=1), timedelta(days=730)])
def test_a_time_within_the_bounds_may_be_chosen(ahead: timedelta) -> None:
    check_exact_time(START + ahead, START)


@pytest.mark.parametrize(
    ("ahead", "description"),
    [
        (-timedelta(minutes=1) - MICROSECOND, "is more than a minute ago"),
        (-timedelta(days=1), "is more than a minute ago"),
        (timedelta(days=730) + MICROSECOND, "is more than 730 days ahead"),
    ],
)
def test_a_time_out_of_bounds_is_refused_with_the_bound(ahead: timedelta, description: str) -> None:
    with pytest.raises(InvalidField) as refused:
        check_exact_time(START + ahead, START)
    [violation] = refused.value.violations
    assert (violation.field, violation.description) == ("schedule_time", description)


def test_a_new_slot_is_scheduled_with_the_revision_of_its_draft() -> None:
    slot = booked()
    assert (slot.organization_id, slot.id, slot.draft_id, slot.social_account_id) == ("acme", "s1", "d1", "page")
    assert (slot.state, slot.revision, slot.content_revision) == (SlotState.SCHEDULED, 1, 7)
    assert (slot.schedule_time, slot.not_after) == (SOON, SOON + timedelta(days=1))
    assert (slot.create_time, slot.update_time, slot.traceparent) == (START, START, "00-trace")


@pytest.mark.parametrize(
    ("account", "targets"),
    [
        (
            "page",
            (SlotTarget(channel="facebook", destination=""), SlotTarget(channel="facebook_story", destination="")),
        ),
        ("bot", (SlotTarget(channel="telegram", destination="@news"),)),
    ],
)
def test_a_slot_has_the_targets_of_its_draft_on_its_account(account: str, targets: tuple[SlotTarget, ...]) -> None:
    assert booked(account=account).targets == targets


@pytest.mark.parametrize("origin", SlotOrigin)
@pytest.mark.parametrize("nominal", [None, datetime(2026, 3, 2, 9, 0)])
def test_a_slot_keeps_the_origin_and_wall_clock_time_of_its_place(origin: SlotOrigin, nominal: datetime | None) -> None:
    slot = booked(origin=origin, nominal=nominal)
    assert (slot.origin, slot.nominal) == (origin, nominal)


def test_the_local_date_is_that_of_the_zone() -> None:
    late = booked(datetime(2026, 3, 2, 20, 0, tzinfo=UTC), time_zone="Asia/Kolkata")
    assert (late.local_date, late.local_time) == (date(2026, 3, 3), time(1, 30))
    assert (late.time_zone, late.tzdata_version) == ("Asia/Kolkata", "2026a")


@pytest.mark.parametrize("time_zone", ["", "Europe/Atlantis"])
def test_a_slot_in_no_known_zone_has_neither_local_times_nor_a_release(time_zone: str) -> None:
    slot = booked(time_zone=time_zone)
    assert (slot.schedule_time, slot.time_zone, slot.tzdata_version) == (SOON, "", "")
    assert (slot.local_date, slot.local_time) == (None, None)


@given(
    st.datetimes(datetime(2026, 1, 1), datetime(2028, 1, 1)),
    st.sampled_from(["UTC", "Europe/Berlin", "America/St_Johns", "Pacific/Kiritimati", "Australia/Lord_Howe"]),
)
def test_local_date_and_time_are_the_instant_in_the_zone(moment: datetime, time_zone: str) -> None:
    instant = moment.replace(tzinfo=UTC)
    slot = booked(instant, time_zone=time_zone)
    assert slot.local_date
    assert slot.local_time
    local = datetime.combine(slot.local_date, slot.local_time, UTC)
    assert local - find_zone(time_zone).offset_at(instant) == instant


@given(st.integers(min_value=0, max_value=2**62), st.datetimes(min_value=datetime(2020, 1, 1), timezones=st.just(UTC)))
def test_a_sequence_follows_the_last_one_and_the_clock(last: int, now: datetime) -> None:
    ticks = (now - datetime(1970, 1, 1, tzinfo=UTC)) // MICROSECOND
    sequence = next_sequence(last, now)
    assert sequence > last
    assert sequence >= ticks
    assert sequence in (last + 1, ticks)
