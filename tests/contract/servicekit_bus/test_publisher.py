import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest
from nats.aio.client import Client

from devstack.servers.nats import EmbeddedNats
from servicekit.bus.connection import ConnectionGone, connect
from servicekit.bus.publisher import Outgoing, PipelinedPublisher, Stored
from servicekit.bus.streams import StreamSpec, ensure_stream
from testkit.eventually import eventually

STREAM = StreamSpec(name="PIPE", subjects=("pipe.>",), work_queue=False, max_age=timedelta(hours=1))


def _messages(count: int, *, start: int = 0, size: int = 10, subject: str = "pipe.a") -> list[Outgoing]:
    return [Outgoing(subject, b"x" * size, f"id-{number}") for number in range(start, start + count)]


async def _stored(connection: Client) -> int:
    return (await connection.jetstream().stream_info(STREAM.name)).state.messages


@pytest.fixture
async def stream(own_connection: Client) -> Client:
    await ensure_stream(own_connection.jetstream(), STREAM)
    return own_connection


async def test_each_message_is_answered_with_its_sequence(stream: Client) -> None:
    publisher = PipelinedPublisher(stream)
    answers = await publisher.publish(_messages(3000))
    assert answers == [Stored(number) for number in range(1, 3001)]
    assert not publisher._waiting


async def test_publishing_nothing_returns_at_once(stream: Client) -> None:
    assert await PipelinedPublisher(stream).publish([]) == []


async def test_a_duplicate_message_is_recognised(stream: Client) -> None:
    publisher = PipelinedPublisher(stream)
    await publisher.publish(_messages(2))
    assert await publisher.publish(_messages(3)) == [Stored(1, duplicate=True), Stored(2, duplicate=True), Stored(3)]


async def test_a_message_without_an_id_is_stored_each_time(stream: Client) -> None:
    publisher = PipelinedPublisher(stream)
    message = Outgoing("pipe.a", b"x")
    assert await publisher.publish([message, message]) == [Stored(1), Stored(2)]
    assert await publisher.publish([message]) == [Stored(3)]
    assert (await stream.jetstream().get_msg(STREAM.name, 1)).headers is None


async def test_concurrent_callers_get_their_own_answers(stream: Client) -> None:
    publisher = PipelinedPublisher(stream)
    async with asyncio.TaskGroup() as group:
        calls = [group.create_task(publisher.publish(_messages(50, start=100 * turn))) for turn in range(10)]
    sequences = [answer.sequence for call in calls for answer in call.result() if answer]
    assert sorted(sequences) == list(range(1, 501))
    for call in calls:
        mine = [answer.sequence for answer in call.result() if answer]
        assert mine == sorted(mine)


async def test_a_missing_stream_is_reported_at_once(own_connection: Client) -> None:
    async with asyncio.timeout(15):
        answers = await PipelinedPublisher(own_connection, timeout=30).publish(_messages(10))
    assert answers == [None] * 10
    assert (answers.refusals, answers.full) == ({"there is no such stream": 10}, 0)


async def test_an_invalid_message_is_refused_and_the_others_published(stream: Client) -> None:
    messages = [*_messages(2), Outgoing("pipe.b", b"x" * 2_000_000, "big"), Outgoing("pipe b", b"", "spaced")]
    messages += _messages(2, start=2)
    answers = await PipelinedPublisher(stream).publish(messages)
    assert answers == [Stored(1), Stored(2), None, None, Stored(3), Stored(4)]


@pytest.mark.parametrize(("max_bytes", "max_messages"), [(5_000, -1), (-1, 4)])
async def test_a_full_stream_refuses_and_keeps_its_messages(
    own_connection: Client, max_bytes: int, max_messages: int
) -> None:
    narrow = StreamSpec(name="NARROW", subjects=("narrow.>",), work_queue=True, max_age=timedelta(hours=1))
    await ensure_stream(own_connection.jetstream(), replace(narrow, max_bytes=max_bytes, max_messages=max_messages))
    answers = await PipelinedPublisher(own_connection).publish(_messages(20, size=1000, subject="narrow.a"))
    kept = [answer for answer in answers if answer]
    assert 0 < len(kept) < 20
    assert answers == [*kept, *[None] * (20 - len(kept))]
    assert (answers.full, answers.refusals.total()) == (20 - len(kept), 20 - len(kept))


async def test_large_messages_go_in_smaller_windows(stream: Client) -> None:
    answers = await PipelinedPublisher(stream).publish(_messages(40, size=500_000))
    assert answers == [Stored(number) for number in range(1, 41)]


async def test_an_unreachable_server_is_reported_after_the_timeout(stream: Client, fresh_nats: EmbeddedNats) -> None:
    await fresh_nats.kill()
    publisher = PipelinedPublisher(stream, timeout=0.3)
    assert await publisher.publish(_messages(2500)) == [None] * 2500
    assert not publisher._waiting


async def test_messages_in_flight_arrive_after_a_restart_of_the_server(
    stream: Client, fresh_nats: EmbeddedNats
) -> None:
    publisher = PipelinedPublisher(stream, timeout=30)
    async with asyncio.TaskGroup() as group:
        call = group.create_task(publisher.publish(_messages(20_000)))
        await eventually(lambda: _some_stored(stream))
        await fresh_nats.kill()
        await fresh_nats.start()
    sequences = [answer.sequence for answer in call.result() if answer]
    assert len(set(sequences)) == 20_000
    assert await _stored(stream) == 20_000, "none twice"


async def _some_stored(connection: Client) -> bool:
    return await _stored(connection) > 0


async def test_a_publisher_works_on_after_a_reconnect(stream: Client, fresh_nats: EmbeddedNats) -> None:
    publisher = PipelinedPublisher(stream, timeout=20)
    assert await publisher.publish(_messages(1)) == [Stored(1)]
    for turn in range(1, 3):
        await fresh_nats.restart()
        assert await publisher.publish(_messages(1, start=turn)) == [Stored(turn + 1)]


async def test_a_missing_connection_is_reported_after_the_timeout() -> None:
    assert await PipelinedPublisher(Client(), timeout=0.1).publish(_messages(2)) == [None, None]


async def test_a_connection_closed_for_good_is_an_error(fresh_nats: EmbeddedNats) -> None:
    client = Client()
    await connect(client, fresh_nats.url, name="test")
    publisher = PipelinedPublisher(client)
    await client.close()
    with pytest.raises(ConnectionGone):
        await publisher.publish(_messages(1))
