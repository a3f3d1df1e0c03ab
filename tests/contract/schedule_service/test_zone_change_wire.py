"""Zone changes on the wire: their fields, and that the longest page fits into a response."""

from datetime import UTC, datetime, timedelta

from civil.zones import tzdata_version
from postflow.schedule.v1 import schedule_admin_service_pb2 as messages
from schedule_service.domain.zone_changes.moved_times import MOST_LISTED, MovedTime
from schedule_service.domain.zone_changes.zone_change import Kind, Place, ZoneChange
from schedule_service.domain.zone_release import ZoneRelease
from schedule_service.wire import zone_changes as wire
from servicekit.rpc.edge import MAX_MESSAGE_BYTES
from servicekit.rpc.paging import MAX_PAGE_SIZE

NOMINAL = datetime(2026, 11, 2, 9, 0)
NOW = datetime(2026, 11, 2, 16, 0, tzinfo=UTC)


def test_a_time_that_did_not_or_does_not_exist_is_unset() -> None:
    moved = (MovedTime(NOMINAL, None, NOW), MovedTime(NOMINAL, NOW, None))
    change = ZoneChange(Kind.SCHEDULE_RULE, Place("acme", "rule"), ZoneRelease("2024a", "America/Vancouver"), moved)
    (shown,) = wire.listed([change]).zone_changes
    appeared, gone = shown.moved_times
    assert (appeared.nominal_local_time, appeared.HasField("old_time")) == ("2026-11-02T09:00", False)
    assert appeared.new_time.ToDatetime(UTC) == NOW
    assert (gone.old_time.ToDatetime(UTC), gone.HasField("new_time")) == (NOW, False)
    assert (shown.organization_id, shown.id, shown.kind) == ("acme", "rule", messages.ZONE_CHANGE_KIND_SCHEDULE_RULE)
    assert (shown.time_zone, shown.announced_tzdata_version) == ("America/Vancouver", "2024a")


def test_every_kind_has_its_number() -> None:
    numbers = [
        wire.listed([ZoneChange(kind, Place("acme", "x"), ZoneRelease("2024a", "UTC"), ())]).zone_changes[0].kind
        for kind in Kind
    ]
    assert numbers == [number for number in messages.ZoneChangeKind.values() if number]


def test_the_longest_page_fits_into_a_response() -> None:
    at = NOW.replace(microsecond=999_999)
    moved = tuple(MovedTime(NOMINAL, at, at + timedelta(hours=n)) for n in range(MOST_LISTED))
    change = ZoneChange(Kind.TIMER, Place("o" * 64, "i" * 64), ZoneRelease("2024a", "z" * 64), moved)
    response = wire.listed([change] * MAX_PAGE_SIZE)
    response.next_page_token = "t" * 1024
    assert response.ByteSize() < MAX_MESSAGE_BYTES


def test_a_position_reads_back_from_a_token() -> None:
    assert wire.position(None) is None
    for kind in Kind:
        assert wire.position(wire.cursor((kind, Place("acme", "page")))) == (kind, ("acme", "page"))


def test_applied_changes_are_counted_by_kind() -> None:
    applied = wire.applied({Kind.TIMER: 3, Kind.SCHEDULE_RULE: 2}, done=False)
    assert applied == messages.ApplyZoneChangesResponse(
        schedule_rules=2, timers=3, done=False, tzdata_version=tzdata_version()
    )
