"""Firing timers manually."""

from datetime import UTC, timedelta
from typing import TYPE_CHECKING

from testkit.clocks import START

if TYPE_CHECKING:
    from tests.usecase.schedule_service.timers.conftest import Timers


async def test_a_manual_firing_does_not_change_the_schedule(timers: "Timers") -> None:
    made = await timers.create(cron="@daily", payload=b"p")
    answer = await timers.fire()
    assert answer.occurrence_key.startswith("manual/")
    after = answer.timer
    assert (after.fire_count, after.last_occurrence_key) == (1, "")
    assert after.last_fire_time.ToDatetime(UTC) > START
    assert (after.next_fire_time, after.etag, after.update_time) == (made.next_fire_time, made.etag, made.update_time)
    (event,) = timers.fired.events
    assert (event.timer_id, event.topic, event.payload, event.manual) == ("t", "drafts.generate", b"p", True)
    assert event.occurrence_key == answer.occurrence_key
    assert event.due_time == event.fire_time == after.last_fire_time
    assert (await timers.fire()).occurrence_key != answer.occurrence_key


async def test_a_timer_fires_manually_in_any_state(timers: "Timers") -> None:
    await timers.create("resting", cron="@daily")
    await timers.pause("resting")
    await timers.create("finished", delay=timedelta(0))
    await timers.fire_due()
    for timer_id in ("resting", "finished"):
        before = await timers.get(timer_id)
        after = (await timers.fire(timer_id, request_id=f"by-hand-{timer_id}")).timer
        assert (after.state, after.fire_count) == (before.state, before.fire_count + 1)
        assert timers.fired.keys[-1] == f"manual/by-hand-{timer_id}"
