"""Timer requests: which are valid, and the timers created from them."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from civil.cron import Dst
from schedule_service.domain.timers.occurrence import occurrence_key
from schedule_service.domain.timers.timer import (
    MisfirePolicy,
    Timer,
    TimerState,
)
from schedule_service.domain.timers.timer_request import TimerRequest, created
from servicekit.faults import InvalidField

NOW = datetime(2026, 3, 2, 9, 0, 0, 250_000, tzinfo=UTC)
"""A Monday."""


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
