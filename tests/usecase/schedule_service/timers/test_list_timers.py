"""Listing timers."""

from datetime import timedelta
from typing import TYPE_CHECKING

from schedule_service.application.timers.list_timers import ListTimers
from schedule_service.domain.timers.timer import TimerState

if TYPE_CHECKING:
    from tests.usecase.schedule_service.timers.conftest import Timers


async def test_timers_are_listed_in_order_by_topic_and_state(timers: "Timers") -> None:
    for timer_id, topic in (("c", "x"), ("a", "y"), ("b", "x")):
        await timers.create(timer_id, topic=topic, delay=timedelta(hours=1))
    await timers.create("theirs", organization_id="umbrella", delay=timedelta(hours=1))
    await timers.pause("b")
    list_timers = ListTimers(database=timers.database)

    async def listed(topic: str = "", state: TimerState | None = None, after: str = "", size: int = 10) -> str:
        found = await list_timers(organization_id="acme", topic=topic, state=state, after=after, size=size)
        return " ".join(timer.id for timer in found)

    assert await listed() == "a b c"
    assert await listed(size=2) == "a b"
    assert await listed(after="a", size=1) == "b"
    assert await listed(topic="x") == "b c"
    assert await listed(topic="x", state=TimerState.ACTIVE) == "c"
    assert await listed(state=TimerState.PAUSED) == "b"
    assert await listed(state=TimerState.FINISHED) == ""
