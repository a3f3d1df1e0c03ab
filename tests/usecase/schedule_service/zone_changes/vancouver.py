"""The change that tests announce: in 2026 Vancouver stops changing its clocks."""

from collections.abc import Sequence
from datetime import UTC, datetime

from civil.zones import tzdata_version
from schedule_service.domain.zone_changes.moved_times import MovedTime
from schedule_service.domain.zone_changes.zone_change import ZoneChange

OLD = "2024a"
NEW = tzdata_version()
NOW = datetime(2026, 10, 20, 12, 0, tzinfo=UTC)
VANCOUVER = "America/Vancouver"
BERLIN = "Europe/Berlin"
# Monday 09:00 of the first winter without winter time.
MOVED = MovedTime(
    datetime(2026, 11, 2, 9, 0), datetime(2026, 11, 2, 17, 0, tzinfo=UTC), datetime(2026, 11, 2, 16, 0, tzinfo=UTC)
)


def ids(changes: Sequence[ZoneChange]) -> list[tuple[str, str, str]]:
    return [(change.kind, *change.place) for change in changes]
