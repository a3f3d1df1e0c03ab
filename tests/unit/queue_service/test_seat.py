"""Seats: an instant with its local time."""

from datetime import UTC, date, datetime, time

from queue_service.domain.seat import Seat, seat_at
from queue_service.domain.slot import SlotOrigin

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def test_a_seat_has_the_local_time_of_its_zone() -> None:
    seat = seat_at(NOON, SlotOrigin.QUEUE, "Asia/Tokyo", nominal=datetime(2026, 3, 2, 21), tzdata_version="2026a")
    assert (seat.time_zone, seat.local_date, seat.local_time) == ("Asia/Tokyo", date(2026, 3, 2), time(21))
    assert (seat.nominal, seat.tzdata_version) == (datetime(2026, 3, 2, 21), "2026a")


def test_without_a_known_zone_a_seat_is_an_instant() -> None:
    for zone in ("", "Europe/Atlantis"):
        assert seat_at(NOON, SlotOrigin.EXACT, zone, tzdata_version="2026a") == Seat(NOON, SlotOrigin.EXACT)
