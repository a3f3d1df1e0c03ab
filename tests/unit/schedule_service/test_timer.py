"""Timers: how they are created, paused and resumed, and moved by new time zone data."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from civil.cron import Dst
from civil.zones import Zone, find_zone, tzdata_version, zone_from_data
from schedule_service.domain.timers.occurrence import occurrence_key
from schedule_service.domain.timers.timer import (
    MisfirePolicy,
    Timer,
    TimerState,
    found,
    paused,
    require_etag,
    rescheduled,
    resumed,
)
from schedule_service.domain.timers.timer_request import TimerRequest, created
from servicekit.faults import Conflict, InvalidField, NotFound, Refused

NOW = datetime(2026, 3, 2, 9, 0, 0, 250_000, tzinfo=UTC)
"""A Monday."""
UTC_ZONE = find_zone("UTC")
NEW_YORK = find_zone("America/New_York")
BERLIN = find_zone("Europe/Berlin")


def timer(**fields: Any) -> Timer:
    return created("acme", "nightly", TimerRequest(topic="drafts.generate", **fields), now=NOW)


def refusal(**fields: Any) -> InvalidField:
    with pytest.raises(InvalidField) as refused:
        timer(**fields)
    return refused.value


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def test_a_timer_fires_once_at_an_instant() -> None:
    made = timer(fire_time=at("2026-03-05T10:00"), payload=b"\0\xff")
    assert made.due_time == made.sleep_until == made.fire_time == at("2026-03-05T10:00")
    assert (made.state, made.cron, made.payload) == (TimerState.ACTIVE, "", b"\0\xff")
    assert made.misfire_policy is MisfirePolicy.FIRE_ONCE
    assert (made.catch_up_interval, made.skip_after) == (timedelta(seconds=1), timedelta(seconds=60))


def test_a_past_time_is_due_at_once() -> None:
    assert timer(fire_time=at("2020-01-01T00:00")).sleep_until == at("2020-01-01T00:00")


def test_a_delay_starts_at_creation_and_is_stored_as_an_instant() -> None:
    assert timer(delay=timedelta(minutes=90)).fire_time == NOW + timedelta(minutes=90)
    assert timer(delay=timedelta(0)).due_time == NOW


def test_a_cron_timer_fires_first_after_its_creation_in_its_zone() -> None:
    made = timer(cron="30 2 * * *", time_zone="America/New_York")
    assert made.due_time == at("2026-03-03T07:30")
    assert (made.fire_time, made.dst_policy, made.zone.name) == (None, Dst.CRON, "America/New_York")
    assert timer(cron="0 9 * * *").due_time == at("2026-03-03T09:00")


def test_an_expression_that_fires_within_five_years_is_accepted() -> None:
    assert timer(cron="@every 43920h").due_time == at("2026-03-02T09:00") + timedelta(hours=43_920)
    assert timer(cron="0 0 29 2 *").due_time == at("2028-02-29T00:00")


def test_the_dst_policy_is_stored() -> None:
    request = TimerRequest(topic="t", cron="30 2 * * *", time_zone="America/New_York", dst_policy=Dst.ONCE)
    made = created("acme", "t", request, now=at("2026-03-07T12:00"))
    assert made.due_time == at("2026-03-08T07:30")
    assert occurrence_key(made.cron, made.zone, made.dst_policy, made.due_time) == "2026-03-08T02:30"


@pytest.mark.parametrize("prefix", ["CRON_TZ=", "TZ="])
def test_a_zone_in_the_expression_becomes_the_zone_of_the_timer(prefix: str) -> None:
    made = timer(cron=f"{prefix}Europe/Berlin  0 9 * * *")
    assert (made.cron, made.zone.name) == ("0 9 * * *", "Europe/Berlin")
    assert made.due_time == at("2026-03-03T08:00")


@pytest.mark.parametrize(
    "fields", [{"cron": "@daily", "time_zone": "localtime"}, {"cron": "CRON_TZ=localtime @daily"}], ids=str
)
def test_an_unknown_zone_has_one_reason_in_either_field(fields: dict[str, Any]) -> None:
    assert refusal(**fields).reason == "UNKNOWN_TIME_ZONE"


def test_a_zone_may_be_given_only_once() -> None:
    assert refusal(cron="CRON_TZ=Europe/Berlin 0 9 * * *", time_zone="Europe/Berlin").violations[0].field == (
        "timer.time_zone"
    )


@pytest.mark.parametrize(
    ("fields", "field", "said"),
    [
        ({}, "timer.schedule", "one of"),
        ({"cron": ""}, "timer.cron", "5 fields"),
        ({"cron": "* * * *"}, "timer.cron", "5 fields"),
        ({"cron": "0 0 * * * *"}, "timer.cron", "5 fields"),
        ({"cron": "61 * * * *"}, "timer.cron", "minute"),
        ({"cron": "0 0 * * 7"}, "timer.cron", "day of week"),
        ({"cron": "@fortnightly"}, "timer.cron", "@daily"),
        ({"cron": "@every 1x"}, "timer.cron", "duration"),
        ({"cron": "CRON_TZ=Europe/Atlantis 0 9 * * *"}, "timer.cron", "Europe/Atlantis"),
        ({"cron": "CRON_TZ=UTC"}, "timer.cron", ""),
        ({"cron": "0 0 30 2 *"}, "timer.cron", "does not fire within five years"),
        ({"cron": "@every 43921h"}, "timer.cron", "does not fire within five years"),
        ({"cron": "@every 2562047h"}, "timer.cron", "does not fire within five years"),
        ({"cron": "@daily", "time_zone": "Europe/Atlantis"}, "timer.time_zone", "Atlantis"),
        ({"cron": "@daily", "time_zone": "localtime"}, "timer.time_zone", "localtime"),
        ({"cron": "@daily", "time_zone": "Factory"}, "timer.time_zone", "Factory"),
        ({"cron": "@daily", "repeat_until": NOW}, "timer.repeat_until", "2026-03-03T00:00:00+00:00"),
        ({"cron": "@daily", "repeat_until": at("2026-03-02T23:59")}, "timer.repeat_until", "first firing"),
        ({"fire_time": NOW, "time_zone": "UTC"}, "timer.time_zone", "`cron`"),
        ({"fire_time": NOW, "dst_policy": Dst.ONCE}, "timer.dst_policy", "`cron`"),
        ({"delay": timedelta(1), "repeat_until": NOW}, "timer.repeat_until", "`cron`"),
        ({"fire_time": at("0001-01-01T00:00")}, "timer.fire_time", "years"),
        ({"fire_time": at("9999-01-01T00:00")}, "timer.fire_time", "years"),
        ({"fire_time": NOW, "catch_up_interval": timedelta(1)}, "timer.catch_up_interval", "FIRE_ALL"),
        (
            {"fire_time": NOW, "catch_up_interval": timedelta(1), "misfire_policy": MisfirePolicy.SKIP},
            "timer.catch_up_interval",
            "FIRE_ALL",
        ),
        ({"fire_time": NOW, "skip_after": timedelta(1)}, "timer.skip_after", "SKIP"),
        (
            {"cron": "@daily", "skip_after": timedelta(1), "misfire_policy": MisfirePolicy.FIRE_ALL},
            "timer.skip_after",
            "SKIP",
        ),
    ],
)
def test_an_invalid_request_is_refused_by_field(fields: dict[str, Any], field: str, said: str) -> None:
    fault = refusal(**fields)
    assert [violation.field for violation in fault.violations] == [field]
    assert said in fault.message


def test_repeat_until_is_inclusive() -> None:
    first = at("2026-03-03T00:00")
    assert timer(cron="@daily", repeat_until=first).due_time == first


def test_only_a_one_time_firing_is_traced_to_its_creation() -> None:
    once = created("acme", "t", TimerRequest(topic="t", delay=timedelta(0)), now=NOW, traceparent="00-ab")
    again = created("acme", "t", TimerRequest(topic="t", cron="@daily"), now=NOW, traceparent="00-ab")
    assert (once.traceparent, again.traceparent) == ("00-ab", "")


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


@pytest.mark.parametrize(
    ("cron", "zone", "due", "key"),
    [
        ("", UTC_ZONE, "2026-03-02T09:00:00.250000", "2026-03-02T09:00:00.250000Z"),
        ("", UTC_ZONE, "2026-03-02T09:00:00", "2026-03-02T09:00:00Z"),
        ("30 2 * * *", NEW_YORK, "2026-03-03T07:30", "2026-03-03T02:30"),
        ("30 1 * * *", NEW_YORK, "2026-11-01T05:30", "2026-11-01T01:30"),
        ("30 1 * * *", NEW_YORK, "2026-11-01T06:30", "2026-11-01T01:30/2"),
        ("@every 90s", BERLIN, "2026-03-02T09:01:30", "2026-03-02T09:01:30Z"),
        # Not an instant of the expression: the data of its zone changed, and the old data was not recorded.
        ("30 2 * * *", NEW_YORK, "2026-03-03T06:30", "2026-03-03T06:30:00Z"),
    ],
)
def test_an_occurrence_is_named_by_its_nominal_local_time(cron: str, zone: Zone, due: str, key: str) -> None:
    assert occurrence_key(cron, zone, Dst.CRON, at(due)) == key


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
