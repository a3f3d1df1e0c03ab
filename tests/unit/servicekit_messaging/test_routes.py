from collections.abc import Sequence
from datetime import UTC, datetime
from typing import cast

import pytest
from google.protobuf.message import Message
from google.protobuf.wrappers_pb2 import Int32Value, StringValue

from postflow.bus.v1 import bus_pb2
from servicekit.messaging.routes import Received, Route, Routes, envelope_route, flat_route, route
from servicekit.pg.database import Transaction

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
TX = cast("Transaction", object())  # no use case here uses it


class _UseCase:
    def __init__(self) -> None:
        self.given: list[str] = []

    async def __call__(self, tx: Transaction, items: Sequence[str], now: datetime) -> None:
        assert (tx, now) == (TX, NOW)
        self.given.extend(items)


async def _apply(made: Route, *messages: Message) -> None:
    received = [
        Received.of(bus_pb2.Event(id=f"e{n}", organization_id=f"o{n}"), each) for n, each in enumerate(messages)
    ]
    await made.apply(TX, received, NOW)


async def test_each_message_is_decoded_for_the_use_case() -> None:
    use_case = _UseCase()
    await _apply(route(StringValue, lambda said: said.value, use_case), StringValue(value="a"), StringValue(value="b"))
    assert use_case.given == ["a", "b"]


async def test_a_message_of_several_values_is_flattened() -> None:
    use_case = _UseCase()
    await _apply(flat_route(StringValue, lambda said: said.value.split(), use_case), StringValue(value="a b"))
    assert use_case.given == ["a", "b"]


async def test_an_envelope_route_gets_the_event() -> None:
    use_case = _UseCase()
    made = envelope_route(StringValue, lambda event, said: f"{event.organization_id} {said.value}", use_case)
    await _apply(made, StringValue(value="a"), StringValue(value="b"))
    assert use_case.given == ["o0 a", "o1 b"]


async def test_a_misrouted_message_is_not_skipped() -> None:
    use_case = _UseCase()
    with pytest.raises(AssertionError):
        await _apply(route(StringValue, lambda said: said.value, use_case), Int32Value(value=1))
    assert use_case.given == []


def test_a_message_that_nobody_wants_is_passed_over_like_an_unknown_one() -> None:
    made = Routes([route(StringValue, lambda said: said.value, _UseCase(), wanted=lambda said: said.value == "a")])

    def read(message: Message) -> object:
        name = message.DESCRIPTOR.full_name
        payload = message.SerializeToString()
        return made.read(bus_pb2.Event(id="e", organization_id="o", type=name, payload=payload), "events.x")

    assert isinstance(read(StringValue(value="a")), Received)
    assert read(StringValue(value="b")) is None
    assert read(Int32Value(value=1)) is None
    assert made.follows(StringValue.DESCRIPTOR.full_name)
    assert not made.follows(Int32Value.DESCRIPTOR.full_name)
