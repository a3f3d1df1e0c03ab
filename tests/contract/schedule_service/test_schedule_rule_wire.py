"""Schedule rules survive a round trip, and stored events still decode."""

from dataclasses import fields
from datetime import UTC, date, datetime, time, timedelta

import pytest
from google.protobuf.field_mask_pb2 import FieldMask
from hypothesis import given
from hypothesis import strategies as st

from channels import KNOWN
from civil.weekly import WeeklySlot
from civil.zones import find_zone, zone_names
from postflow.schedule.v1 import schedule_rule_pb2
from postflow.schedule.v1.schedule_events_pb2 import ScheduleRuleChanged
from schedule_service.domain.calendars.rule_targets import LONGEST_HORIZON, RuleTarget, Span
from schedule_service.domain.calendars.schedule_rule import AssetPolicy, ScheduleRule, Terms, changed, created, deleted
from schedule_service.wire import schedule_rules as wire
from servicekit.faults import InvalidField
from servicekit.timestamps import moment

NOW = datetime(2026, 3, 2, 9, 0, 0, 123456, tzinfo=UTC)

slots = st.builds(WeeklySlot, day=st.integers(0, 6), hour=st.integers(0, 23), minute=st.integers(0, 59))
weeks = st.sets(slots, min_size=1, max_size=20).map(sorted).map(tuple)
clocks = st.times().map(lambda clock: clock.replace(second=0, microsecond=0))
starts = st.dates(date(1970, 1, 1), date(2100, 1, 1))
days = st.dates(date(2100, 1, 1), date(9999, 12, 31))


@st.composite
def all_terms(draw: st.DrawFn) -> Terms:
    recurs = draw(
        st.fixed_dictionaries({"weekly_slots": weeks, "start_date": st.none() | starts})
        | st.fixed_dictionaries({"rrule": st.just("FREQ=DAILY;INTERVAL=2"), "start_time": clocks, "start_date": starts})
        | st.fixed_dictionaries({"rrule": st.just("FREQ=DAILY;BYHOUR=9;BYMINUTE=0"), "start_date": starts})
    )
    return Terms(
        **({"weekly_slots": (), "rrule": "", "start_time": None} | recurs),
        name=draw(st.text(max_size=20)),
        time_zone=find_zone(draw(st.sampled_from(sorted(zone_names())))),
        end_date=draw(st.none() | days),
        excluded_dates=tuple(sorted(draw(st.sets(days, max_size=5)))),
        channels=tuple(draw(st.lists(st.sampled_from(KNOWN), unique=True, min_size=1))),
        category_id=draw(st.sampled_from(["", "memes"])),
        asset_policy=draw(st.sampled_from(AssetPolicy)),
        enabled=draw(st.booleans()),
    )


# A rule by RRULE and its deletion, as the first release that had rules encoded them.
CHANGED = bytes.fromhex(
    "0a0461636d6512d6010a02723112056272616e641a0e4669727374205475657364617973220d4575726f70652f4265726c696e3216465245"
    "513d4d4f4e54484c593b42594441593d3154553a040809101e420a323032362d30332d30314a0a323032362d31322d3331520a323032362d"
    "30342d3037520a323032362d30352d30355a0e696e7374616772616d5f666565645a0866616365626f6f6b62056d656d6573680270007a10"
    "313032366463613261653035623464308001018a010b0890a395cd06108094ef3a92010b0890a395cd06108094ef3a9a01053230323666"
)
DELETED = bytes.fromhex(
    "0a0461636d6512d6010a02723112056272616e641a0e4669727374205475657364617973220d4575726f70652f4265726c696e3216465245"
    "513d4d4f4e54484c593b42594441593d3154553a040809101e420a323032362d30332d30314a0a323032362d31322d3331520a323032362d"
    "30342d3037520a323032362d30352d30355a0e696e7374616772616d5f666565645a0866616365626f6f6b62056d656d6573680270007a10"
    "633135396630303632656566653636318001028a010b0890a395cd06108094ef3a92010b08a0bf95cd06108094ef3a9a0105323032366618"
    "01"
)


def rule(terms: Terms) -> ScheduleRule:
    return created("acme", "r1", "brand", terms, now=NOW)


@given(all_terms())
def test_a_rule_survives_a_round_trip(terms: Terms) -> None:
    made = rule(terms)
    message = wire.shown(made)
    assert wire.terms(message) == made.terms == terms
    assert (message.id, message.brand_id, message.etag, message.version) == ("r1", "brand", made.etag, 1)
    assert moment(message.create_time) == moment(message.update_time) == NOW
    announced = wire.schedule_rule_changed(made)
    decoded = ScheduleRuleChanged.FromString(announced.message.SerializeToString())
    assert (decoded.organization_id, decoded.schedule_rule, decoded.deleted) == ("acme", message, False)


@given(all_terms(), all_terms())
def test_a_mask_of_all_fields_turns_one_rule_into_another(terms: Terms, others: Terms) -> None:
    everything = FieldMask(paths=[field.name for field in fields(Terms)])
    changes = wire.changes(wire.shown(rule(others)), everything)
    assert changed(rule(terms), changes, now=NOW).terms == others


@given(all_terms(), all_terms(), st.sampled_from([field.name for field in fields(Terms)]))
def test_a_mask_of_one_field_reads_that_field_alone(terms: Terms, others: Terms, name: str) -> None:
    message = schedule_rule_pb2.ScheduleRule()
    given_one = wire.shown(rule(others))
    if given_one.DESCRIPTOR.fields_by_name[name].is_repeated or name == "start_time":
        message.MergeFrom(given_one)
    else:
        setattr(message, name, getattr(given_one, name))
    assert wire.changes(message, FieldMask(paths=[name])) == {name: getattr(others, name)}


def test_every_term_can_be_changed_and_nothing_else() -> None:
    others = set(schedule_rule_pb2.ScheduleRule.DESCRIPTOR.fields_by_name) - {field.name for field in fields(Terms)}
    assert others == {"id", "brand_id", "etag", "version", "create_time", "update_time", "tzdata_version"}
    for name in others:
        with pytest.raises(InvalidField) as refused:
            wire.changes(schedule_rule_pb2.ScheduleRule(), FieldMask(paths=["name", name]))
        assert refused.value.metadata == {"field": "update_mask"}


@given(
    st.datetimes(datetime(3, 1, 1), datetime(9996, 12, 31), timezones=st.just(UTC)),
    st.timedeltas(timedelta(), LONGEST_HORIZON),
    st.text("abc/-:019", max_size=80),
)
def test_a_page_begins_where_the_last_one_ended(start: datetime, reach: timedelta, key: str) -> None:
    span = Span(start=start, end=start + reach, behind=key)
    assert wire.rest(wire.cursor(span)) == span


def test_no_token_reaches_further_than_a_listing_does() -> None:
    start, key, _ = wire.cursor(Span(start=NOW, end=NOW))
    span = wire.rest((start, key, 10**17))
    assert span == Span(start=NOW, end=NOW + LONGEST_HORIZON)


def test_a_target_shows_its_wall_clock_time_and_its_rule() -> None:
    made = rule(STORED)
    instant, summer = datetime(2026, 3, 29, 1, 30, tzinfo=UTC), timedelta(hours=2)
    message = wire.target(RuleTarget(instant, "r1/2026-03-29/02:30", summer, timedelta(hours=1), made))
    assert (message.local_date, message.local_time, message.utc_offset_seconds) == ("2026-03-29", "03:30", 7200)
    assert (message.shifted, moment(message.time), message.key) == (True, instant, "r1/2026-03-29/02:30")
    assert (message.schedule_rule_id, message.schedule_rule_version) == ("r1", 1)
    assert (message.time_zone, list(message.channels)) == ("Europe/Berlin", ["instagram_feed", "facebook"])
    assert (message.category_id, message.asset_policy) == ("memes", schedule_rule_pb2.ASSET_POLICY_REQUIRED)


STORED = Terms(
    name="First Tuesdays",
    time_zone=find_zone("Europe/Berlin"),
    weekly_slots=(),
    rrule="FREQ=MONTHLY;BYDAY=1TU",
    start_time=time(9, 30),
    start_date=date(2026, 3, 1),
    end_date=date(2026, 12, 31),
    excluded_dates=(date(2026, 4, 7), date(2026, 5, 5)),
    channels=("instagram_feed", "facebook"),
    category_id="memes",
    asset_policy=AssetPolicy.REQUIRED,
    enabled=False,
)


def test_a_stored_event_still_decodes() -> None:
    event = ScheduleRuleChanged.FromString(CHANGED)
    assert (event.organization_id, event.schedule_rule.id, event.schedule_rule.version) == ("acme", "r1", 1)
    assert (event.schedule_rule.brand_id, event.schedule_rule.tzdata_version, event.deleted) == (
        "brand",
        "2026f",
        False,
    )
    assert wire.terms(event.schedule_rule) == STORED
    assert moment(event.schedule_rule.create_time) == moment(event.schedule_rule.update_time) == NOW
    gone = ScheduleRuleChanged.FromString(DELETED)
    assert (gone.deleted, gone.schedule_rule.version, wire.terms(gone.schedule_rule)) == (True, 2, STORED)
    assert moment(gone.schedule_rule.update_time) == NOW + timedelta(hours=1)
    assert deleted(rule(STORED), now=NOW + timedelta(hours=1)).version == 2
