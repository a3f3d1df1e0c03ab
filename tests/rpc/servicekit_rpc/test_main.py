"""A whole process of the tiny service, from its environment to its exit code."""

import asyncio
import json
import os
import re
import signal
import sys
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc

from testkit.tiny import SERVICE, TinyStub, request

PROGRAM = """
import asyncio, sys
from dataclasses import dataclass
from datetime import timedelta
from servicekit import failpoints
from servicekit.failpoints import failpoint
from servicekit.ids import Uuid7Source
from servicekit.rpc import RpcServer
from opentelemetry import metrics
from servicekit.run import Loop, Process, ProcessSettings, run_main
from servicekit.run.zeros import from_zero
from testkit.tiny import EchoResponse, TinyServicer, add_tiny_servicer

STEP = failpoints.declare("tiny.step")
RARE = from_zero(metrics.get_meter("tiny").create_counter("tiny.rare"), {"kind": "odd"}, {"kind": "even"})

@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(ProcessSettings):
    listen: str = "127.0.0.1:0"
    metrics_listen: str = "127.0.0.1:0"
    stubborn: bool = False

class Stubborn:
    name = "stubborn"
    async def run(self, stop):
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                pass

async def answer(request, context):
    if request.text == "modules":
        return EchoResponse(text=" ".join(sys.modules))
    return EchoResponse(text=request.text)

async def compose(settings):
    server = RpcServer(listen=settings.listen, servicers=[(add_tiny_servicer, TinyServicer(answer))], ids=Uuid7Source())
    return Process(
        name="tiny",
        server=server,
        loops=[Loop("tiny.loop", lambda: failpoint(STEP), timedelta(milliseconds=20))],
        consumers=[Stubborn()] if settings.stubborn else [],
        grace=settings.grace,
    )

sys.exit(run_main("tiny", Settings, compose))
"""


class Running:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.lines: list[dict[str, Any]] = []

    async def until(self, pattern: str) -> re.Match[str]:
        """Returns the next line whose message matches. All of stderr must be JSON."""
        assert self.process.stderr
        async with asyncio.timeout(20):
            async for raw in self.process.stderr:
                self.lines.append(json.loads(raw))
                if found := re.search(pattern, self.lines[-1]["message"]):
                    return found
        raise AssertionError(f"it ended without {pattern!r}: {self.lines}")

    async def ended(self) -> int:
        assert self.process.stderr
        async with asyncio.timeout(20):
            self.lines += [json.loads(raw) async for raw in self.process.stderr]
            return await self.process.wait()


@asynccontextmanager
async def running(**environ: str) -> AsyncIterator[Running]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("POSTFLOW_", "OTEL_"))}
    # gRPC's core writes lines of its own, unless this is set before it is imported.
    quiet = {"GRPC_VERBOSITY": "NONE"}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PROGRAM, stderr=asyncio.subprocess.PIPE, env=inherited | quiet | environ
    )
    try:
        yield Running(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_a_process_serves_and_stops_cleanly_on_sigterm() -> None:
    async with running() as tiny:
        port = (await tiny.until(r"listening on port (\d+)"))[1]
        await tiny.until("^serving$")
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            assert (await TinyStub(channel).Echo(request("hi"))).text == "hi"
        tiny.process.send_signal(signal.SIGTERM)
        assert await tiny.ended() == 0
    assert [line["message"] for line in tiny.lines][-3:] == ["SIGTERM", "stopping", "stopped"]
    assert {line["service"] for line in tiny.lines} == {"tiny"}


async def test_metrics_count_calls_by_method_and_code() -> None:
    async with running() as tiny:
        address = (await tiny.until(r"metrics on (\S+)"))[1]
        port = (await tiny.until(r"listening on port (\d+)"))[1]
        await tiny.until("^serving$")
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            stub = TinyStub(channel)
            await stub.Echo(request("hi"))
            with pytest.raises(grpc.aio.AioRpcError):
                await stub.Echo(request("nul\0"))

        def scrape() -> str:
            with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as response:
                text: str = response.read().decode()
                return text

        text = await asyncio.to_thread(scrape)
    counted = {
        match[1]: float(match[2])
        for match in re.finditer(
            rf'rpc_server_call_duration_seconds_count\{{.*rpc_method="{SERVICE}/Echo".*status_code="(\w+)".*\}} (\S+)',
            text,
        )
    }
    assert counted == {"OK": 1.0, "INVALID_ARGUMENT": 1.0}
    assert 'service_name="postflow-tiny"' in text
    assert "process_cpu_seconds_total" in text
    for never in (
        r'loop_errors_total\{.*loop="tiny.loop".*\}',
        r'tiny_rare_total\{.*"odd".*\}',
        r'tiny_rare_total\{.*"even".*\}',
    ):
        assert re.search(f"^{never} 0.0$", text, re.MULTILINE), "there before its first event"


async def test_heavy_modules_are_imported_only_when_needed() -> None:
    async with running() as tiny:
        port = (await tiny.until(r"listening on port (\d+)"))[1]
        await tiny.until("^serving$")
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            modules = (await TinyStub(channel).Echo(request("modules"))).text.split()
    assert "uvloop" in modules
    assert not {"sqlalchemy", "nats", "alembic", "opentelemetry.exporter.otlp"} & set(modules)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("POSTFLOW_TINY_GRACE", "soon"),
        ("POSTFLOW_FAILPOINTS", "tiny.stop=raise"),
        ("POSTFLOW_FAILPOINTS", "@no/such/file"),
        ("POSTFLOW_LOG_LEVEL", "LOUD"),
        ("POSTFLOW_TINY_METRICS_LISTEN", "127.0.0.1:99999"),
        ("POSTFLOW_TINY_LISTEN", "256.0.0.1:0"),
        ("OTEL_TRACES_SAMPLER_ARG", "often"),
        ("OTEL_TRACES_SAMPLER_ARG", "2"),
    ],
)
async def test_a_bad_setting_is_one_clear_line_and_an_exit_code(variable: str, value: str) -> None:
    async with running(**{variable: value}) as tiny:
        assert await tiny.ended() == 2
    (line,) = [line for line in tiny.lines if line["level"] == "CRITICAL"]
    assert value.partition("=")[0] in line["message"]
    assert "exception" not in line


class Collector(trace_service_pb2_grpc.TraceServiceServicer):
    """A collector of traces, as OpenTelemetry has it."""

    def __init__(self) -> None:
        self.spans: list[str] = []

    async def Export(self, request: Any, _context: Any) -> Any:
        self.spans += [
            span.name for resource in request.resource_spans for scope in resource.scope_spans for span in scope.spans
        ]
        return trace_service_pb2.ExportTraceServiceResponse()


async def test_traces_go_to_the_collector_of_the_standard_variables() -> None:
    collector, server = Collector(), grpc.aio.server()
    trace_service_pb2_grpc.add_TraceServiceServicer_to_server(collector, server)  # type: ignore[no-untyped-call]
    address = f"http://127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    await server.start()
    async with running(OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=address, OTEL_TRACES_SAMPLER_ARG="1") as tiny:
        port = (await tiny.until(r"listening on port (\d+)"))[1]
        await tiny.until("^serving$")
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            await TinyStub(channel).Echo(request("hi"))
        tiny.process.send_signal(signal.SIGTERM)
        assert await tiny.ended() == 0
    await server.stop(0)
    assert collector.spans == [f"{SERVICE}/Echo"]


@pytest.mark.parametrize(
    ("variable", "value", "complaint"),
    [
        ("POSTFLOW_FAILPOINTS", "tiny.step=kill", "failpoints are refused in production"),
        ("POSTFLOW_FAILPOINTS", "@failpoints", "failpoints are refused in production"),
        ("POSTFLOW_TINY_CLOCK_OFFSET", "60", "a clock offset is refused in production"),
    ],
)
async def test_production_names_what_it_refuses(variable: str, value: str, complaint: str) -> None:
    async with running(POSTFLOW_ENVIRONMENT="production", **{variable: value}) as tiny:
        assert await tiny.ended() == 2
    assert tiny.lines[-1]["message"] == f"{variable}: {complaint}"


async def test_a_loop_that_fails_ends_the_process_with_a_code() -> None:
    async with running(POSTFLOW_FAILPOINTS="tiny.step=raise") as tiny:
        assert await tiny.ended() == 1
    assert any("FailpointHit: tiny.step" in line.get("exception", "") for line in tiny.lines)
    assert "stopped" in [line["message"] for line in tiny.lines]


async def test_a_failpoint_kills_the_process() -> None:
    async with running(POSTFLOW_FAILPOINTS="tiny.step=kill") as tiny:
        assert await tiny.ended() == -signal.SIGKILL


async def test_failpoints_of_a_file_are_read_again_at_a_signal(tmp_path: Path) -> None:
    file = tmp_path / "failpoints"
    file.write_text("tiny.step=sleep:0:once")
    async with running(POSTFLOW_FAILPOINTS=f"@{file}") as tiny:
        await tiny.until("^failpoint tiny.step: sleep$")
        file.write_text("tiny.step=raise")
        tiny.process.send_signal(signal.SIGUSR1)
        await tiny.until("^failpoints are armed again$")
        await tiny.until("^failpoint tiny.step: raise$")
        assert await tiny.ended() == 1


async def test_a_second_signal_ends_a_process_that_hangs() -> None:
    async with running(POSTFLOW_TINY_STUBBORN="true") as tiny:
        await tiny.until("^serving$")
        tiny.process.send_signal(signal.SIGTERM)
        await tiny.until("^stopping$")
        tiny.process.send_signal(signal.SIGINT)
        assert await tiny.ended() == 128 + signal.SIGINT
