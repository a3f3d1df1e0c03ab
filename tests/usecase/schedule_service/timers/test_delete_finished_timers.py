"""Deleting timers that have fired for the last time."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from postflow.schedule.v1.timer_pb2 import (
    TIMER_STATE_ACTIVE,
    TIMER_STATE_FINISHED,
)
from servicekit.faults import NotFound

if TYPE_CHECKING:
    from tests.usecase.schedule_service.timers.conftest import Timers


DAY = timedelta(days=1)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


async def test_a_finished_timer_is_kept_for_a_week(timers: "Timers") -> None:
    await timers.create("first", delay=timedelta(0))
    await timers.create("going", cron="@daily", repeat_until=at("2030-01-01T00:00"))
    await timers.fire_due()
    timers.clock.moment += 7 * DAY
    await timers.create("second", delay=timedelta(0))
    await timers.fire_due()
    assert not await timers.delete_finished()
    timers.clock.moment += timedelta(minutes=1)
    assert not await timers.delete_finished()
    with pytest.raises(NotFound):
        await timers.get("first")
    assert (await timers.get("second")).state == TIMER_STATE_FINISHED
    assert (await timers.get("going")).state == TIMER_STATE_ACTIVE
