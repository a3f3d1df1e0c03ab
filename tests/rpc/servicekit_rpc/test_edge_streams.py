"""Streams of answers behind the edge: refusals after the first answer, spans, counts, deadlines and ends."""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from datetime import timedelta
from typing import Any

import grpc
import pytest
from opentelemetry.trace import StatusCode

from servicekit.faults import DeadlineExceeded, Fault, InvalidField, OutOfRange, Unavailable
from servicekit.rpc import RpcServer, calling
from testkit.eventually import eventually
from testkit.spans import recorded_spans
from testkit.tiny import SERVICE, EchoRequest, EchoResponse, TinyStub, request

Connect = Callable[..., Awaitable[TinyStub]]
Serve = Callable[..., Awaitable[RpcServer]]
WATCH = f"{SERVICE}/Watch"


def ending(error: Exception) -> Callable[[Any, Any], AsyncIterator[Any]]:
    """Returns a handler that sends an answer and fails."""

    async def watch(_request: Any, _context: Any) -> AsyncIterator[Any]:
        yield EchoResponse(text="first")
        raise error

    return watch


async def endless(_request: Any, _context: Any) -> AsyncGenerator[Any, None]:
    yield EchoResponse(text="first")
    await asyncio.Event().wait()


async def end_of(call: Any) -> Fault:
    """Reads a stream with one answer, and returns the fault that ends it."""
    async with asyncio.timeout(10):
        assert (await call.read()).text == "first"
        with pytest.raises(Fault) as ended, calling():
            await call.read()
    return ended.value


async def test_a_fault_ends_a_stream_with_its_reason_and_details(connect: Connect) -> None:
    fault = OutOfRange("RESUME_TOKEN_EXPIRED", "too old", metadata={"since": "yesterday"})
    ended = await end_of((await connect(watch=ending(fault))).Watch(request()))
    assert isinstance(ended, OutOfRange)
    assert (ended.reason, ended.message, ended.metadata) == (fault.reason, "too old", {"since": "yesterday"})


async def test_a_request_that_is_refused_begins_no_stream(connect: Connect) -> None:
    asked = False

    async def watch(_request: Any, _context: Any) -> AsyncIterator[Any]:
        nonlocal asked
        asked = True
        yield EchoResponse()

    with pytest.raises(Fault) as refused, calling():
        await (await connect(watch=watch)).Watch(EchoRequest(organization_id="no id!")).read()
    assert [each.field for each in refused.value.violations] == ["organization_id"]
    assert not asked


async def test_a_refusal_before_the_first_answer_has_its_details(connect: Connect) -> None:
    async def watch(given: Any, _context: Any) -> AsyncIterator[Any]:
        if given.text:
            raise InvalidField("resume_token", "was not issued for this request")
        yield EchoResponse()

    with pytest.raises(Fault) as refused, calling():
        await (await connect(watch=watch)).Watch(request("token")).read()
    assert [each.field for each in refused.value.violations] == ["resume_token"]


async def test_the_span_of_a_stream_lasts_until_its_end(connect: Connect) -> None:
    with recorded_spans() as spans:
        call = (await connect(watch=ending(Unavailable("AWAY", "no")))).Watch(request())
        assert isinstance(await end_of(call), Unavailable)
        await eventually(spans.get_finished_spans)
        (span,) = spans.get_finished_spans()
    assert span.name == WATCH
    assert span.attributes
    assert span.attributes["rpc.grpc.status_code"] == grpc.StatusCode.UNAVAILABLE.value[0]
    assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, "AWAY")


async def test_the_span_of_a_stream_that_its_client_leaves_is_no_error(connect: Connect) -> None:
    with recorded_spans() as spans:
        call = (await connect(watch=endless)).Watch(request())
        await call.read()
        call.cancel()
        await eventually(spans.get_finished_spans)
        (span,) = spans.get_finished_spans()
    assert span.attributes
    assert span.attributes["rpc.grpc.status_code"] == grpc.StatusCode.CANCELLED.value[0]
    assert span.status.status_code is StatusCode.UNSET


async def test_a_stream_is_one_line_of_the_access_log(connect: Connect, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    stub = await connect()
    assert [each.text async for each in stub.Watch(request("one two three"))] == ["one", "two", "three"]
    lines = [each.__dict__ for each in caplog.records if each.name == "servicekit.rpc.access"]
    assert [(each["method"], each["code"]) for each in lines] == [(WATCH, "OK")]


async def test_the_deadline_of_a_client_ends_its_stream(connect: Connect) -> None:
    ended = asyncio.Event()

    async def watch(_request: Any, _context: Any) -> AsyncIterator[Any]:
        try:
            yield EchoResponse(text="first")
            await asyncio.Event().wait()
        finally:
            ended.set()

    call = (await connect(watch=watch)).Watch(request(), timeout=0.5)
    assert (await call.read()).text == "first"
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await call.read()
    assert refused.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    async with asyncio.timeout(10):
        await ended.wait()


async def test_the_deadline_of_a_method_ends_its_streams(serve: Serve) -> None:
    server = await serve(watch=endless, options={"deadlines": {WATCH: timedelta(milliseconds=200)}})
    async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        call = TinyStub(channel).Watch(request())
        assert (await call.read()).text == "first"
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await call.read()
    assert refused.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    assert DeadlineExceeded.code == refused.value.code().name


async def test_a_client_that_does_not_read_holds_its_stream_up(connect: Connect) -> None:
    """The handler waits for the client, or it would fill the memory."""
    sent = 0

    async def watch(_request: Any, _context: Any) -> AsyncIterator[Any]:
        nonlocal sent
        for _ in range(1000):
            yield EchoResponse(text="x" * 100_000)
            sent += 1

    stub = await connect(watch=watch)
    call = stub.Watch(request())
    await call.read()
    before = -1
    while sent != before:  # until it has stopped
        before = sent
        for _ in range(20):
            await stub.Echo(request())
    assert sent < 200
    count = 1
    while (await call.read()) is not grpc.aio.EOF:
        count += 1
    assert count == 1000
