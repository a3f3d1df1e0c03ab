"""Converts between `google.protobuf.Timestamp` and `datetime`, in microseconds as PostgreSQL stores them.

It is several times cheaper than `ToDatetime` and `FromDatetime`, which counts for every event and command.
"""

from datetime import UTC, datetime, timedelta
from typing import overload

from google.protobuf.timestamp_pb2 import Timestamp

from servicekit.faults import InvalidRequest

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def moment(timestamp: Timestamp) -> datetime:
    """Returns the instant, truncated to microseconds.

    Refuses years outside 1 to 9999. The field rules keep them out of requests, so such a time came in an event.
    """
    try:
        return _EPOCH + timedelta(0, timestamp.seconds, timestamp.nanos // 1000)
    except OverflowError:
        raise InvalidRequest("MALFORMED_EVENT", "a time lies outside the years 1 to 9999") from None


@overload
def timestamp(moment: datetime) -> Timestamp: ...
@overload
def timestamp(moment: datetime | None) -> Timestamp | None: ...
def timestamp(moment: datetime | None) -> Timestamp | None:
    """Returns the message for an instant, or None for None, which leaves a message's field unset."""
    if moment is None:
        return None
    since = moment - _EPOCH
    return Timestamp(seconds=since.days * 86_400 + since.seconds, nanos=since.microseconds * 1000)


def put(field: Timestamp, moment: datetime | None) -> None:
    """Writes an instant into a field of a message; None leaves it unset. Half as dear as a message that is copied."""
    if moment is not None:
        since = moment - _EPOCH
        field.seconds = since.days * 86_400 + since.seconds
        field.nanos = since.microseconds * 1000


def micros(moment: datetime) -> int:
    """Returns the microseconds since 1970, for cursors, which must be exact."""
    return (moment - _EPOCH) // _MICROSECOND


def from_micros(micros: int) -> datetime:
    return _EPOCH + micros * _MICROSECOND
