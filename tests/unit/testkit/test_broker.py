"""The stream in memory knows messages by their ids, as NATS does: see `test_publisher.py` of `servicekit_bus`."""

from servicekit.bus.publisher import Outgoing, Stored
from testkit.broker import MemoryBroker


async def test_a_message_is_stored_once_if_it_has_an_id() -> None:
    broker = MemoryBroker()
    named, nameless = Outgoing("a", b"", "m1"), Outgoing("a", b"")
    assert await broker.publish([named, named]) == [Stored(1), Stored(1, duplicate=True)]
    assert await broker.publish([nameless, nameless]) == [Stored(2), Stored(3)]
