"""`postflow streams`: the streams, how far each consumer is behind, and a peek at messages without their content.

Nothing is consumed, acknowledged or changed. Of a message it shows the type, the organization and fields that identify:
never a text, credentials, or any other field.
"""

import argparse
import asyncio
import os
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from functools import cache
from importlib import import_module
from pkgutil import walk_packages

from google.protobuf import descriptor_pool, message_factory
from google.protobuf.message import DecodeError, Message
from nats.aio.client import Client
from nats.errors import Error as NatsError
from nats.js import JetStreamContext
from nats.js.api import ConsumerInfo, RawStreamMsg, StreamInfo, StreamState
from nats.js.errors import NotFoundError

import postflow
from postflow.bus.v1.bus_pb2 import Envelope
from postflow.queue.v1.publish_command_pb2 import PublishCommand
from postflow_cli.subcommand import Subcommands, complain
from postflow_cli.text import printable, size
from servicekit.bus.connection import close, connect
from servicekit.run.addresses import Misconfigured, check_nats, without_password

PROGRAM = "postflow streams"
_DEFAULT_URL = "nats://127.0.0.1:4222"
_CONNECT_SECONDS = 5
_NO_ANSWER = "no answer; name another server by --nats or POSTFLOW_NATS_URL"
_FAILED, _MISCONFIGURED = 1, 2
_NEST = 2
"""How deep to look for fields that identify: an event holds its resource, which holds a target."""
_SHOWN = frozenset({"id", "version", "revision", "state", "kind", "channel", "schedule_time", "deleted", "approved"})


def add_to(commands: Subcommands) -> None:
    parser = commands.add_parser(
        "streams",
        help="show streams, consumers and their lag, and peek at messages",
        description="""Shows each stream of NATS JetStream, how far its consumers are behind, and its next messages:
        their types and ids, never their content. Nothing is consumed.""",
    )
    parser.add_argument(
        "--nats",
        metavar="URL",
        default=os.environ.get("POSTFLOW_NATS_URL", _DEFAULT_URL),
        help=f"the server (default: POSTFLOW_NATS_URL, else {_DEFAULT_URL})",
    )
    parser.add_argument("--peek", type=int, default=5, metavar="N", help="messages of each stream (default: 5)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    try:
        check_nats(options.nats)
        for line in asyncio.run(_report(options.nats, options.peek)):
            sys.stdout.write(f"{line}\n")
    except ValueError as error:
        return complain(PROGRAM, f"the address of NATS {error}", _MISCONFIGURED)
    except Misconfigured as error:
        return complain(PROGRAM, f"{without_password(options.nats)}: {error.complaint}", _MISCONFIGURED)
    except (NatsError, OSError) as error:
        return complain(PROGRAM, f"{without_password(options.nats)}: {str(error) or _NO_ANSWER}", _FAILED)
    return 0


async def _report(url: str, peek: int) -> list[str]:
    client = Client()
    try:
        async with asyncio.timeout(_CONNECT_SECONDS):
            await connect(client, url, name="postflow-streams")
        js = client.jetstream()
        lines: list[str] = []
        for stream in sorted(await js.streams_info(), key=lambda each: each.config.name or ""):
            lines += [*([""] if lines else []), *await _stream(js, stream, peek)]
        return lines or ["no streams: no service has connected yet"]
    finally:
        await close(client)


async def _stream(js: JetStreamContext, stream: StreamInfo, peek: int) -> list[str]:
    name, state = stream.config.name or "", stream.state
    consumers = await js.consumers_info(name)
    first = _first_to_show(stream, consumers, peek)
    lines = [
        f"{name}: {_held(state)}",
        _row("consumer", "behind", "in flight", "redelivered"),
        *(
            _row(each.name, each.num_pending or 0, each.num_ack_pending or 0, each.num_redelivered or 0)
            for each in sorted(consumers, key=lambda each: each.name)
        ),
    ]
    if state.messages and peek > 0:
        lines.append(f"  messages from sequence {first}:")
        async for message in _messages(js, name, first, peek):
            at = f"{message.time:%H:%M:%S}" if message.time else ""
            lines += [f"    {message.seq:>8} {at} {text}" for text in _described(message)]
    return lines


def _held(state: StreamState) -> str:
    if not state.messages:
        return f"empty, the next sequence is {state.last_seq + 1}"
    return f"{state.messages:,} messages, {size(state.bytes)}, sequences {state.first_seq} to {state.last_seq}"


def _row(name: str, *counts: str | int) -> str:
    return f"  {name:<24}" + "".join(f" {each:>12}" for each in counts)


def _first_to_show(stream: StreamInfo, consumers: Sequence[ConsumerInfo], peek: int) -> int:
    """Returns where the messages begin that a consumer has not acknowledged; without any, where the newest begin."""
    waiting = [
        each.ack_floor.stream_seq + 1
        for each in consumers
        if each.ack_floor and ((each.num_pending or 0) + (each.num_ack_pending or 0)) > 0
    ]
    newest = stream.state.last_seq - peek + 1
    return max(min(waiting, default=newest), stream.state.first_seq, 1)


async def _messages(js: JetStreamContext, stream: str, first: int, count: int) -> AsyncIterator[RawStreamMsg]:
    for _ in range(count):
        try:
            message = await js.get_msg(stream, seq=first, subject=">", next=True)
        except NotFoundError:
            return
        yield message
        first = (message.seq or first) + 1


def _described(message: RawStreamMsg) -> Iterator[str]:
    data, subject = message.data or b"", message.subject or ""
    try:
        if subject.startswith("publish."):
            command = PublishCommand.FromString(data)
            yield f"PublishCommand {_identified(command)}"
            return
        if subject.startswith("$KV."):
            yield f"{len(data)} bytes, the value of a key"
            return
        for event in Envelope.FromString(data).events:
            payload = _decoded(event.type, event.payload)
            what = _identified(payload) if payload else f"organization_id={printable(event.organization_id)}"
            yield f"{printable(event.type.rpartition('.')[2])} {what}"
    except DecodeError:
        yield f"cannot be read, {len(data)} bytes on {subject}"


def _decoded(name: str, payload: bytes) -> Message | None:
    """Returns nothing for an event of a release that this one does not know."""
    _import_contracts()
    try:
        descriptor = descriptor_pool.Default().FindMessageTypeByName(name)
    except KeyError:
        return None
    return message_factory.GetMessageClass(descriptor).FromString(payload)


@cache
def _import_contracts() -> None:
    """Registers the types of all events by importing their modules."""
    for module in walk_packages(postflow.__path__, "postflow."):
        if module.name.endswith("_events_pb2"):
            import_module(module.name)


def _identified(message: Message, nest: int = _NEST) -> str:
    return " ".join(_fields(message, nest))


def _fields(message: Message, nest: int) -> Iterator[str]:
    for field, value in message.ListFields():
        if field.is_repeated:
            yield f"{field.name}[{len(value)}]"
        elif field.name == "schedule_time":
            yield f"{field.name}={value.ToJsonString()}"
        elif field.enum_type and field.name in _SHOWN:
            names = field.enum_type.values_by_number
            prefix = names[0].name.removesuffix("UNSPECIFIED")
            yield f"{field.name}={names[value].name.removeprefix(prefix) if value in names else value}"
        elif field.message_type:
            if nest > 0:
                yield from _fields(value, nest - 1)
        elif field.name in _SHOWN or field.name.endswith(("_id", "_revision", "_version")):
            yield f"{field.name}={printable(value)}"
