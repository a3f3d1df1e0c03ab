"""Account schedules survive a round trip, and stored events still decode."""

from dataclasses import replace
from datetime import UTC, datetime, time, timedelta

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import given
from hypothesis import strategies as st

from civil.weekly import WeeklySlot
from civil.windows import SendWindow
from civil.zones import find_zone, zone_names
from postflow.queue.v1.queue_events_pb2 import SlotCanceled, SlotMoved, SlotScheduled
from postflow.schedule.v1.account_schedule_pb2 import DAY_OF_WEEK_MONDAY, AccountSchedule
from postflow.schedule.v1.account_schedule_pb2 import WeeklySlot as WeeklySlotMessage
from postflow.schedule.v1.schedule_events_pb2 import AccountScheduleChanged
from schedule_service.domain.calendars.account_schedule import Timetable, created, deleted
from schedule_service.domain.calendars.upcoming_slot import UpcomingSlot
from schedule_service.wire import account_schedules as wire
from schedule_service.wire.civil_times import not_before
from schedule_service.wire.pages import fitting
from schedule_service.wire.slots import SlotEvent, upcoming_slot
from servicekit.faults import InvalidRequest
from servicekit.timestamps import moment

NOW = datetime(2026, 3, 2, 9, 0, 0, 123456, tzinfo=UTC)

slots = st.builds(WeeklySlot, day=st.integers(0, 6), hour=st.integers(0, 23), minute=st.integers(0, 59))
clocks = st.times().map(lambda clock: clock.replace(second=0, microsecond=0))
windows = (
    st.tuples(st.frozensets(st.integers(0, 6), min_size=1), clocks, st.none() | clocks)
    .filter(lambda parts: parts[2] is None or parts[1] < parts[2])
    .map(lambda parts: SendWindow(days=parts[0], start=parts[1], end=parts[2]))
)


@st.composite
def _with_categories(draw: st.DrawFn, timetables: st.SearchStrategy[Timetable]) -> Timetable:
    timetable = draw(timetables)
    chosen = {slot: draw(st.sampled_from(["", "news", "sport"])) for slot in timetable.weekly_slots}
    return replace(timetable, categories={slot: category for slot, category in chosen.items() if category})


timetables = _with_categories(
    st.builds(
        Timetable,
        name=st.text(max_size=20),
        zone=st.sampled_from(sorted(zone_names())).map(find_zone),
        weekly_slots=st.lists(slots, unique=True, max_size=20).map(sorted).map(tuple),
        max_posts_per_day=st.integers(0, 10_000),
        enabled=st.booleans(),
        send_window=st.none() | windows,
        min_spacing=st.integers(0, 86_400).map(lambda seconds: timedelta(seconds=seconds)),
    )
)

# An event as the first release encoded it: it may wait in a stream for a month.
CHANGED = bytes.fromhex(
    "0a0461636d6512640a0470616765120d44656661756c742071756575651a0d4575726f70652f4265726c696e220608071017183b22040801"
    "1009280330013a106432643338343562633131316561346340014a0b0890a395cd06108094ef3a520b0890a395cd06108094ef3a"
)

# A deletion, as it was encoded when schedules got windows.
DELETED = bytes.fromhex(
    "0a0461636d6512750a047061676512064e69676874731a0d4575726f70652f4265726c696e220608071017183b280330003a103930623664"
    "623366393162613064616640024a0b0890a395cd06108094ef3a520b0890c69acd06108094ef3a5a100a02070612040808101e1a04081710"
    "3b620308e8026a0532303236661801"
)

# Queue's events of a slot, before and after they carried zones.
SLOT_SCHEDULED = bytes.fromhex(
    "0a0461636d65120273311801220264312a047061676532100a0470616765120866616365626f6f6b3a0b0890a395cd06108094ef3a"
)
SLOT_MOVED = bytes.fromhex(
    "0a0461636d65120273311802220264312a047061676532100a0470616765120866616365626f6f6b3a0b0890a395cd06108094ef3a420b08"
    "808795cd06108094ef3a4a0d4575726f70652f4265726c696e5210323032362d30332d30325431303a30305801"
)


@given(timetables)
def test_a_schedule_survives_a_round_trip(timetable: Timetable) -> None:
    schedule = created("acme", "page", timetable, now=NOW)
    message = wire.shown(schedule)
    assert wire.timetable(message) == timetable
    assert moment(message.create_time) == NOW
    announced = wire.account_schedule_changed(schedule)
    assert AccountScheduleChanged.FromString(announced.message.SerializeToString()).account_schedule == message


def test_a_stored_event_still_decodes() -> None:
    changed = AccountScheduleChanged.FromString(CHANGED)
    schedule = changed.account_schedule
    assert (changed.organization_id, schedule.social_account_id, schedule.version) == ("acme", "page", 1)
    assert wire.timetable(schedule) == Timetable(
        name="Default queue",
        zone=find_zone("Europe/Berlin"),
        weekly_slots=(WeeklySlot(day=0, hour=23, minute=59), WeeklySlot(day=1, hour=9, minute=0)),
        max_posts_per_day=3,
        enabled=True,
    )
    assert moment(schedule.create_time) == moment(schedule.update_time) == NOW
    assert not changed.deleted


def test_a_stored_deletion_still_decodes() -> None:
    changed = AccountScheduleChanged.FromString(DELETED)
    schedule = changed.account_schedule
    assert (changed.deleted, schedule.version, schedule.tzdata_version) == (True, 2, "2026f")
    assert wire.timetable(schedule) == Timetable(
        name="Nights",
        zone=find_zone("Europe/Berlin"),
        weekly_slots=(WeeklySlot(day=0, hour=23, minute=59),),
        max_posts_per_day=3,
        enabled=False,
        send_window=SendWindow(days=frozenset({0, 6}), start=time(8, 30), end=time(23, 59)),
        min_spacing=timedelta(minutes=6),
    )
    assert moment(schedule.update_time) == NOW + timedelta(days=1)


@given(timetables)
def test_a_deletion_carries_the_last_schedule(timetable: Timetable) -> None:
    schedule = created("acme", "page", timetable, now=NOW)
    gone = deleted(schedule, now=NOW + timedelta(days=1))
    message = wire.account_schedule_changed(gone).message
    assert isinstance(message, AccountScheduleChanged)
    assert message.deleted
    assert wire.timetable(message.account_schedule) == timetable
    assert message.account_schedule.version == schedule.version + 1


SLOT = UpcomingSlot(organization_id="acme", slot_id="s1", social_account_id="page", revision=1, schedule_time=NOW)


def test_stored_events_of_slots_still_decode() -> None:
    assert upcoming_slot(SlotScheduled.FromString(SLOT_SCHEDULED)) == SLOT
    assert upcoming_slot(SlotMoved.FromString(SLOT_MOVED)) == replace(
        SLOT, revision=2, time_zone="Europe/Berlin", nominal=datetime(2026, 3, 2, 10, 0)
    )


def test_a_canceled_slot_is_read_as_one_that_is_gone() -> None:
    event = SlotCanceled(organization_id="acme", slot_id="s1", social_account_id="page", revision=3)
    event.schedule_time.FromDatetime(NOW)
    assert upcoming_slot(event) == UpcomingSlot(
        organization_id="acme",
        slot_id="s1",
        social_account_id="page",
        revision=3,
        schedule_time=NOW,
        is_canceled=True,
    )
    event.ClearField("schedule_time")
    with pytest.raises(InvalidRequest):
        upcoming_slot(event)


@pytest.mark.parametrize("field", ["organization_id", "slot_id", "social_account_id", "schedule_time"])
@pytest.mark.parametrize("event", [SlotScheduled.FromString(SLOT_SCHEDULED), SlotMoved.FromString(SLOT_MOVED)])
def test_a_slot_without_its_ids_or_its_time_is_malformed(event: SlotEvent, field: str) -> None:
    part = type(event).FromString(event.SerializeToString())
    part.ClearField(field)
    with pytest.raises(InvalidRequest) as refusal:
        upcoming_slot(part)
    assert refusal.value.reason == "MALFORMED_EVENT"


@pytest.mark.parametrize(
    "wall",
    [
        "noon",
        "2026-03-02",
        "2026-02-30T10:00",
        "2026-03-02T10:00:00Z",
        "0000-01-01T00:00",
        "2026-W10-1T10:00",
        "2026-03-02 10:00",
        "2026-03-02T10:00+01:00",
        "2026-03-02T10:00:30",
    ],
)
def test_a_slot_with_an_invalid_wall_clock_time_is_malformed(wall: str) -> None:
    event = SlotMoved.FromString(SLOT_MOVED)
    event.nominal_local_time = wall
    with pytest.raises(InvalidRequest) as refusal:
        upcoming_slot(event)
    assert refusal.value.reason == "MALFORMED_EVENT"


@pytest.mark.parametrize(
    ("seconds", "nanos", "microseconds"),
    [(0, 0, 0), (0, 1000, 1), (0, 1, 1), (0, 999, 1), (0, 1001, 2), (-1, 999_999_001, 0), (-1, 999_999_000, -1)],
)
def test_the_end_of_a_range_is_rounded_up(seconds: int, nanos: int, microseconds: int) -> None:
    expected = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)
    assert not_before(Timestamp(seconds=seconds, nanos=nanos)) == expected


def test_rounding_up_does_not_pass_the_end_of_the_calendar() -> None:
    last = Timestamp(seconds=253_402_300_799, nanos=999_999_999)
    assert not_before(last) == datetime.max.replace(tzinfo=UTC)


def test_a_page_has_the_requested_size_and_says_whether_more_follow() -> None:
    small = [AccountSchedule(social_account_id=str(number)) for number in range(5)]
    assert fitting(small, 5) == (small, False)
    assert fitting(small, 4) == (small[:4], True)
    assert fitting([], 4) == ([], False)


def test_a_page_of_large_messages_has_fewer_but_at_least_one() -> None:
    slots = [WeeklySlotMessage(day_of_week=DAY_OF_WEEK_MONDAY, hour=hour, minute=59) for hour in range(20)] * 25
    large = [AccountSchedule(social_account_id=str(number), weekly_slots=slots) for number in range(200)]
    page, more = fitting(large, 200)
    assert more
    assert 40 < len(page) < 60
    enormous = [AccountSchedule(name="x" * 500_000)] * 2
    assert fitting(enormous, 2) == (enormous[:1], True)
