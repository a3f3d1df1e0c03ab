"""Applies events of a stream again, to a database that has been restored and lacks what came of them."""

from datetime import datetime

from google.protobuf.message import DecodeError
from nats.aio.client import Client

from postflow.bus.v1 import bus_pb2
from servicekit.bus.replay import read_again
from servicekit.bus.streams import ConsumerSpec
from servicekit.messaging.applier import EventApplier
from servicekit.messaging.routes import Received


class EventsWait(ConnectionError):
    """A transient failure: some events cannot be applied for now."""


async def apply_again(connection: Client, spec: ConsumerSpec, applier: EventApplier, *, since: datetime | None) -> None:
    """Applies what the stream has had since then for this consumer; its inbox filters what the database still has.

    Raises a transient error if an event cannot be applied for now: then all is read once more. What cannot be read was
    parked when it came first.
    """
    async for batch in read_again(connection, spec.stream, spec.filter_subjects, since=since):
        events = [each for message in batch for each in _events(applier, message.subject, message.data)]
        if await applier.apply(events):
            raise EventsWait


def _events(applier: EventApplier, subject: str, payload: bytes) -> list[Received]:
    try:
        envelope = bus_pb2.Envelope.FromString(payload)
    except DecodeError:
        return []
    read = (applier.routes.read(event, subject) for event in envelope.events)
    return [each for each in read if isinstance(each, Received)]
