"""Zones that tzdata has dropped."""

import pytest

from civil.zones import find_zone, stored_zone, tzdata_version
from schedule_service.domain.calendars.known_zone import require_known
from servicekit.faults import Refused


def test_a_dropped_zone_is_refused_with_what_was_saved_in_it() -> None:
    require_known(find_zone("Europe/Berlin"), "rule r", {"rule": "r"})
    with pytest.raises(Refused) as refused:
        require_known(stored_zone("US/Pacific-New"), "rule r", {"rule": "r"})
    assert refused.value.reason == "UNKNOWN_TIME_ZONE"
    assert refused.value.message.startswith("rule r is in 'US/Pacific-New'")
    assert refused.value.metadata == {"rule": "r", "time_zone": "US/Pacific-New", "tzdata_version": tzdata_version()}
