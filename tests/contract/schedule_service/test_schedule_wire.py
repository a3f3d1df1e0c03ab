"""What Schedule sends reads back as what it meant, and what it sent before still decodes."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from civil.weekly import WeeklySlot
from civil.zones import find_zone, zone_names
from postflow.schedule.v1.schedule_events_pb2 import AccountScheduleChanged
from schedule_service.domain.account_schedule import Timetable, created
from schedule_service.wire import account_schedules as wire
from schedule_service.wire.civil_times import moment

NOW = datetime(2026, 3, 2, 9, 0, 0, 123456, tzinfo=UTC)

slots = st.builds(WeeklySlot, day=st.integers(0, 6), hour=st.integers(0, 23), minute=st.integers(0, 59))
timetables = st.builds(
    Timetable,
    name=st.text(max_size=20),
    zone=st.sampled_from(sorted(zone_names())).map(find_zone),
    weekly_slots=st.lists(slots, unique=True, max_size=20).map(sorted).map(tuple),
    max_posts_per_day=st.integers(0, 10_000),
    enabled=st.booleans(),
)

# An event as the first release encoded it: it may wait in a stream for a month.
CHANGED = bytes.fromhex(
    "0a0461636d6512640a0470616765120d44656661756c742071756575651a0d4575726f70652f4265726c696e220608071017183b22040801"
    "1009280330013a106432643338343562633131316561346340014a0b0890a395cd06108094ef3a520b0890a395cd06108094ef3a"
)


@given(timetables)
def test_a_schedule_survives_the_wire(timetable: Timetable) -> None:
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
