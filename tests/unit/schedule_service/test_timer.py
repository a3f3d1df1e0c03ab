"""Timers: how they are paused and resumed, and moved by new time zone data."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from civil.zones import Zone, find_zone, tzdata_version, zone_from_data
from schedule_service.domain.timers.timer import (
    Timer,
    TimerState,
    found,
    paused,
    require_etag,
    rescheduled,
    resumed,
)
from schedule_service.domain.timers.timer_request import TimerRequest, created
from servicekit.faults import Conflict, NotFound, Refused

NOW = datetime(2026, 3, 2, 9, 0, 0, 250_000, tzinfo=UTC)
"""A Monday."""
NEW_YORK = find_zone("America/New_York")


def timer(**fields: Any) -> Timer:
    return created("acme", "nightly", TimerRequest(topic="drafts.generate", **fields), now=NOW)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def test_a_pause_keeps_the_occurrence_but_hides_it_from_the_engine() -> None:
    before = timer(cron="@daily")
    resting = paused(before, now=NOW + timedelta(hours=1))
    assert (resting.state, resting.sleep_until, resting.due_time) == (TimerState.PAUSED, None, before.due_time)
    assert resting.fence > before.fence
    assert resting.etag != before.etag
    assert paused(resting, now=NOW + timedelta(hours=2)) is resting


def test_a_resumed_timer_has_the_occurrence_that_it_had() -> None:
    resting = paused(timer(cron="@daily"), now=NOW)
    later = NOW + timedelta(days=3)
    going = resumed(resting, now=later)
    assert (going.state, going.sleep_until, going.update_time) == (TimerState.ACTIVE, resting.due_time, later)
    assert going.fence > resting.fence
    assert resumed(going, now=later) is going


def test_a_finished_timer_can_be_neither_paused_nor_resumed() -> None:
    finished = replace(timer(delay=timedelta(0)), due_time=None, sleep_until=None, finish_time=NOW)
    assert finished.state is TimerState.FINISHED
    for change in (paused, resumed):
        with pytest.raises(Refused) as refused:
            change(finished, now=NOW)
        assert refused.value.reason == "TIMER_FINISHED"


def test_the_etag_changes_with_calls_and_not_with_firings() -> None:
    made = timer(cron="@daily")
    fired = replace(made, fire_count=1, due_time=at("2026-03-04T00:00"), fence=2, last_fire_time=NOW)
    assert fired.etag == made.etag
    require_etag(fired, made.etag)
    require_etag(fired, "")
    with pytest.raises(Conflict) as refused:
        require_etag(paused(made, now=NOW), made.etag)
    assert refused.value.reason == "ETAG_MISMATCH"


def test_a_timer_that_took_over_an_id_has_another_etag() -> None:
    assert timer(cron="@daily").etag != replace(timer(cron="@daily"), create_time=NOW + timedelta(1)).etag


def test_a_missing_timer_is_not_found() -> None:
    with pytest.raises(NotFound) as missing:
        found(None, "t")
    assert (missing.value.reason, missing.value.metadata) == ("TIMER_NOT_FOUND", {"timer_id": "t"})


def computed_with(cron: str, zone: Zone, due: str, **changes: Any) -> Timer:
    """Returns a timer whose due time was computed with older data of its zone."""
    made = replace(timer(cron=cron, time_zone="America/New_York"), zone=zone, tzdata_version="2020a", **changes)
    return replace(made, due_time=at(due), sleep_until=at(due))


AS_PHOENIX = zone_from_data("America/New_York", find_zone("America/Phoenix").data)
"""New York with the data of Phoenix: no daylight saving, two hours behind."""


def test_with_new_data_the_current_occurrence_keeps_its_local_time() -> None:
    before = computed_with("0 9 * * *", AS_PHOENIX, "2026-03-03T16:00")
    moved = rescheduled(before, AS_PHOENIX, NEW_YORK, now=NOW)
    assert moved.due_time == moved.sleep_until == at("2026-03-03T14:00")
    assert (moved.tzdata_version, moved.zone) == (tzdata_version(), NEW_YORK)
    assert moved.fence > before.fence
    assert moved.etag == before.etag


def test_a_paused_timer_moves_and_stays_paused() -> None:
    before = replace(computed_with("0 9 * * *", AS_PHOENIX, "2026-03-03T16:00"), paused=True, sleep_until=None)
    moved = rescheduled(before, AS_PHOENIX, NEW_YORK, now=NOW)
    assert (moved.due_time, moved.sleep_until, moved.state) == (at("2026-03-03T14:00"), None, TimerState.PAUSED)


def test_a_faulty_timer_moves_and_stays_faulty() -> None:
    before = replace(computed_with("0 9 * * *", AS_PHOENIX, "2026-03-03T16:00"), sleep_until=None)
    moved = rescheduled(before, AS_PHOENIX, NEW_YORK, now=NOW)
    assert (moved.due_time, moved.sleep_until, moved.state) == (at("2026-03-03T14:00"), None, TimerState.FAULTY)


def test_an_occurrence_in_a_new_gap_is_replaced_by_the_next() -> None:
    # 02:30 of the eighth of March exists in Phoenix, not in New York.
    before = computed_with("30 2 * * *", AS_PHOENIX, "2026-03-08T09:30")
    assert rescheduled(before, AS_PHOENIX, NEW_YORK, now=NOW).due_time == at("2026-03-09T06:30")


def test_the_second_pass_of_an_overlap_stays_the_second() -> None:
    before = computed_with("30 1 * * *", NEW_YORK, "2026-11-01T06:30")
    assert rescheduled(before, NEW_YORK, AS_PHOENIX, now=NOW).due_time == at("2026-11-02T08:30")
    first = computed_with("30 1 * * *", NEW_YORK, "2026-11-01T05:30")
    assert rescheduled(first, NEW_YORK, AS_PHOENIX, now=NOW).due_time == at("2026-11-01T08:30")


def test_a_move_past_repeat_until_finishes_the_timer() -> None:
    before = computed_with("0 9 * * *", NEW_YORK, "2026-03-03T14:00", repeat_until=at("2026-03-03T15:00"))
    moved = rescheduled(before, NEW_YORK, AS_PHOENIX, now=NOW)
    assert (moved.due_time, moved.sleep_until, moved.finish_time) == (None, None, NOW)


@pytest.mark.parametrize("cron", ["@every 1h", "0 9 * * *"])
def test_a_timer_without_a_moved_wall_clock_time_stays(cron: str) -> None:
    old_zone = NEW_YORK if cron == "0 9 * * *" else AS_PHOENIX
    before = computed_with(cron, old_zone, "2026-03-03T14:00")
    assert rescheduled(before, old_zone, NEW_YORK, now=NOW).due_time == before.due_time


def test_a_finished_timer_is_not_moved() -> None:
    finished = replace(timer(delay=timedelta(0)), due_time=None, sleep_until=None, finish_time=NOW)
    assert rescheduled(finished, AS_PHOENIX, NEW_YORK, now=NOW) is finished


def test_an_unreadable_expression_does_not_block_zone_changes() -> None:
    before = replace(computed_with("0 9 * * *", AS_PHOENIX, "2026-03-03T16:00"), cron="61 * * * *")
    assert rescheduled(before, AS_PHOENIX, NEW_YORK, now=NOW).due_time == before.due_time
