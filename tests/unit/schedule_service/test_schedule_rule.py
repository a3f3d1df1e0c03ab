"""Schedule rules: which terms are valid, and how they change."""

from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import pytest

from civil.weekly import WeeklySlot
from civil.zones import find_zone, tzdata_version
from schedule_service.domain.calendars.schedule_rule import (
    MOST_RULES,
    AssetPolicy,
    ScheduleRule,
    Terms,
    changed,
    checked,
    created,
    deleted,
    found,
    in_order,
    known_channels,
    require_etag,
    require_room,
)
from servicekit.faults import Conflict, InvalidField, LimitReached, NotFound

NOW = datetime(2026, 3, 1, 23, 30, tzinfo=UTC)
"""An instant at which it is already the second of March in Berlin."""
LATER = NOW + timedelta(days=40)
MONDAY = WeeklySlot(day=1, hour=9, minute=0)
WEEKLY = Terms(
    name="Monday motivation",
    time_zone=find_zone("Europe/Berlin"),
    weekly_slots=(MONDAY,),
    rrule="",
    start_time=None,
    start_date=None,
    end_date=None,
    excluded_dates=(),
    channels=("facebook",),
    category_id="",
    asset_policy=AssetPolicy.OPTIONAL,
    enabled=True,
)
BY_RRULE = replace(
    WEEKLY, weekly_slots=(), rrule="FREQ=MONTHLY;BYDAY=1TU", start_time=time(9, 30), start_date=date(2026, 3, 2)
)
RULE = created("acme", "r1", "brand", WEEKLY, now=NOW)
RRULE = created("acme", "r2", "brand", BY_RRULE, now=NOW)


def refusal(terms: Terms) -> tuple[str, str]:
    """Returns the refused field and the reason."""
    with pytest.raises(InvalidField) as refused:
        checked(terms, made_on=date(2026, 3, 2))
    (violation,) = refused.value.violations
    return violation.field, violation.description


def test_a_new_rule_has_the_terms_that_were_given() -> None:
    assert (RULE.version, RULE.create_time, RULE.update_time, RULE.delete_time) == (1, NOW, NOW, None)
    assert (RULE.terms, RULE.tzdata_version) == (WEEKLY, tzdata_version())


def test_a_rule_has_either_weekly_slots_or_an_rrule() -> None:
    assert refusal(replace(WEEKLY, weekly_slots=()))[0] == "schedule_rule.weekly_slots"
    assert refusal(replace(BY_RRULE, weekly_slots=(MONDAY,)))[0] == "schedule_rule.rrule"


def test_a_rule_needs_channels() -> None:
    assert refusal(replace(WEEKLY, channels=()))[0] == "schedule_rule.channels"


def test_weekly_slots_name_their_own_times() -> None:
    assert refusal(replace(WEEKLY, start_time=time(9)))[0] == "schedule_rule.start_time"


def test_an_end_before_the_start_is_refused() -> None:
    dates: dict[str, Any] = {"start_date": date(2026, 3, 2), "end_date": date(2026, 3, 1)}
    for terms in (WEEKLY, BY_RRULE):
        assert refusal(replace(terms, **dates)) == ("schedule_rule.end_date", "is before the start_date, 2026-03-02")
        one_day = replace(terms, start_date=date(2026, 3, 2), end_date=date(2026, 3, 2))
        assert checked(one_day, made_on=date(2026, 3, 2)) == one_day


def test_an_end_before_the_creation_of_an_rrule_is_refused() -> None:
    assert refusal(replace(BY_RRULE, start_date=None, end_date=date(2026, 3, 1)))[0] == "schedule_rule.end_date"
    assert checked(replace(WEEKLY, end_date=date(2026, 3, 1)), made_on=date(2026, 3, 2)).end_date == date(2026, 3, 1)


def test_an_rrule_starts_on_the_local_date_of_its_creation() -> None:
    made = created("acme", "r2", "brand", replace(BY_RRULE, start_date=None), now=NOW)
    assert made.terms.start_date == date(2026, 3, 2)
    assert RULE.terms.start_date is None


def test_an_rrule_is_stored_in_canonical_form() -> None:
    spelt = replace(BY_RRULE, rrule="rrule:BYDAY=1TU;freq=monthly;interval=1")
    assert checked(spelt, made_on=date(2026, 3, 2)) == BY_RRULE


@pytest.mark.parametrize(
    ("rrule", "word"),
    [
        ("sometimes", "SOMETIMES"),
        ("FREQ=MINUTELY", "MINUTELY"),
        ("FREQ=DAILY;COUNT=0", "COUNT"),
        ("FREQ=DAILY;COUNT=2;UNTIL=20270101", "UNTIL"),
        ("FREQ=DAILY;UNTIL=20270101T000000Z", "local time"),
        ("DTSTART:20260101T000000\nRRULE:FREQ=DAILY", "DTSTART"),
        ("FREQ=DAILY;INTERVAL=-1", "INTERVAL"),
        ("FREQ=MONTHLY;BYMONTHDAY=32", "BYMONTHDAY"),
        ("FREQ=WEEKLY;BYDAY=XX", "BYDAY"),
    ],
)
def test_an_invalid_rrule_is_refused_with_the_reason(rrule: str, word: str) -> None:
    field, description = refusal(replace(BY_RRULE, rrule=rrule))
    assert field == "schedule_rule.rrule"
    assert word in description


@pytest.mark.parametrize(
    "rrule",
    [
        "FREQ=MONTHLY;BYDAY=1TU;BYMONTHDAY=30",
        "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29;BYDAY=MO",  # in 2044
        "FREQ=HOURLY;INTERVAL=2;BYHOUR=8",  # counted from nine o'clock
        "FREQ=DAILY;UNTIL=20260301",
        "FREQ=YEARLY;INTERVAL=10000;BYMONTH=1",
    ],
)
def test_an_rrule_that_does_not_occur_within_five_years_is_refused(rrule: str) -> None:
    field, description = refusal(replace(BY_RRULE, rrule=rrule))
    assert (field, description) == ("schedule_rule.rrule", "does not occur within the five years after its start")


@pytest.mark.parametrize("rrule", ["FREQ=DAILY", "FREQ=DAILY;BYHOUR=9", "FREQ=HOURLY;BYMINUTE=30", "FREQ=HOURLY"])
def test_an_rrule_that_leaves_the_time_open_needs_a_start_time(rrule: str) -> None:
    open_ended = replace(BY_RRULE, rrule=rrule, start_time=None)
    assert refusal(open_ended)[0] == "schedule_rule.start_time"
    assert checked(replace(open_ended, start_time=time(9)), made_on=date(2026, 3, 2)).rrule == rrule


@pytest.mark.parametrize("rrule", ["FREQ=DAILY;BYHOUR=9;BYMINUTE=0", "FREQ=HOURLY;INTERVAL=5;BYHOUR=9;BYMINUTE=0,30"])
def test_an_rrule_that_names_hour_and_minute_needs_none(rrule: str) -> None:
    terms = replace(BY_RRULE, rrule=rrule, start_time=None)
    assert checked(terms, made_on=date(2026, 3, 2)) == terms


def test_channels_are_canonical_unique_and_in_the_given_order() -> None:
    assert known_channels(["linkedin", " Instagram", "facebook", "instagram_feed"], "channels") == (
        "linkedin_profile",
        "instagram_feed",
        "facebook",
    )


def test_an_unknown_channel_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidField) as refused:
        known_channels(["facebook", "fax"], "channels")
    assert (refused.value.reason, refused.value.metadata) == ("UNKNOWN_CHANNEL", {"field": "channels[1]"})
    assert "instagram_feed" in refused.value.message


def test_excluded_dates_are_sorted_and_unique() -> None:
    dates = [date(2026, 12, 25), date(2026, 1, 1), date(2026, 12, 25)]
    assert in_order(dates) == (date(2026, 1, 1), date(2026, 12, 25))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("name", "Other"),
        ("time_zone", find_zone("Europe/Paris")),
        ("weekly_slots", (MONDAY, replace(MONDAY, day=2))),
        ("start_date", date(2026, 1, 1)),
        ("end_date", date(2027, 1, 1)),
        ("excluded_dates", (date(2026, 12, 25),)),
        ("channels", ("instagram_feed",)),
        ("category_id", "memes"),
        ("asset_policy", AssetPolicy.REQUIRED),
        ("enabled", False),
    ],
)
def test_every_change_makes_a_new_version_with_another_etag(name: str, value: Any) -> None:
    after = changed(RULE, {name: value}, now=LATER)
    assert after.terms == replace(WEEKLY, **{name: value})
    assert (after.version, after.create_time, after.update_time) == (2, NOW, LATER)
    assert after.etag != RULE.etag


def test_an_update_without_a_change_returns_the_same_rule() -> None:
    assert changed(RULE, {"name": RULE.terms.name, "enabled": True}, now=LATER) is RULE
    assert changed(RRULE, {"rrule": "BYDAY=1TU;FREQ=MONTHLY"}, now=LATER) is RRULE


def test_a_rule_changes_to_the_other_kind_of_recurrence() -> None:
    to_rrule = {"weekly_slots": (), "rrule": "FREQ=MONTHLY;BYMONTHDAY=-1", "start_time": time(18)}
    after = changed(RULE, to_rrule, now=LATER)
    # The date of the creation, not of the change.
    assert (after.terms.weekly_slots, after.terms.start_date) == ((), date(2026, 3, 2))
    back = changed(after, {"weekly_slots": (MONDAY,), "rrule": ""}, now=LATER)
    assert (back.terms.weekly_slots, back.terms.rrule, back.terms.start_time) == ((MONDAY,), "", None)


def test_adding_the_other_kind_of_recurrence_is_refused() -> None:
    cases: list[tuple[ScheduleRule, dict[str, Any], str]] = [
        (RULE, {"rrule": "FREQ=DAILY", "start_time": time(9)}, "schedule_rule.rrule"),
        (RULE, {"weekly_slots": ()}, "schedule_rule.weekly_slots"),
        (RRULE, {"weekly_slots": (MONDAY,)}, "schedule_rule.rrule"),
        (RRULE, {"rrule": ""}, "schedule_rule.weekly_slots"),
        (RULE, {"start_time": time(9)}, "schedule_rule.start_time"),
        (RRULE, {"start_time": None}, "schedule_rule.start_time"),
    ]
    for rule, changes, field in cases:
        with pytest.raises(InvalidField) as refused:
            changed(rule, changes, now=LATER)
        assert refused.value.metadata == {"field": field}


def test_an_rrule_without_a_start_starts_when_the_rule_was_created() -> None:
    moved = changed(RRULE, {"start_date": date(2026, 6, 1)}, now=LATER)
    reset = changed(moved, {"start_date": None, "time_zone": find_zone("America/New_York")}, now=LATER)
    assert reset.terms.start_date == date(2026, 3, 1)


def test_a_deletion_is_a_new_version() -> None:
    gone = deleted(RULE, now=LATER)
    assert (gone.version, gone.update_time, gone.delete_time, gone.terms) == (2, LATER, LATER, RULE.terms)


def test_only_a_stale_etag_is_a_conflict() -> None:
    require_etag(RULE, "")
    require_etag(RULE, RULE.etag)
    with pytest.raises(Conflict) as refused:
        require_etag(RULE, RRULE.etag)
    assert refused.value.reason == "ETAG_MISMATCH"


def test_a_missing_rule_is_not_found() -> None:
    assert found(RULE, "r1") is RULE
    with pytest.raises(NotFound) as refused:
        found(None, "r1")
    assert (refused.value.reason, refused.value.metadata) == ("SCHEDULE_RULE_NOT_FOUND", {"schedule_rule_id": "r1"})


def test_a_brand_has_a_limit_of_rules() -> None:
    require_room("brand", MOST_RULES)
    with pytest.raises(LimitReached) as refused:
        require_room("brand", MOST_RULES + 1)
    assert (refused.value.reason, refused.value.metadata) == ("RULES_PER_BRAND", {"brand_id": "brand", "limit": "500"})
