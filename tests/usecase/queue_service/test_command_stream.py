"""The stream of commands, on a real NATS server."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from nats.aio.client import Client

from devstack.servers.nats import EmbeddedNats
from postflow.queue.v1.publish_command_pb2 import PublishCommand
from queue_service.adapters import command_stream
from queue_service.adapters.command_stream import CommandStream
from queue_service.domain.command import Command
from queue_service.domain.stream import Holding, Room
from servicekit.bus.connection import connect
from servicekit.bus.publisher import PipelinedPublisher
from testkit.clocks import START
from testkit.eventually import eventually
from topology import PUBLISH


def numbered(number: int, copy: int = 1) -> Command:
    return Command(
        organization_id="acme",
        slot_id=f"s{number}",
        revision=1,
        emission=copy,
        draft_id=f"d{number}",
        social_account_id=f"a{number}",
        channel="facebook",
        destination="",
        schedule_time=START,
        not_after=START + timedelta(days=1),
        content_revision=1,
        traceparent="",
        slot_sequence=1,
        time_zone="",
    )


@pytest.fixture
async def client(fresh_nats: EmbeddedNats) -> AsyncIterator[Client]:
    client = Client()
    await connect(client, fresh_nats.url, name="test")
    yield client
    await client.close()


@pytest.fixture
def commands(client: Client) -> CommandStream:
    return CommandStream(client, PipelinedPublisher(client, timeout=0.5), limit=10, max_attempts=7)


async def has_room(commands: CommandStream) -> Room | None:
    room = await commands.room()
    return room if room.size else None


async def held(client: Client) -> int:
    return (await client.jetstream().stream_info(PUBLISH.name)).state.messages


async def test_a_missing_stream_is_created(commands: CommandStream, client: Client) -> None:
    assert (await commands.room()).size == 10
    assert await commands.send([numbered(1)]) == []
    message = await client.jetstream().get_msg(PUBLISH.name, 1)
    command = PublishCommand.FromString(message.data or b"")
    assert (command.slot_id, command.max_attempts) == ("s1", 7)


async def test_sent_commands_take_up_room_at_once(commands: CommandStream) -> None:
    await commands.room()
    await commands.send([numbered(number) for number in range(4)])
    assert (await commands.room()).size == 6
    await commands.send([numbered(number) for number in range(4, 12)])
    assert (await commands.room()).size == 0


async def test_commands_that_publisher_has_taken_make_room(
    commands: CommandStream, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_stream, "_LOOK_PERIOD", 0.0)
    await commands.room()
    await commands.send([numbered(number) for number in range(10)])
    assert (await commands.room()).size == 0
    for sequence in (1, 2, 3):
        await client.jetstream().delete_msg(PUBLISH.name, sequence)
    assert (await commands.room()).size == 3


async def test_a_copy_is_stored_counted_and_known_like_any_command(commands: CommandStream, client: Client) -> None:
    """Publisher recognises copies: `test_copies_of_a_command_publish_once_and_are_answered_again`."""
    await commands.room()
    assert await commands.send([numbered(1), numbered(1), numbered(1, copy=2)]) == []
    assert await held(client) == 3
    assert (await commands.room()).size == 7
    assert [each.sequence for each in commands.take_stored()] == [1, 2, 3]


async def test_an_unreachable_server_takes_no_commands_and_loses_none(
    commands: CommandStream, client: Client, fresh_nats: EmbeddedNats
) -> None:
    assert (await commands.room()).size == 10
    await fresh_nats.kill()
    await eventually(lambda: not client.is_connected)
    assert (await commands.room()).size == 0
    lost = await commands.send([numbered(1), numbered(2)])
    assert lost == [numbered(1), numbered(2)]
    await fresh_nats.start()
    await eventually(lambda: client.is_connected)
    assert await eventually(lambda: has_room(commands)) == Room(10)
    assert await commands.send([numbered(1), numbered(2)]) == []


async def test_a_wiped_stream_is_created_again(
    commands: CommandStream, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_stream, "_LOOK_PERIOD", 0.0)
    await commands.room()
    await commands.send([numbered(1)])
    await client.jetstream().delete_stream(PUBLISH.name)
    assert await commands.send([numbered(2)]) == [numbered(2)]
    assert (await commands.room()).size == 10
    assert await commands.send([numbered(2)]) == []


async def test_an_organization_has_no_more_than_its_share(
    commands: CommandStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await commands.room() == Room(10)
    await commands.send([numbered(number) for number in range(4)])
    assert await commands.room() == Room(6)
    await commands.send([numbered(4), numbered(5)._replace(organization_id="small")])
    assert await commands.room() == Room(4, frozenset({"acme"}))
    monkeypatch.setattr(command_stream, "_LOOK_PERIOD", 0.0)
    assert await commands.room() == Room(4, frozenset({"acme"}))
    await commands.send([numbered(number)._replace(organization_id="small") for number in range(6, 10)])
    assert await commands.room() == Room(0)


async def test_a_full_stream_holds_commands_back_and_is_logged_once(
    commands: CommandStream, client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(command_stream, "_LOOK_PERIOD", 0.0)
    await commands.room()
    js = client.jetstream()
    config = (await js.stream_info(PUBLISH.name)).config
    await js.update_stream(replace(config, max_msgs=3))
    assert (await commands.room()).size == 3
    await commands.send([numbered(number) for number in range(3)])
    for _ in range(5):
        assert (await commands.room()).size == 0
    await js.delete_msg(PUBLISH.name, 1)
    assert (await commands.room()).size == 1
    await commands.send([numbered(4)])
    assert (await commands.room()).size == 0
    [warning] = [record.message for record in caplog.records if "sending no publish commands" in record.message]
    assert "full" in warning


async def test_refused_commands_are_not_followed_by_others_at_once(
    commands: CommandStream, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    await commands.room()
    js = client.jetstream()
    await js.update_stream(replace((await js.stream_info(PUBLISH.name)).config, max_msgs=1))
    assert len(await commands.send([numbered(number) for number in range(3)])) == 2
    assert (await commands.room()).size == 0
    assert [record for record in caplog.records if "does not store them" in record.message]


# losses


async def test_a_stream_that_only_grows_has_lost_nothing(
    commands: CommandStream, client: Client, fresh_nats: EmbeddedNats
) -> None:
    await commands.room()
    for number in range(3):
        await commands.send([numbered(number)])
    await client.jetstream().delete_msg(PUBLISH.name, 3)
    await fresh_nats.restart()
    await eventually(lambda: has_room(commands))
    await commands.send([numbered(3)])
    assert commands.losses == 0


async def test_a_wiped_stream_has_lost_its_commands(
    commands: CommandStream, client: Client, fresh_nats: EmbeddedNats
) -> None:
    await commands.room()
    await commands.send([numbered(1)])
    await fresh_nats.kill()
    await fresh_nats.wipe()
    await fresh_nats.start()
    await eventually(lambda: has_room(commands))
    assert commands.losses == 1
    await commands.room()
    assert commands.losses == 1


@pytest.mark.parametrize("refilled", [0, 5])
async def test_a_stream_that_lost_its_tail_has_lost_commands(
    commands: CommandStream, client: Client, fresh_nats: EmbeddedNats, tmp_path: Path, refilled: int
) -> None:
    """Notices the loss even if others have refilled the stream before this process looks."""
    await commands.room()
    await commands.send([numbered(1)])
    await fresh_nats.stop()
    store, copy = tmp_path / "nats" / "jetstream", tmp_path / "copy"
    await asyncio.to_thread(shutil.copytree, store, copy)
    await fresh_nats.start()
    await eventually(lambda: has_room(commands))
    await commands.send([numbered(2), numbered(3)])
    await fresh_nats.kill()
    await asyncio.to_thread(shutil.rmtree, store)
    await asyncio.to_thread(shutil.copytree, copy, store)
    await fresh_nats.start()
    await eventually(lambda: client.is_connected)
    await commands.send([numbered(number) for number in range(4, 4 + refilled)])
    await eventually(lambda: has_room(commands))
    assert commands.losses


async def test_commands_that_the_stream_gives_to_nobody_are_not_held(
    commands: CommandStream, client: Client, fresh_nats: EmbeddedNats, tmp_path: Path
) -> None:
    """Restores the messages as they were before they were acknowledged, but not the consumer."""
    await commands.room()
    taker = await client.jetstream().pull_subscribe("publish.>", durable="publisher-0of1", stream=PUBLISH.name)
    await commands.send([numbered(number) for number in range(3)])
    await fresh_nats.stop()
    [messages], copy = (tmp_path / "nats").rglob(f"{PUBLISH.name}/msgs"), tmp_path / "copy"
    await asyncio.to_thread(shutil.copytree, messages, copy)
    await fresh_nats.start()
    await eventually(lambda: has_room(commands))
    for message in await taker.fetch(2, timeout=5):
        await message.ack_sync()
    await fresh_nats.stop()
    await asyncio.to_thread(shutil.rmtree, messages)
    await asyncio.to_thread(shutil.copytree, copy, messages)
    await fresh_nats.start()
    await eventually(lambda: has_room(commands))
    assert await held(client) == 3
    holding = await commands.holding()
    assert holding is not None
    assert [holding.holds(sequence) for sequence in (1, 2, 3)] == [False, False, True]


async def test_the_stream_says_which_commands_it_holds(commands: CommandStream, client: Client) -> None:
    await commands.room()
    assert await commands.holding() == Holding(0, 0)
    await commands.send([numbered(number) for number in range(5)])
    assert [(each.slot_id, each.emission, each.sequence) for each in commands.take_stored()] == [
        ("s0", 1, 1),
        ("s1", 1, 2),
        ("s2", 1, 3),
        ("s3", 1, 4),
        ("s4", 1, 5),
    ]
    assert commands.take_stored() == []
    for sequence in (1, 3, 4):
        await client.jetstream().delete_msg(PUBLISH.name, sequence)
    holding = await commands.holding()
    assert holding is not None
    assert [holding.holds(sequence) for sequence in range(7)] == [False, False, True, False, False, True, False]


async def test_too_many_removed_commands_count_as_held(
    commands: CommandStream, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_stream, "_MOST_REMOVED", 1)
    await commands.room()
    await commands.send([numbered(number) for number in range(5)])
    for sequence in (1, 3, 4):
        await client.jetstream().delete_msg(PUBLISH.name, sequence)
    assert await commands.holding() == Holding(2, 5)


async def test_an_unreachable_or_absent_stream_says_nothing(
    commands: CommandStream, client: Client, fresh_nats: EmbeddedNats
) -> None:
    assert await commands.holding() is None
    await commands.room()
    await fresh_nats.kill()
    await eventually(lambda: not client.is_connected)
    assert await commands.holding() is None
