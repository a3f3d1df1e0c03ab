"""Traces across calls."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import grpc
import pytest
from grpc_health.v1.health_pb2 import HealthCheckRequest
from grpc_health.v1.health_pb2_grpc import HealthStub
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from servicekit import faults
from servicekit.rpc import RpcServer, open_channel
from servicekit.run import telemetry
from testkit.eventually import eventually
from testkit.spans import recorded_spans
from testkit.tiny import SERVICE, EchoResponse, TinyStub, request

Connect = Callable[..., Awaitable[TinyStub]]
Serve = Callable[..., Awaitable[RpcServer]]

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SAMPLED = f"00-{TRACE}-00f067aa0ba902b7-01"
NOT_SAMPLED = f"00-{TRACE}-00f067aa0ba902b7-00"


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    with recorded_spans() as exporter:
        yield exporter


async def finished(spans: InMemorySpanExporter, count: int = 1) -> list[ReadableSpan]:
    await eventually(lambda: len(spans.get_finished_spans()) >= count)
    return list(spans.get_finished_spans())


async def test_the_span_of_a_call_joins_the_callers_trace(connect: Connect, spans: InMemorySpanExporter) -> None:
    await (await connect()).Echo(request(), metadata=[("traceparent", SAMPLED), ("x-request-id", "r-9")])
    (span,) = await finished(spans)
    assert (span.name, span.kind) == (f"{SERVICE}/Echo", SpanKind.SERVER)
    assert f"{span.context.trace_id:032x}" == TRACE
    assert span.parent
    assert f"{span.parent.span_id:016x}" == "00f067aa0ba902b7"
    assert span.attributes
    assert span.attributes["rpc.service"] == SERVICE
    assert span.attributes["postflow.request_id"] == "r-9"
    assert span.attributes["rpc.grpc.status_code"] == 0
    assert span.status.status_code is StatusCode.UNSET


async def test_a_trace_goes_through_a_call_made_within_a_call(connect: Connect, spans: InMemorySpanExporter) -> None:
    inner = await connect()

    async def answer(given: Any, _context: Any) -> Any:
        return await inner.Echo(given)

    outer = await connect(answer=answer)
    await outer.Echo(request())
    callee, caller = await finished(spans, 2)
    assert callee.parent
    assert callee.parent.span_id == caller.context.span_id
    assert callee.context.trace_id == caller.context.trace_id
    assert caller.parent is None


async def test_an_unsampled_trace_is_passed_on_unsampled(connect: Connect, spans: InMemorySpanExporter) -> None:
    async def answer(_request: Any, _context: Any) -> Any:
        return EchoResponse(text=telemetry.traceparent())

    got = await (await connect(answer=answer)).Echo(request(), metadata=[("traceparent", NOT_SAMPLED)])
    assert got.text.startswith(f"00-{TRACE}-")
    assert got.text.endswith("-00")
    assert spans.get_finished_spans() == ()


@pytest.mark.parametrize(
    "nonsense", ["", "hello", SAMPLED[:-1], SAMPLED + "-more", "ff" + SAMPLED[2:], "00-" + "0" * 32]
)
async def test_an_invalid_trace_context_begins_a_new_trace(
    connect: Connect, spans: InMemorySpanExporter, nonsense: str
) -> None:
    await (await connect()).Echo(request(), metadata=[("traceparent", nonsense)])
    (span,) = await finished(spans)
    assert span.parent is None


@pytest.mark.parametrize(
    ("error", "code", "status"),
    [
        (faults.NotFound("NO", "no"), grpc.StatusCode.NOT_FOUND, StatusCode.UNSET),
        (ValueError("secret"), grpc.StatusCode.INTERNAL, StatusCode.ERROR),
    ],
)
async def test_a_span_records_how_the_call_ended(
    connect: Connect, spans: InMemorySpanExporter, error: Exception, code: grpc.StatusCode, status: StatusCode
) -> None:
    async def answer(_request: Any, _context: Any) -> Any:
        raise error

    with pytest.raises(grpc.aio.AioRpcError):
        await (await connect(answer=answer)).Echo(request())
    (span,) = await finished(spans)
    assert span.attributes
    assert span.attributes["rpc.grpc.status_code"] == code.value[0]
    assert span.status.status_code is status
    assert "secret" not in span.to_json()


async def test_the_span_of_a_canceled_call_records_it(connect: Connect, spans: InMemorySpanExporter) -> None:
    began = asyncio.Event()

    async def answer(_request: Any, _context: Any) -> Any:
        began.set()
        await asyncio.Event().wait()

    call = (await connect(answer=answer)).Echo(request())
    async with asyncio.timeout(10):
        await began.wait()
    call.cancel()
    (span,) = await finished(spans)
    assert span.attributes
    assert span.attributes["rpc.grpc.status_code"] == grpc.StatusCode.CANCELLED.value[0]


async def test_health_checks_make_no_spans(serve: Serve, spans: InMemorySpanExporter) -> None:
    server = await serve()
    async with open_channel(f"127.0.0.1:{server.port}") as channel:
        for traceparent in ((), (("traceparent", SAMPLED),)):
            await HealthStub(channel).Check(HealthCheckRequest(), metadata=traceparent)
        await TinyStub(channel).Echo(request())
    (span,) = await finished(spans)
    assert span.name == f"{SERVICE}/Echo"
