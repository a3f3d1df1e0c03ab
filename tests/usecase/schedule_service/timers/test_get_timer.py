"""Reading timers."""

from typing import TYPE_CHECKING

import pytest

from servicekit.faults import NotFound

if TYPE_CHECKING:
    from tests.usecase.schedule_service.timers.conftest import Timers


async def test_organizations_may_have_the_same_timer_id(timers: "Timers") -> None:
    own = await timers.create(cron="@daily")
    for call in (timers.get, timers.pause, timers.resume, timers.fire, timers.delete):
        with pytest.raises(NotFound):
            await call(organization_id="umbrella")
    theirs = await timers.create(organization_id="umbrella", cron="@hourly")
    await timers.pause(organization_id="umbrella")
    await timers.delete(organization_id="umbrella")
    assert theirs.cron == "@hourly"
    assert await timers.get() == own
