"""Reading account schedules."""

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.usecase.schedule_service.calendars.conftest import Schedules


async def test_organizations_may_have_the_same_account_id(schedules: "Schedules") -> None:
    own = await schedules.put(organization_id="acme")
    theirs = await schedules.put(replace(schedules.timetable, enabled=False), organization_id="umbrella")
    assert theirs.version == 1
    assert await schedules.get(organization_id="acme") == own
    assert await schedules.get(organization_id="umbrella") == theirs
