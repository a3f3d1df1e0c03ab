from datetime import UTC, datetime, timedelta, timezone

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import given
from hypothesis import strategies as st

from servicekit.faults import InvalidRequest
from servicekit.timestamps import from_micros, micros, moment, timestamp

INSTANTS = st.datetimes(timezones=st.just(UTC))


@given(INSTANTS)
def test_an_instant_survives_both_ways(instant: datetime) -> None:
    assert moment(timestamp(instant)) == instant
    assert from_micros(micros(instant)) == instant


@given(INSTANTS)
def test_the_message_is_the_one_that_protobuf_makes(instant: datetime) -> None:
    made = Timestamp()
    made.FromDatetime(instant)
    assert timestamp(instant) == made


@given(st.integers(-62_135_596_800, 253_402_300_799), st.integers(0, 999_999_999))
def test_nanoseconds_are_truncated(seconds: int, nanos: int) -> None:
    expected = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds, microseconds=nanos // 1000)
    assert moment(Timestamp(seconds=seconds, nanos=nanos)) == expected


def test_an_instant_may_be_given_in_any_zone() -> None:
    local = datetime(2026, 3, 2, 9, 0, tzinfo=timezone(timedelta(hours=-8)))
    assert moment(timestamp(local)) == datetime(2026, 3, 2, 17, 0, tzinfo=UTC)


def test_no_instant_leaves_a_field_unset() -> None:
    assert timestamp(None) is None


@pytest.mark.parametrize("seconds", [-(2**63), -62_135_596_801, 253_402_300_800, 2**63 - 1])
def test_an_instant_that_no_datetime_can_hold_is_refused(seconds: int) -> None:
    with pytest.raises(InvalidRequest) as caught:
        moment(Timestamp(seconds=seconds))
    assert caught.value.reason == "MALFORMED_EVENT"
