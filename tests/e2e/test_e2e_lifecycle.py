"""The life of processes: starting before their servers, stopping on a signal, and surviving bad messages."""

import asyncio
import os
import signal
import subprocess
import sysconfig
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import asyncpg
import nats
import pytest

from devstack.health import listening, serving
from devstack.layout import SERVICES
from devstack.servers.nats import EmbeddedNats
from devstack.servers.postgres import EmbeddedPostgres
from devstack.stack import Stack
from postflow.bus.v1 import bus_pb2
from postflow.drafts.v1.draft_pb2 import DRAFT_STATE_PUBLISHED
from postflow.drafts.v1.drafts_events_pb2 import DraftSaved
from postflow.publisher.v1.post_job_pb2 import POST_JOB_STATE_SENDING
from postflow.publisher.v1.publisher_events_pb2 import PostJobChanged
from postflow.queue.v1.publish_command_pb2 import PublishCommand
from servicekit.clock import SystemClock
from testkit.eventually import eventually, holds
from testkit.stack.tenant import Tenant

GRPCURL = Path(sysconfig.get_path("scripts"), "grpcurl")

Events = list[tuple[str, str]]


@pytest.fixture(scope="module")
def reported() -> Events:
    """The supervisor's reports about its processes."""
    return []


@pytest.fixture(scope="module")
async def stack(tmp_path_factory: pytest.TempPathFactory, reported: Events) -> AsyncIterator[Stack]:
    async with Stack(
        tmp_path_factory.mktemp("stack") / "state",
        environment={"POSTFLOW_PUBLISHER_REQUEST_TIMEOUT": "5"},
        on_event=lambda name, text: reported.append((name, text)),
    ) as running:
        yield running


async def _publish(tenant: Tenant, draft_id: str, *, ahead: float = 0.5) -> None:
    await tenant.connect()
    await tenant.create(draft_id, f"Text of {draft_id}")
    await tenant.schedule_at(draft_id, SystemClock().now() + timedelta(seconds=ahead))


# reflection


def _grpcurl(*arguments: str) -> str:
    done = subprocess.run([GRPCURL, "-plaintext", *arguments], capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("service", SERVICES)
async def test_grpcurl_lists_and_describes_all_without_proto_files(stack: Stack, service: str) -> None:
    target = stack.targets[service]
    names = (await asyncio.to_thread(_grpcurl, target, "list")).split()
    assert {"grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection"} < set(names)
    assert any(name.startswith(f"postflow.{service}.v1.") for name in names)
    for name in names:
        if name == "grpc.reflection.v1.ServerReflection":
            continue  # the same messages under a newer name, without a descriptor
        described = await asyncio.to_thread(_grpcurl, target, "describe", name)
        assert f"{name} is a service" in described
        for request in {word for word in described.split() if word.startswith(".postflow.")}:
            assert "is a message" in await asyncio.to_thread(_grpcurl, target, "describe", request)
    health = await asyncio.to_thread(_grpcurl, target, "grpc.health.v1.Health/Check")
    assert '"SERVING"' in health


# starting before a server


@pytest.mark.parametrize("service", SERVICES)
async def test_a_service_started_before_its_database_waits_for_it(stack: Stack, service: str) -> None:
    assert stack.postgres is not None
    await _start_before(stack, service, stack.postgres)


@pytest.mark.parametrize("service", ["queue", "drafts", "publisher"])
async def test_a_service_started_before_nats_waits_for_it(stack: Stack, service: str) -> None:
    assert stack.nats is not None
    await _start_before(stack, service, stack.nats)


async def _start_before(stack: Stack, service: str, server: EmbeddedPostgres | EmbeddedNats) -> None:
    await stack.stop(service)
    await server.stop()
    async with asyncio.TaskGroup() as group:
        started = group.create_task(stack.start(service))
        try:
            await eventually(lambda: listening(stack.targets[service]))
            await holds(lambda: _waits(stack, service), during=0.5)
            assert not started.done()
        finally:
            await server.start()
    await eventually(lambda: serving(stack.targets[service]))


async def _waits(stack: Stack, service: str) -> bool:
    return stack.running(service) and not await serving(stack.targets[service])


async def test_a_post_goes_out_after_all_these_starts(stack: Stack, tenant: Tenant) -> None:
    await stack.wait_serving()
    await _publish(tenant, "after-restarts")
    await tenant.until("after-restarts", DRAFT_STATE_PUBLISHED)


# stopping


async def test_a_publisher_settles_the_post_in_flight_before_it_stops(
    stack: Stack, tenant: Tenant, reported: Events
) -> None:
    await tenant.connect()
    await stack.sandbox.faults({"fault": "slow", "seconds": 2, "text": "slowly", "count": 1})
    await tenant.create("in-flight", "sent slowly")
    await tenant.schedule_at("in-flight", SystemClock().now())
    await tenant.until_job("in-flight", POST_JOB_STATE_SENDING)

    seen = len(reported)
    os.kill(stack.pid("publisher"), signal.SIGTERM)
    await eventually(lambda: reported[seen:])
    assert _exit_codes(reported[seen:]) == [("publisher", "0")]

    assert await _fetch_states(stack, tenant) == ["PUBLISHED"]
    assert len(stack.sandbox.effects(account=tenant.external("page"))) == 1
    await tenant.until("in-flight", DRAFT_STATE_PUBLISHED)


@pytest.mark.parametrize("service", SERVICES)
async def test_every_service_ends_cleanly_on_sigterm(stack: Stack, reported: Events, service: str) -> None:
    # The test before may have ended it, too.
    await stack.wait_serving(service)
    seen, pid = len(reported), stack.pid(service)
    os.kill(pid, signal.SIGTERM)
    await eventually(lambda: reported[seen:])
    assert _exit_codes(reported[seen:]) == [(service, "0")]
    await eventually(lambda: stack.running(service) and stack.pid(service) != pid)
    await stack.wait_serving(service)


def _exit_codes(events: Events) -> list[tuple[str, str]]:
    """Extracts the codes from lines like `ended with exit code 0; starts again in 0.25 s`."""
    return [(name, text.removeprefix("ended with exit code ").partition(";")[0]) for name, text in events]


# bad messages


BAD_EVENTS = {
    "no envelope": b"\xff\xff not an envelope",
    "an empty envelope": b"",
    "an event of a known type that does not decode": bus_pb2.Envelope(
        events=[
            bus_pb2.Event(
                id="bad-payload", type=DraftSaved.DESCRIPTOR.full_name, organization_id="org-x", payload=b"\xff\xff"
            )
        ]
    ).SerializeToString(),
    "an event without an id": bus_pb2.Envelope(
        events=[bus_pb2.Event(type=DraftSaved.DESCRIPTOR.full_name, organization_id="org-x")]
    ).SerializeToString(),
    "an inconsistent event": bus_pb2.Envelope(
        events=[
            bus_pb2.Event(
                id="bad-sense",
                type=PostJobChanged.DESCRIPTOR.full_name,
                organization_id="org-x",
                payload=PostJobChanged(organization_id="org-y").SerializeToString(),
            )
        ]
    ).SerializeToString(),
}


@pytest.mark.parametrize(
    ("context", "name", "consumers"),
    [
        ("drafts", "no envelope", {"queue", "publisher"}),
        ("drafts", "an empty envelope", {"queue", "publisher"}),
        ("drafts", "an event of a known type that does not decode", {"queue", "publisher"}),
        ("drafts", "an event without an id", {"queue", "publisher"}),
        ("publisher", "no envelope", {"queue", "drafts", "publisher"}),
        ("publisher", "an inconsistent event", {"queue", "drafts"}),
        ("schedule", "no envelope", {"queue", "publisher"}),
        ("queue", "no envelope", {"publisher", "schedule"}),
    ],
)
async def test_a_bad_event_becomes_a_dead_letter_and_later_ones_pass(
    stack: Stack, tenant: Tenant, context: str, name: str, consumers: set[str]
) -> None:
    before = await _dead_letters(stack)
    await _send(stack, f"events.{context}.org-x.test", BAD_EVENTS[name])
    await eventually(lambda: _has_one_more(stack, before, consumers))
    await _publish(tenant, "goes-on", ahead=0)
    await tenant.until("goes-on", DRAFT_STATE_PUBLISHED)
    assert await _has_one_more(stack, before, consumers)


@pytest.mark.parametrize(
    "payload",
    [b"\xff\xff not a command", b"", PublishCommand(organization_id="org-x", slot_id="s").SerializeToString()],
    ids=["no command", "nothing", "half a command"],
)
async def test_a_bad_command_becomes_a_dead_letter_and_later_ones_pass(
    stack: Stack, tenant: Tenant, payload: bytes
) -> None:
    before = await _dead_letters(stack)
    await _send(stack, "publish.7.org-x", payload)
    await eventually(lambda: _has_one_more(stack, before, {"publisher"}))
    await _publish(tenant, "goes-on", ahead=0)
    await tenant.until("goes-on", DRAFT_STATE_PUBLISHED)
    assert await _has_one_more(stack, before, {"publisher"})
    assert await _left_in_publish(stack) == 0


async def _send(stack: Stack, subject: str, payload: bytes) -> None:
    connection = await nats.connect(stack.nats_url)
    try:
        await connection.jetstream().publish(subject, payload)
    finally:
        await connection.close()


async def _left_in_publish(stack: Stack) -> int:
    connection = await nats.connect(stack.nats_url)
    try:
        return (await connection.jetstream().stream_info("PUBLISH")).state.messages
    finally:
        await connection.close()


async def _has_one_more(stack: Stack, before: dict[str, list[str]], consumers: set[str]) -> bool:
    now = await _dead_letters(stack)
    new = {service: reasons[len(before[service]) :] for service, reasons in now.items()}
    assert {service: len(reasons) for service, reasons in new.items()} == {
        service: int(service in consumers) for service in SERVICES
    }, new
    return True


async def _dead_letters(stack: Stack) -> dict[str, list[str]]:
    """Returns the reasons, oldest first."""
    query = "select reason || ' ' || subject as text from dead_letter order by create_time, id"
    return {service: await _texts(stack, service, query) for service in SERVICES}


async def _fetch_states(stack: Stack, tenant: Tenant) -> list[str]:
    query = "select state as text from post_job where organization_id = $1"
    return await _texts(stack, "publisher", query, tenant.organization_id)


async def _texts(stack: Stack, service: str, query: str, *values: str) -> list[str]:
    connection = await asyncpg.connect(stack.database_urls[service])
    try:
        return [row["text"] for row in await connection.fetch(query, *values)]
    finally:
        await connection.close()
