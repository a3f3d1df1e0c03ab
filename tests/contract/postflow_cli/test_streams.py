"""`postflow streams` against a real server: what it shows, and what it must not show or change."""

import asyncio
import os
import sysconfig
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from google.protobuf.message import Message
from nats.aio.client import Client
from nats.js import JetStreamContext

from devstack.servers.nats import EmbeddedNats
from postflow.bus.v1.bus_pb2 import Envelope, Event
from postflow.drafts.v1.drafts_events_pb2 import DraftSaved
from postflow.publisher.v1.post_job_pb2 import POST_JOB_STATE_PUBLISHED, PostJob
from postflow.publisher.v1.publisher_events_pb2 import POST_JOB_EVENT_KIND_SUCCEEDED, PostJobChanged
from postflow.queue.v1.publish_command_pb2 import PublishCommand
from servicekit.bus.connection import close, connect
from servicekit.bus.streams import ensure_consumer, ensure_stream
from topology import EVENTS, PUBLISH, event_consumer, events_subject, publish_consumers, publish_subject

SECRET = "the text of a post"


@pytest.fixture
async def js(fresh_nats: EmbeddedNats) -> AsyncIterator[JetStreamContext]:
    client = Client()
    await connect(client, fresh_nats.url, name="test")
    yield client.jetstream()
    await close(client)


async def _streams(url: str, *arguments: str) -> tuple[int, list[str], str]:
    process = await asyncio.create_subprocess_exec(
        Path(sysconfig.get_path("scripts"), "postflow"),
        *("streams", *arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=os.environ | {"POSTFLOW_NATS_URL": url},
    )
    out, err = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode().splitlines(), err.decode()


def _envelope(*messages: Message) -> bytes:
    events = [
        Event(
            id=f"e{number}",
            type=message.DESCRIPTOR.full_name,
            organization_id="acme",
            payload=message.SerializeToString(),
        )
        for number, message in enumerate(messages)
    ]
    return Envelope(events=events).SerializeToString()


async def _announce(js: JetStreamContext, *messages: Message) -> None:
    await js.publish(events_subject("drafts", "d1"), _envelope(*messages))


async def test_an_empty_server_has_no_streams(fresh_nats: EmbeddedNats) -> None:
    code, lines, _ = await _streams(fresh_nats.url)
    assert (code, lines) == (0, ["no streams: no service has connected yet"])


async def test_an_empty_stream_shows_its_next_sequence(js: JetStreamContext, fresh_nats: EmbeddedNats) -> None:
    await ensure_stream(js, EVENTS)
    await js.add_stream(name="SMALL", subjects=["small"])
    await js.publish("small", b"")
    await js.purge_stream("SMALL")
    _, lines, _ = await _streams(fresh_nats.url)
    assert [line for line in lines if not line.startswith("  ")] == [
        "EVENTS: empty, the next sequence is 1",
        "",
        "SMALL: empty, the next sequence is 2",
    ]


async def test_it_shows_how_far_each_consumer_is_behind(js: JetStreamContext, fresh_nats: EmbeddedNats) -> None:
    await ensure_stream(js, EVENTS)
    for number in range(3):
        await _announce(js, DraftSaved(organization_id="acme", draft_id=f"d{number}"))
    await ensure_consumer(js, event_consumer("queue", "drafts"))
    subscription = await js.pull_subscribe_bind("queue-events", stream=EVENTS.name)
    taken = await subscription.fetch(2)
    await taken[0].ack_sync()
    code, lines, _ = await _streams(fresh_nats.url)
    assert code == 0
    assert lines[0].startswith("EVENTS: 3 messages, ")
    assert lines[2].split() == ["queue-events", "1", "1", "0"]
    assert lines[3] == "  messages from sequence 2:"
    assert [line.split()[-1] for line in lines[4:6]] == ["draft_id=d1", "draft_id=d2"]
    assert (await js.stream_info(EVENTS.name)).state.messages == 3


async def test_a_message_shows_its_type_and_ids_and_nothing_else(
    js: JetStreamContext, fresh_nats: EmbeddedNats
) -> None:
    await ensure_stream(js, EVENTS)
    job = PostJob(id="j1", draft_id="d1", state=POST_JOB_STATE_PUBLISHED, error_message=SECRET, external_url=SECRET)
    saved = DraftSaved(organization_id="acme", draft_id="d1", revision=2, content=SECRET.encode())
    await _announce(js, saved, PostJobChanged(organization_id="acme", kind=POST_JOB_EVENT_KIND_SUCCEEDED, post_job=job))
    _, lines, _ = await _streams(fresh_nats.url)
    shown = [line.split(maxsplit=2)[2] for line in lines[3:5]]
    assert shown == [
        "DraftSaved organization_id=acme draft_id=d1 revision=2",
        "PostJobChanged organization_id=acme kind=SUCCEEDED id=j1 draft_id=d1 state=PUBLISHED",
    ]
    assert SECRET not in "\n".join(lines)


async def test_held_commands_are_shown_with_their_time(js: JetStreamContext, fresh_nats: EmbeddedNats) -> None:
    await ensure_stream(js, PUBLISH)
    await ensure_consumer(js, publish_consumers(1)[0])
    command = PublishCommand(organization_id="acme", slot_id="s1", draft_id="d1")
    command.schedule_time.FromJsonString("2026-03-02T09:00:00Z")
    await js.publish(publish_subject("acme", "page"), command.SerializeToString())
    _, lines, _ = await _streams(fresh_nats.url)
    assert lines[-1].endswith(
        "PublishCommand organization_id=acme slot_id=s1 draft_id=d1 schedule_time=2026-03-02T09:00:00Z"
    )


async def test_what_cannot_be_read_is_named_without_harm(js: JetStreamContext, fresh_nats: EmbeddedNats) -> None:
    await ensure_stream(js, EVENTS)
    await js.publish("events.drafts.d1", b"\xff\xff")
    unknown = Event(type="postflow.drafts.v1.OfANewerRelease", organization_id="evil\x1b[2J")
    await js.publish("events.drafts.d1", Envelope(events=[unknown]).SerializeToString())
    code, lines, _ = await _streams(fresh_nats.url)
    assert code == 0
    assert lines[-2].endswith("cannot be read, 2 bytes on events.drafts.d1")
    assert lines[-1].endswith("OfANewerRelease organization_id='evil\\x1b[2J'")


async def test_the_value_of_a_key_is_no_message_to_be_read(js: JetStreamContext, fresh_nats: EmbeddedNats) -> None:
    bucket = await js.create_key_value(bucket="publisher")
    await bucket.put("value", b"\xff\xff")
    _, lines, _ = await _streams(fresh_nats.url)
    assert lines[-1].endswith("2 bytes, the value of a key")


@pytest.mark.parametrize("peek", ["0", "1"])
async def test_only_so_many_messages_are_shown(js: JetStreamContext, fresh_nats: EmbeddedNats, peek: str) -> None:
    await ensure_stream(js, EVENTS)
    for number in range(3):
        await _announce(js, DraftSaved(organization_id="acme", draft_id=f"d{number}"))
    _, lines, _ = await _streams(fresh_nats.url, "--peek", peek)
    assert [line.split()[-1] for line in lines if "DraftSaved" in line] == ["draft_id=d2"][: int(peek)]


async def test_a_server_that_is_wrong_or_unreachable_is_named_in_a_line(free_port: Callable[[], int]) -> None:
    code, _, error = await _streams("http://127.0.0.1:4222")
    assert (code, error) == (2, "postflow streams: the address of NATS is not nats://user:password@host:port\n")
    address = f"127.0.0.1:{free_port()}"
    code, _, error = await _streams(f"nats://u:geheim@{address}")
    hint = "no answer; name another server by --nats or POSTFLOW_NATS_URL"
    assert (code, error.splitlines()[-1]) == (1, f"postflow streams: nats://u@{address}: {hint}")
    assert "geheim" not in error
