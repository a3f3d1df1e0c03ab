"""Checking the send windows of stored schedules."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from schedule_service.application.calendars.check_send_window import CheckSendWindow
from servicekit.faults import NotFound

if TYPE_CHECKING:
    from tests.usecase.schedule_service.calendars.conftest import Schedules


@pytest.fixture
def check(schedules: "Schedules") -> CheckSendWindow:
    return CheckSendWindow(database=schedules.database, clock=schedules.clock)


async def test_a_window_is_checked_at_an_instant_or_now(schedules: "Schedules", check: CheckSendWindow) -> None:
    await schedules.put()  # open from 08:30 on Sunday, Monday and Saturday, in New York
    opening = datetime(2026, 3, 2, 13, 30, tzinfo=UTC)
    now = await check(organization_id="acme", social_account_id="page", time=None)
    assert (now.state.time, now.state.open, now.state.open_time) == (schedules.clock.moment, False, opening)
    later = await check(organization_id="acme", social_account_id="page", time=opening)
    assert (later.state.open, later.state.close_time) == (True, datetime(2026, 3, 3, 5, 0, tzinfo=UTC))
    assert later.schedule.version == 1


async def test_without_a_window_posts_may_always_be_sent(schedules: "Schedules", check: CheckSendWindow) -> None:
    await schedules.put(replace(schedules.timetable, send_window=None))
    checked = await check(organization_id="acme", social_account_id="page", time=None)
    assert (checked.state.open, checked.state.close_time) == (True, None)


async def test_the_window_of_an_account_without_a_schedule_is_not_found(
    schedules: "Schedules", check: CheckSendWindow
) -> None:
    await schedules.put()
    with pytest.raises(NotFound) as refused:
        await check(
            organization_id="umbrella", social_account_id="page", time=schedules.clock.moment + timedelta(hours=1)
        )
    assert refused.value.reason == "SCHEDULE_NOT_FOUND"
