"""Reads the events that services have announced."""

import nats

from postflow.bus.v1 import bus_pb2
from topology import EVENTS


async def announced(nats_url: str) -> list[bus_pb2.Event]:
    """Returns every event on the stream, in the stream's order."""
    client = await nats.connect(nats_url)
    try:
        stream = client.jetstream()
        last = (await stream.stream_info(EVENTS.name)).state.last_seq
        messages = [await stream.get_msg(EVENTS.name, sequence) for sequence in range(1, last + 1)]
    finally:
        await client.close()
    return [event for message in messages for event in bus_pb2.Envelope.FromString(message.data or b"").events]
