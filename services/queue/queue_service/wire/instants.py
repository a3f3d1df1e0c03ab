"""Timestamps and page cursors <-> instants."""

from datetime import UTC, datetime, timedelta

from google.protobuf.timestamp_pb2 import Timestamp

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


def moment(timestamp: Timestamp) -> datetime:
    # Several times cheaper than ToDatetime(), and PostgreSQL keeps microseconds, too.
    return EPOCH + timedelta(seconds=timestamp.seconds, microseconds=timestamp.nanos // 1000)


def timestamp(moment: datetime | None) -> Timestamp | None:
    if moment is None:
        return None
    seconds, micros = divmod((moment - EPOCH) // MICROSECOND, 1_000_000)
    return Timestamp(seconds=seconds, nanos=micros * 1000)
