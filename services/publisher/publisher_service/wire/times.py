"""Instants."""

from datetime import UTC, datetime, timedelta

from google.protobuf.timestamp_pb2 import Timestamp

from publisher_service.wire.unreadable import UnreadableMessage

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def moment(message: Timestamp) -> datetime:
    """Raises UnreadableMessage for an instant that no datetime can hold."""
    try:
        return _EPOCH + timedelta(seconds=message.seconds, microseconds=message.nanos // 1000)
    except OverflowError:
        raise UnreadableMessage("there is no such instant") from None


def set_time(message: Timestamp, time: datetime | None) -> None:
    """Sets a field in place, which is cheaper than to copy a message into it; None leaves the field unset."""
    if time is not None:
        since = time - _EPOCH
        message.seconds = since.days * 86_400 + since.seconds
        message.nanos = since.microseconds * 1000
