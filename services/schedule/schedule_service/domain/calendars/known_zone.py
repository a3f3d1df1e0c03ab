"""Zones that a tzdata release has dropped: schedules and rules in such a zone are shown, but have no times."""

from collections.abc import Mapping

from civil.zones import Zone, tzdata_version
from servicekit.faults import Refused

UNKNOWN = "UNKNOWN_TIME_ZONE"


def require_known(zone: Zone, what: str, metadata: Mapping[str, str]) -> None:
    """Raises Refused for an unknown zone. `what` names the thing in that zone, and `metadata` identifies it."""
    if not zone.is_known:
        raise Refused(
            UNKNOWN,
            f"{what} is in {zone.name!r}, which tzdata {tzdata_version()} does not have; choose another time_zone",
            metadata={**metadata, "time_zone": zone.name, "tzdata_version": tzdata_version()},
        )
