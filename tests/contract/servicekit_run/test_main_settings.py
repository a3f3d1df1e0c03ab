"""A wrong setting ends a service with exit code 2 and a line that names it; unreachable servers are waited for."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from devstack.servers.binaries import nats_server
from devstack.servers.nats import EmbeddedNats
from devstack.servers.postgres import EmbeddedPostgres
from testkit.eventually import eventually

ServiceDatabase = Callable[[str], Awaitable[str]]
DATABASE = "POSTFLOW_QUEUE_DATABASE_URL"
NATS = "POSTFLOW_NATS_URL"


class Queue:
    """A service process and its log lines."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.lines: list[dict[str, Any]] = []

    async def read(self) -> None:
        assert self.process.stderr
        async for raw in self.process.stderr:
            self.lines.append(json.loads(raw))

    def messages(self, level: str) -> list[str]:
        return [line["message"] for line in self.lines if line["level"] == level]


@asynccontextmanager
async def queue(**environ: str) -> AsyncIterator[Queue]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("POSTFLOW_", "OTEL_"))}
    quiet = {"GRPC_VERBOSITY": "NONE", "POSTFLOW_LISTEN": "127.0.0.1:0", "POSTFLOW_METRICS_LISTEN": "127.0.0.1:0"}
    process = await asyncio.create_subprocess_exec(
        Path(sys.executable).with_name("postflow-queue"),
        stderr=asyncio.subprocess.PIPE,
        env=inherited | quiet | environ,
    )
    try:
        yield Queue(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def refused(**environ: str) -> str:
    """Returns the line with which the process ends."""
    async with queue(**environ) as ended, asyncio.timeout(30):
        await ended.read()
        assert await ended.process.wait() == 2, ended.lines
    assert not [line for line in ended.lines if "exception" in line]
    (message,) = ended.messages("CRITICAL")
    assert "\n" not in message
    return message


def changed(url: str, **parts: str) -> str:
    found = urlsplit(url)
    user = parts.get("user", found.username or "")
    password = parts.get("password", found.password or "")
    path = parts.get("path", found.path)
    return found._replace(netloc=f"{user}:{password}@{found.hostname}:{found.port}", path=path).geturl()


@pytest.mark.parametrize("url", ["foo", "postgresql://", "http://u:geheim@host/db", "postgresql://u:geheim@host:x/db"])
async def test_an_invalid_database_address_is_named_by_its_variable(url: str) -> None:
    message = await refused(**{DATABASE: url, NATS: "nats://127.0.0.1:1"})
    assert message == f"{DATABASE}: is not postgresql://user:password@host:port/database"


@pytest.mark.parametrize("url", ["http://127.0.0.1:4222", "nats://host:port", "nats://"])
async def test_an_invalid_nats_address_is_named_by_its_variable(url: str) -> None:
    message = await refused(**{DATABASE: "postgresql://u:p@h/d", NATS: url})
    assert message == f"{NATS}: is not nats://user:password@host:port"


@pytest.mark.parametrize(
    "variable", ["DISPATCH_BATCH", "PUBLISH_DURABLES", "DATABASE_CONNECTIONS", "SLOT_TIMES_CACHED"]
)
async def test_a_number_that_would_stop_everything_is_refused(variable: str) -> None:
    addresses = {DATABASE: "postgresql://u:p@h/d", NATS: "nats://127.0.0.1:1"}
    message = await refused(**addresses, **{f"POSTFLOW_QUEUE_{variable}": "0"})
    assert message.startswith(f"POSTFLOW_QUEUE_{variable}: 0 is not ")


async def test_a_wrong_password_is_named_and_not_shown(service_database: ServiceDatabase) -> None:
    url = changed(await service_database("queue"), password="geheim")
    message = await refused(**{DATABASE: url, NATS: "nats://127.0.0.1:1"})
    assert message.startswith(f"{DATABASE}: postgresql://postflow_queue@127.0.0.1:")
    assert message.endswith("the server refuses this user and password")
    assert "geheim" not in message


async def test_a_missing_database_is_named(service_database: ServiceDatabase) -> None:
    url = changed(await service_database("queue"), path="/nowhere")
    message = await refused(**{DATABASE: url, NATS: "nats://127.0.0.1:1"})
    assert message.endswith("/nowhere: the server has no database of this name: create it, then run postflow-migrate")


async def test_the_database_of_another_service_is_refused(service_database: ServiceDatabase) -> None:
    message = await refused(**{DATABASE: await service_database("drafts"), NATS: "nats://127.0.0.1:1"})
    assert message.endswith("this is the database of drafts, not of queue")


async def test_a_database_that_this_user_may_not_use_is_refused(
    service_database: ServiceDatabase, postgres: EmbeddedPostgres
) -> None:
    await postgres.provide(["drafts", "queue"])
    url = changed(await service_database("queue"), path="/drafts")
    message = await refused(**{DATABASE: url, NATS: "nats://127.0.0.1:1"})
    assert message.endswith("this user may not use this database: is it another service's?")


async def test_a_database_without_its_migrations_is_refused(empty_database: str) -> None:
    message = await refused(**{DATABASE: empty_database, NATS: "nats://127.0.0.1:1"})
    assert message.startswith("the database is at revision nothing, this process needs 0")
    assert message.endswith("run postflow-migrate queue")


@asynccontextmanager
async def plain_nats(port: int, *arguments: str) -> AsyncIterator[None]:
    command = [str(nats_server()), "-a", "127.0.0.1", "-p", str(port), *arguments]
    server = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.DEVNULL)
    try:
        yield
    finally:
        server.kill()
        await server.wait()


async def test_nats_without_jetstream_is_refused(
    service_database: ServiceDatabase, free_port: Callable[[], int]
) -> None:
    port = free_port()
    async with plain_nats(port):
        message = await refused(**{DATABASE: await service_database("queue"), NATS: f"nats://127.0.0.1:{port}"})
    assert message == f"{NATS}: nats://127.0.0.1:{port}: the server has no JetStream: start it with -js"


async def test_nats_that_refuses_the_user_is_named(
    service_database: ServiceDatabase, free_port: Callable[[], int]
) -> None:
    port = free_port()
    async with plain_nats(port, "--user", "queue", "--pass", "right"):
        url = f"nats://queue:geheim@127.0.0.1:{port}"
        message = await refused(**{DATABASE: await service_database("queue"), NATS: url})
    assert message == f"{NATS}: nats://queue@127.0.0.1:{port}: the server refuses this user and password"


async def test_a_port_in_use_is_named_by_its_variable(
    service_database: ServiceDatabase, free_port: Callable[[], int]
) -> None:
    port = free_port()
    async with plain_nats(port):
        for variable in ("POSTFLOW_QUEUE_LISTEN", "POSTFLOW_METRICS_LISTEN"):
            environ = {DATABASE: await service_database("queue"), NATS: "nats://127.0.0.1:1"}
            message = await refused(**environ | {variable: f"127.0.0.1:{port}"})
            assert message.startswith(f"{variable}: ")
            assert f"127.0.0.1:{port}" in message


async def test_a_slow_server_is_named_by_its_variable(
    service_database: ServiceDatabase, free_port: Callable[[], int]
) -> None:
    address = f"nats://127.0.0.1:{free_port()}"
    environ = {DATABASE: await service_database("queue"), NATS: address}
    async with queue(**environ) as waiting, asyncio.timeout(30), asyncio.TaskGroup() as group:
        reading = group.create_task(waiting.read())
        line = await eventually(lambda: [each for each in waiting.messages("WARNING") if NATS in each])
        waiting.process.send_signal(signal.SIGTERM)
        await reading
    assert line == [f"starting nats: still waiting for {address} ({NATS})"]


@pytest.mark.parametrize("missing", [DATABASE, NATS])
async def test_a_start_waits_for_an_unreachable_server_and_names_it(
    service_database: ServiceDatabase, fresh_nats: EmbeddedNats, free_port: Callable[[], int], missing: str
) -> None:
    port = free_port()
    away = {DATABASE: f"postgresql://u:geheim@127.0.0.1:{port}/d", NATS: f"nats://u:geheim@127.0.0.1:{port}"}
    environ = {DATABASE: await service_database("queue"), NATS: fresh_nats.url} | {missing: away[missing]}
    async with queue(**environ) as waiting, asyncio.timeout(30), asyncio.TaskGroup() as group:
        reading = group.create_task(waiting.read())
        await eventually(lambda: waiting.messages("WARNING"))
        waiting.process.send_signal(signal.SIGTERM)
        assert await waiting.process.wait() == 0
        await reading
    (line,) = waiting.messages("WARNING")
    assert f"u@127.0.0.1:{port}" in line
    assert "geheim" not in json.dumps(waiting.lines)
    assert "exception" not in json.dumps(waiting.lines)
